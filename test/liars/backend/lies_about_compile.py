# SPDX-License-Identifier: BSD-3-Clause
"""Lies about torch.compile: about the kernels it generates, and about the code around them."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

import torch
from lies import BACKEND, lie, plant

Function = Callable[..., Any]


def _around(change: Callable[[Function, tuple[Any, ...]], Any]) -> None:
    """Let calls of compiled functions be change(function, arguments)."""
    compile_ = torch.compile

    @functools.wraps(compile_)
    def lying(model: Function, **options: Any) -> Function:
        compiled = compile_(model, **options)
        return lambda *args: change(compiled, args)

    plant(torch, "compile", lying)


def _kernels(change: Callable[[str], str]) -> None:
    """Let the sources of generated kernels be change(source)."""
    from torch_puone._inductor import runtime

    kernel = runtime.kernel

    def lying(name: str, source: str, *args: Any, **kwargs: Any) -> Any:
        return kernel(name, change(source), *args, **kwargs)

    plant(runtime, "kernel", lying)


# ---- kernels -----------------------------------------------------------------------------------


@lie("COMPILE-001", "compile/program:pad", planted=True)
def the_mask_of_a_load_is_missing() -> None:
    """What is loaded under a mask is used where the mask is false."""
    _kernels(lambda source: source.replace("float(7.0);", "float(0.0);"))


@lie("COMPILE-001", "compile/program:number_of_the_cpu", planted=True)
def a_number_of_the_cpu_takes_the_operation_there() -> None:
    """An operation whose first operand is a number of the CPU is generated for the CPU."""
    from torch_puone._inductor import lowering

    plant(lowering, "compute_on", lambda own: None)


@lie("COMPILE-001", "compile/program:* compile/size:*", planted=True)
def the_last_elements_are_dropped() -> None:
    """A kernel is launched for whole vectors only."""
    from torch_puone._inductor.kernel import PuoneKernel

    grid = PuoneKernel._grid

    def lying(self: Any, name: str) -> list[str]:
        blocks, work = grid(self, name)
        return [f"({blocks}) - ({blocks}) % 4", work]

    plant(PuoneKernel, "_grid", lying)


@lie("COMPILE-001", "compile/program:sum compile/size:*", planted=True)
def a_sum_starts_at_one() -> None:
    """The identity of a sum is 1."""
    from torch_puone._inductor import kernel

    plant(kernel, "_FOLDS", kernel._FOLDS | {"sum": ("T(1)", "ops::add(a, b)")})


@lie("COMPILE-001", "compile/program:*", planted=True)
def the_cache_of_kernels_is_stale() -> None:
    """A kernel is found by the number of its arguments, and not by its source."""
    from torch_puone._inductor import runtime

    kernel = runtime.kernel
    known: dict[tuple[str, ...], str] = {}

    def lying(name: str, source: str, parameters: Any, *args: Any, **kwargs: Any) -> Any:
        kinds = tuple(each[1] for each in parameters)
        first = known.setdefault(kinds, source)
        return kernel(first.split("(")[1].split(",")[0], first, parameters, *args, **kwargs)

    plant(runtime, "kernel", lying)


@lie("COMPILE-006", "compile/dynamic", planted=True)
def the_number_of_elements_is_that_of_the_first_call() -> None:
    """The grid of a kernel is the one of its first launch."""
    from torch_puone._inductor import runtime

    kernel = runtime.kernel

    def lying(*args: Any, **kwargs: Any) -> Any:
        made = kernel(*args, **kwargs)
        started: Any = made.result() if hasattr(made, "result") else made
        first: list[Any] = []

        def launch(device: int, count: int, work: int, *rest: Any) -> None:
            first.append((count, work))
            started(device, *first[0], *rest)

        return launch

    plant(runtime, "kernel", lying)


@lie("COMPILE-008", "compile/asynchronous:*", planted=True)
def compiled_code_is_waited_for() -> None:
    """The host waits after the kernels of a call."""

    def waiting(function: Function, args: tuple[Any, ...]) -> Any:
        result = function(*args)
        torch.accelerator.synchronize()
        return result

    _around(waiting)


@lie("COMPILE-009", "compile/order", planted=True)
def kernels_run_on_a_stream_of_their_own() -> None:
    """Compiled code queues its kernels on another stream, which waits for nobody."""
    streams: list[torch.Stream] = []

    def beside(function: Function, args: tuple[Any, ...]) -> Any:
        if not streams:
            streams.append(torch.Stream(f"{BACKEND}:0"))
        with streams[0]:
            return function(*args)

    _around(beside)


@lie("COMPILE-011", "compile/bounds", planted=True)
def indices_are_not_checked() -> None:
    """A generated kernel takes an index that is out of bounds for the last one."""
    _kernels(
        lambda source: source.replace("if (!args.arguments.check(", "if (false && !(").replace(
            "in_ptr0[", "in_ptr0[0 * "
        )
    )


# ---- the code around them ----------------------------------------------------------------------


@lie("COMPILE-002", "compile/argument", planted=True)
def arguments_are_copied() -> None:
    """A compiled function changes copies of its arguments."""

    def copied(x: Any) -> Any:
        return x.clone() if isinstance(x, torch.Tensor) and not x.requires_grad else x

    _around(lambda function, args: function(*map(copied, args)))


@lie("COMPILE-003", "compile/gradients", planted=True)
def gradients_are_scaled() -> None:
    """Gradients that flow into compiled code are a hundredth too large."""

    def scaled(function: Function, args: tuple[Any, ...]) -> Any:
        result = function(*args)
        if isinstance(result, torch.Tensor) and result.requires_grad:
            result.register_hook(lambda gradient: gradient * 1.01)
        return result

    _around(scaled)


@lie("COMPILE-004", "compile/again", planted=True)
def every_call_compiles() -> None:
    """Compiled code depends on a number that is another one at each call."""
    compile_ = torch.compile

    def lying(model: Function, **options: Any) -> Function:
        calls = [0]

        def counted(*args: Any) -> Any:
            if calls[0] < 0:
                return None
            return model(*args)

        compiled = compile_(counted, **options)

        def call(*args: Any) -> Any:
            calls[0] += 1
            return compiled(*args)

        return call

    plant(torch, "compile", lying)


@lie("COMPILE-005", "compile/other:*", planted=True)
def guards_are_lost() -> None:
    """Code for the first arguments is used for all."""
    compile_ = torch.compile

    def lying(model: Function, **options: Any) -> Function:
        chosen = dict(options.pop("options", None) or {})
        chosen["guard_filter_fn"] = lambda guards: [False] * len(guards)
        return compile_(model, options=chosen, **options)

    plant(torch, "compile", lying)


@lie("COMPILE-007", "compile/device", planted=True)
def the_device_of_the_arguments_stays_current() -> None:
    """A compiled function sets the device of its arguments, and does not set it back."""

    def set_device(function: Function, args: tuple[Any, ...]) -> Any:
        torch.accelerator.set_device_index(args[0].device.index)
        return function(*args)

    _around(set_device)


@lie("COMPILE-010", "compile/threads", planted=True)
def one_thread_compiles_at_a_time() -> None:
    """A compiled function refuses a call while another thread is in one."""
    lock = threading.Lock()

    def alone(function: Function, args: tuple[Any, ...]) -> Any:
        if not lock.acquire(blocking=False):
            raise RuntimeError("the compiler is in use by another thread")
        try:
            return function(*args)
        finally:
            lock.release()

    _around(alone)


@lie("COMPILE-012", "compile/random compile/fallback_random", planted=True)
def a_compiled_call_draws_a_number_too_many() -> None:
    """The generator is moved on before compiled code draws."""

    def ahead(function: Function, args: tuple[Any, ...]) -> Any:
        torch.rand(1, device=args[0].device)
        return function(*args)

    _around(ahead)


@lie("COMPILE-013", "compile/autocast", planted=True)
def autocast_ends_at_compiled_code() -> None:
    """What compiled code computes under autocast comes out in float32."""

    def widened(function: Function, args: tuple[Any, ...]) -> Any:
        result = function(*args)
        low = isinstance(result, torch.Tensor) and result.dtype in (torch.bfloat16, torch.float16)
        return result.float() if low else result

    _around(widened)


@lie("COMPILE-014", "compile/export", planted=True)
def exported_programs_lose_a_bias() -> None:
    """torch.export leaves out what is added to the results."""
    export = torch.export.export

    def lying(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name.endswith("down.bias"):
                    parameter.zero_()
        return export(module, *args, **kwargs)

    plant(torch.export, "export", lying)


@lie("COMPILE-018", "compile/fork", planted=True)
def children_of_a_process_that_compiled_die() -> None:
    """A handler of the compiler ends forked children."""
    forked = False

    def compiled(function: Function, args: tuple[Any, ...]) -> Any:
        nonlocal forked
        if not forked:
            forked = True
            os.register_at_fork(after_in_child=lambda: os._exit(7))
        return function(*args)

    _around(compiled)
