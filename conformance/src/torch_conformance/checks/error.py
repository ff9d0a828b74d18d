# SPDX-License-Identifier: BSD-3-Clause
"""Errors: refused arguments, mixed devices, missing operators, and failures of queued work."""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy
import torch

from torch_conformance.authoring.api import (
    LATE_MS,
    Device,
    becomes_true,
    check,
    in_thread,
    in_threads,
    raised,
    why_ended,
    words,
)

# ---- refused arguments -----------------------------------------------------------------------


def _untyped(function: Any) -> Any:
    """The function without its type, to be called as its type forbids."""
    return function


#: name -> (what is done with a 3 x 4 tensor, the exception PyTorch documents for it).
_REFUSED: dict[str, tuple[Callable[[torch.Tensor], Any], type[Exception]]] = {
    "index_beyond": (lambda x: x[3], IndexError),
    "index_below": (lambda x: x[-4], IndexError),
    "too_many_indices": (lambda x: x[0, 0, 0], IndexError),
    "select_beyond": (lambda x: x.select(1, 4), IndexError),
    "narrow_beyond": (lambda x: x.narrow(1, 2, 3), RuntimeError),
    "bad_dimension": (lambda x: x.sum(dim=2), IndexError),
    "transpose_beyond": (lambda x: x.transpose(0, 5), IndexError),
    "view_size": (lambda x: x.view(5, 2), RuntimeError),
    "reshape_size": (lambda x: x.reshape(-1, 5), RuntimeError),
    "expand_size": (lambda x: x.expand(6, 4), RuntimeError),
    "view_strides": (lambda x: x.t().view(12), RuntimeError),
    "broadcast": (lambda x: x + x[:, :3], RuntimeError),
    "matmul_sizes": (lambda x: x @ x, RuntimeError),
    "cat_sizes": (lambda x: torch.cat([x, x[:, :2]]), RuntimeError),
    "copy_sizes": (lambda x: x.copy_(torch.ones(5, device=x.device)), RuntimeError),
    "negative_size": (lambda x: x.new_empty(-1), RuntimeError),
    "storage_beyond": (
        lambda x: x.as_strided((9,), (4,)),
        RuntimeError,
    ),
    "item_of_many": (lambda x: x.item(), RuntimeError),
    "bool_of_many": (lambda x: bool(x), RuntimeError),
    "iterate_scalar": (lambda x: list(x[0, 0]), TypeError),
    "unknown_argument": (
        lambda x: _untyped(torch.empty)(2, device=x.device, nonsense=1),
        TypeError,
    ),
    "in_place_cast": (lambda x: x.to(torch.int32).add_(0.5), RuntimeError),
    "out_dtype": (
        lambda x: torch.add(x, x, out=torch.empty(3, 4, dtype=torch.int32, device=x.device)),
        RuntimeError,
    ),
    "copy_of_none": (lambda x: _untyped(x.copy_)(None), TypeError),
}


@check("error/arguments", "ERR-001", cases=_REFUSED)
def bad_arguments_raise_python_exceptions(dev: Device, case: str) -> None:
    """A wrong argument raises the exception it raises on the CPU; the operand stays usable."""
    x = torch.arange(12.0, device=dev.device()).reshape(3, 4)
    act, expected = _REFUSED[case]
    error = raised(lambda: act(x), by=dev.synchronize)
    assert isinstance(error, expected), f"raised {type(error).__name__}: {error}"
    assert str(error).strip(), "the exception has no message"
    dev.assert_equal(x, torch.arange(12.0).reshape(3, 4))


_HOST_VIEWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "numpy": lambda x: x.numpy(),
    "asarray": numpy.asarray,
    "memoryview": _untyped(memoryview),
}


def _host_view_error(dev: Device, view: Callable[[torch.Tensor], Any]) -> TypeError:
    """The error of asking a device tensor for its bytes as host memory."""
    x = torch.ones(3, device=dev.device())
    error = raised(lambda: view(x))
    assert isinstance(error, TypeError), f"{type(error).__name__}: {error}"
    return error


@check("error/host_view", "ERR-002", cases=_HOST_VIEWS, needs=("accelerator", "plain_tensors"))
def device_memory_is_not_shown_to_the_host(dev: Device, case: str) -> None:
    """Asking a device tensor for its bytes as host memory raises TypeError."""
    _host_view_error(dev, _HOST_VIEWS[case])


@check("error/host_view:message", "ERR-002", needs=("accelerator", "plain_tensors"))
def the_error_of_a_host_view_says_what_to_do(dev: Device) -> None:
    """The error of numpy() on a device tensor names the way over the CPU."""
    error = _host_view_error(dev, _HOST_VIEWS["numpy"])
    assert "cpu" in words(str(error)), f"the message does not say how: {error}"


# ---- mixed devices ---------------------------------------------------------------------------

_MIXED: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "add": lambda x, other: x + other,
    "add_reversed": lambda x, other: other + x,
    "add_in_place": lambda x, other: x.add_(other),
    "compare": lambda x, other: x == other,
    "matmul": lambda x, other: x @ other,
    "cat": lambda x, other: torch.cat([x, other]),
    "where": lambda x, other: torch.where(x > 0, x, other),
    "linear": lambda x, other: torch.nn.functional.linear(x, other),
    "out": lambda x, other: torch.mul(x, x, out=other),
    "index_select": lambda x, other: x.index_select(0, other[0].long()),
    "gather": lambda x, other: x.gather(1, other.long()),
    "embedding": lambda x, other: torch.nn.functional.embedding(other.long(), x),
    "set_source": lambda x, other: _untyped(x.set_)(other),
}


@check("error/mixed", "ERR-003", cases=_MIXED, needs=("accelerator",))
def cpu_and_device_operands_are_refused(dev: Device, case: str) -> None:
    """An operator given operands on the CPU and on the device raises and changes neither."""
    x, other = torch.ones(3, 3, device=dev.device()), torch.full((3, 3), 2.0)
    error = raised(lambda: _MIXED[case](x, other))
    assert isinstance(error, (RuntimeError, TypeError)), f"{type(error).__name__}: {error}"
    dev.assert_equal(x, torch.ones(3, 3))
    assert torch.equal(other, torch.full((3, 3), 2.0))


@check(
    "error/mixed_devices",
    "ERR-003",
    cases=("add", "add_in_place", "matmul", "cat", "out"),
    needs=("multi_device",),
)
def operands_of_two_devices_are_refused(dev: Device, case: str) -> None:
    """An operator given operands on two devices raises and changes neither."""
    x = torch.ones(3, 3, device=dev.device(0))
    other = torch.full((3, 3), 2.0, device=dev.device(1))
    error = raised(lambda: _MIXED[case](x, other))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    dev.assert_equal(x, torch.ones(3, 3))
    dev.assert_equal(other, torch.full((3, 3), 2.0))


@check("error/mixed_message", "ERR-004", needs=("accelerator",))
def mixed_device_error_names_the_devices(dev: Device) -> None:
    """The error for mixed operands names the devices involved."""
    error = raised(lambda: torch.ones(3, device=dev.device()) + torch.ones(3))
    assert dev.type in str(error) and "cpu" in str(error), str(error)


_SCALARS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "python_number": lambda x: x + 2,
    "cpu_scalar_tensor": lambda x: x + torch.tensor(2.0),
    "cpu_scalar_first": lambda x: torch.tensor(2.0) + x,
    "cpu_scalar_in_place": lambda x: x.add_(torch.tensor(2.0)),
}


@check("error/cpu_scalar", "ERR-005", cases=_SCALARS)
def cpu_scalars_mix_with_device_tensors(dev: Device, case: str) -> None:
    """A number, or a CPU tensor without dimensions, is accepted beside a device tensor."""
    result = _SCALARS[case](torch.ones(3, device=dev.device()))
    assert result.device.type == dev.type
    dev.assert_equal(result, torch.full((3,), 3.0))


# ---- operators -------------------------------------------------------------------------------


def _triple_each(xs: list[torch.Tensor], outs: list[torch.Tensor]) -> None:
    for x, out in zip(xs, outs, strict=True):
        out.copy_(x * 3)


@functools.cache
def _library() -> torch.library.Library:
    """Operators that no backend can know: one without kernels, one with a CPU kernel only."""
    library = torch.library.Library("conformance_error", "DEF")
    library.define("missing(Tensor x) -> Tensor")
    library.define("cpu_only(Tensor x) -> Tensor")
    library.impl("cpu_only", lambda x: x * 3, "CPU")
    library.define("cpu_only_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("cpu_only_", lambda x: x.mul_(3), "CPU")
    library.define("cpu_only_lists(Tensor[] xs, Tensor(a!)[] outs) -> ()")
    library.impl("cpu_only_lists", _triple_each, "CPU")
    return library


def _missing_operator_error(x: torch.Tensor) -> NotImplementedError:
    """The error of calling an operator that has no kernel."""
    _library()
    error = raised(lambda: torch.ops.conformance_error.missing(x))
    assert isinstance(error, NotImplementedError), f"{type(error).__name__}: {error}"
    return error


@check("error/operator:kind", "ERR-006")
def a_missing_operator_raises_not_implemented(dev: Device) -> None:
    """An operator without any kernel raises NotImplementedError."""
    _missing_operator_error(torch.ones(3, device=dev.device()))


@check("error/operator:names_operator", "ERR-006")
def the_error_of_a_missing_operator_names_it(dev: Device) -> None:
    """The error of an operator without any kernel names the operator."""
    error = _missing_operator_error(torch.ones(3, device=dev.device()))
    assert "conformance_error::missing" in str(error), str(error)


@check("error/operator:usable_after", "ERR-006")
def a_missing_operator_leaves_its_operand_usable(dev: Device) -> None:
    """After the error of a missing operator its operand can be computed with."""
    x = torch.ones(3, device=dev.device())
    _missing_operator_error(x)
    dev.assert_equal(x + 1, torch.full((3,), 2.0))


def _in_lists(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    torch.ops.conformance_error.cpu_only_lists([x, x], [torch.zeros_like(x), out])
    return out


#: name -> (a call of a CPU operator, what its operand of ones holds afterwards).
_CPU_ONLY: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float]] = {
    "functional": (lambda x: torch.ops.conformance_error.cpu_only(x), 1.0),
    "in_place": (lambda x: torch.ops.conformance_error.cpu_only_(x), 3.0),
    "in_place_view": (
        lambda x: torch.ops.conformance_error.cpu_only_(x.expand(2, 3).t()[:, 0]),
        3.0,
    ),
    "lists": (_in_lists, 1.0),
}


@check("error/operator_cpu_only", "ERR-007", cases=_CPU_ONLY)
def an_operator_of_the_cpu_falls_back_or_raises(dev: Device, case: str) -> None:
    """An operator with a CPU kernel only gives the right result on the device, or raises."""
    _library()
    call, left = _CPU_ONLY[case]
    x = torch.ones(3, device=dev.device())
    try:
        result = call(x)
    except NotImplementedError as error:
        assert "conformance_error::cpu_only" in str(error), str(error)
        return
    assert result.device == x.device
    dev.assert_equal(result, torch.full((3,), 3.0))
    dev.assert_equal(x, torch.full((3,), left))


# ---- printing --------------------------------------------------------------------------------

_PRINTED: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "float32": lambda d: torch.arange(6.0, device=d).reshape(2, 3) / 3,
    "int64": lambda d: torch.arange(4, device=d),
    "bool": lambda d: torch.tensor([True, False], device=d),
    "zero_dim": lambda d: torch.tensor(2.5, device=d),
    "empty": lambda d: torch.empty(0, 3, device=d),
    "non_finite": lambda d: torch.tensor([float("nan"), float("inf"), -1.0], device=d),
    "strided": lambda d: torch.arange(12.0, device=d).reshape(3, 4).t()[::2],
    "requires_grad": lambda d: torch.ones(2, device=d, requires_grad=True),
    "large": lambda d: torch.arange(3000.0, device=d),
    "parameter": lambda d: torch.nn.Parameter(torch.ones(2, device=d)),
    "float64": lambda d: torch.ones(2, device=d, dtype=torch.float64) / 3,
    "float16": lambda d: torch.ones(2, device=d).to(torch.float16) / 3,
    "bfloat16": lambda d: torch.ones(2, device=d).to(torch.bfloat16) / 3,
    "complex64": lambda d: torch.tensor([1 + 2j, -3j], device=d),
    "conjugate": lambda d: torch.tensor([1 + 2j, -3j], device=d).conj(),
}
_PRINTED_NEEDS = {
    **{name: name for name in ("float64", "float16", "bfloat16", "complex64")},
    "conjugate": "complex64",
}


@check(
    "error/printing",
    "ERR-008",
    cases=_PRINTED,
    needs=("plain_tensors",),
    case_needs=_PRINTED_NEEDS,
)
def every_tensor_can_be_printed(dev: Device, case: str) -> None:
    """repr() of a device tensor shows the values the CPU shows, and the device."""
    on_cpu = _PRINTED[case](torch.device("cpu"))
    if on_cpu.numel() and (on_cpu.is_floating_point() or on_cpu.is_complex()):
        dev.require("float64")  # torch formats such numbers in it, on their device
    x = _PRINTED[case](dev.device())
    text = repr(x)
    shown = text.replace(f", device='{x.device}'", "")
    assert "".join(shown.split()) == "".join(repr(on_cpu).split()), f"{text}\nis not\n{on_cpu}"
    if dev.is_accelerator:
        assert str(x.device) in text


# ---- autograd and threads --------------------------------------------------------------------


class _Fails(torch.autograd.Function):
    """A function whose backward raises."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        raise KeyError("from backward")


_Runner = Callable[[Callable[[], None]], None]


def _here(work: Callable[[], None]) -> None:
    """Run `work` in this thread."""
    work()


def _backward_raises(dev: Device, run: _Runner = _here) -> None:
    """Let `run` call a backward that raises: its caller gets the exception itself."""

    def backward() -> None:
        x = torch.ones(3, device=dev.device(), requires_grad=True)
        _Fails.apply(x).sum().backward()

    error = raised(lambda: run(backward))
    assert isinstance(error, KeyError) and "from backward" in str(error), repr(error)


_CALLERS: dict[str, _Runner] = {"kind": _here, "in_thread": in_thread}


@check("error/backward", "ERR-009", cases=_CALLERS)
def errors_of_backward_reach_the_caller(dev: Device, case: str) -> None:
    """An exception raised in backward arrives, as itself, where backward() was called."""
    _backward_raises(dev, _CALLERS[case])


@check("error/backward:repeatedly", "ERR-009")
def errors_of_backward_reach_the_caller_every_time(dev: Device) -> None:
    """An exception raised in backward arrives, as itself, also the second and the third time."""
    for _ in range(3):
        _backward_raises(dev)


@check("error/backward:usable_after", "ERR-009")
def backward_works_after_an_error(dev: Device) -> None:
    """After an exception raised in backward, another backward gives the right gradient."""
    _backward_raises(dev)
    y = torch.ones(3, device=dev.device(), requires_grad=True)
    (y * 2).sum().backward()
    assert y.grad is not None
    dev.assert_equal(y.grad, torch.full((3,), 2.0))


def _refused_view(dev: Device) -> str:
    """Do something wrong; return the name of the exception that was raised."""
    x = torch.ones(3, device=dev.device())
    return type(raised(lambda: x.view(7))).__name__


def _sums(dev: Device) -> str:
    """Compute, and compare with what is right."""
    for _ in range(20):
        x = torch.ones(3, device=dev.device())
        dev.assert_equal(x + 1, torch.full((3,), 2.0))
    return "right"


@check("error/thread:delivered_there", "ERR-010", needs=("threads",))
def errors_are_raised_in_their_thread(dev: Device) -> None:
    """An error is raised in the thread that caused it."""
    assert in_thread(lambda: _refused_view(dev)) == "RuntimeError"


@check("error/thread:others_unharmed", "ERR-010", needs=("threads",))
def errors_do_not_disturb_other_threads(dev: Device) -> None:
    """An error in one thread does not disturb what other threads compute."""
    results = in_threads([lambda: _refused_view(dev), lambda: _sums(dev)] * 4)
    assert results == ["RuntimeError", "right"] * 4


# ---- errors of queued work -------------------------------------------------------------------

_SURFACE: dict[str, Callable[[torch.Stream, torch.Event, torch.Tensor], Any]] = {
    "stream": lambda stream, event, x: stream.synchronize(),
    "device": lambda stream, event, x: torch.accelerator.synchronize(x.device.index),
    "module": lambda stream, event, x: torch.get_device_module(x.device).synchronize(x.device),
    "event": lambda stream, event, x: event.synchronize(),
    "item": lambda stream, event, x: _on(stream, x[0].item),
    "copy": lambda stream, event, x: _on(stream, x.cpu),
}


def _on(stream: torch.Stream, read: Callable[[], object]) -> object:
    """What is read on a stream."""
    with stream:
        return read()


def _fail_late(dev: Device, stream: torch.Stream, x: torch.Tensor) -> torch.Event:
    """Queue, on `stream`, a kernel that fails when it runs; return an event behind it."""
    dev.synchronize()
    dev.fault.kernel_error_at(1)
    with stream:
        x.fill_(3)
        return stream.record_event()


_DEFERRED = ("fault_injection", "deferred_errors", "streams", "events")


def _surfaces_at(dev: Device, case: str, index: int) -> None:
    """The failure of a kernel on device `index` is raised by a wait; device 0 is current."""
    stream, x = dev.stream(index), torch.ones(64, device=dev.device(index))
    try:
        event = _fail_late(dev, stream, x)
        error = raised(lambda: _SURFACE[case](stream, event, x))
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    assert not isinstance(error, torch.OutOfMemoryError)


@check("error/deferred", "ERR-020", cases=_SURFACE, needs=_DEFERRED)
def an_error_of_queued_work_surfaces(dev: Device, case: str) -> None:
    """A kernel that fails while it runs raises RuntimeError at the next wait that covers it."""
    _surfaces_at(dev, case, 0)


@check("error/deferred_elsewhere", "ERR-020", cases=_SURFACE, needs=(*_DEFERRED, "multi_device"))
def an_error_of_queued_work_surfaces_on_every_device(dev: Device, case: str) -> None:
    """A kernel that fails on the last device raises at the next wait for that device."""
    _surfaces_at(dev, case, dev.count - 1)


@check("error/deferred_dropped", "ERR-020", needs=_DEFERRED)
def an_error_outlives_its_stream_object(dev: Device) -> None:
    """The error of a stream that was dropped is raised by a wait for its device."""
    x = torch.ones(64, device=dev.device(0))
    try:
        _fail_late(dev, dev.stream(0), x)  # both the stream and the event are dropped
        gc.collect()
        error = raised(lambda: torch.accelerator.synchronize(0))
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


@check("error/deferred:cleared", "ERR-020", needs=_DEFERRED)
def an_error_that_is_taken_back_does_not_come(dev: Device) -> None:
    """After reset() of the faults no kernel fails that was to fail."""
    x = torch.ones(64, device=dev.device(0))
    try:
        dev.fault.kernel_error_at(2)
    finally:
        dev.fault.reset()
    for value in range(4):
        x.fill_(value)
    dev.assert_equal(x, torch.full((64,), 3.0))


#: Long enough for a failed kernel to have run, and for an allocator to look after its blocks.
_ALLOCATIONS, _PAUSE = 40, 0.005


@check("error/deferred_freed", "ERR-020", needs=(*_DEFERRED, "record_stream"))
def an_error_that_the_allocator_meets_is_not_lost(dev: Device) -> None:
    """An error met while freed memory is looked after is raised there, or by the next wait."""
    stream, x = dev.stream(0), torch.ones(64, device=dev.device(0))
    try:
        _fail_late(dev, stream, x)
        x.record_stream(stream)
        del x  # may be used again when `stream`, which has failed, is done with it
        error = raised(lambda: _allocate_and_wait(dev, stream))
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


def _allocate_and_wait(dev: Device, stream: torch.Stream) -> None:
    for _ in range(_ALLOCATIONS):
        torch.empty(64, device=dev.device(0))
        time.sleep(_PAUSE)
    stream.synchronize()


#: How a program asks for the end of work, with the stream and with an event behind the work.
_POLLS: dict[str, Callable[[torch.Stream, torch.Event], bool]] = {
    "stream": lambda stream, event: stream.query(),
    "event": lambda stream, event: event.query(),
}


def _error_of(work: Callable[[], object]) -> list[RuntimeError]:
    """The RuntimeError that `work` raises, if any."""
    try:
        work()
    except RuntimeError as error:
        return [error]
    return []


def _is_not_lost(
    dev: Device, index: int, poll: Callable[[torch.Stream, torch.Event], bool]
) -> None:
    stream, x = dev.stream(index), torch.ones(64, device=dev.device(index))
    try:
        event = _fail_late(dev, stream, x)
        errors = _error_of(lambda: becomes_true(lambda: poll(stream, event)))
        errors += _error_of(stream.synchronize)
    finally:
        dev.fault.reset()
    assert errors, "neither query() nor the wait after it raised the error"


@check("error/deferred_query", "ERR-030", cases=_POLLS, needs=_DEFERRED)
def asking_for_the_end_loses_no_error(dev: Device, case: str) -> None:
    """query() of failed work raises its error, or leaves it to the next wait."""
    for index in {0, dev.count - 1}:
        _is_not_lost(dev, index, _POLLS[case])


def _message_of(dev: Device, index: int, launches: Sequence[str], failing: int) -> str:
    """What the wait says after some launches on device `index`, of which one fails."""
    stream, x = dev.stream(index), torch.ones(64, device=dev.device(index))
    dev.synchronize()
    try:
        dev.fault.kernel_error_at(failing + 1)
        with stream:
            for name in launches:
                _NAMED[name](x)
        return str(raised(stream.synchronize)).lower()
    finally:
        dev.fault.reset()


#: Launches by the name that a message is expected to have.
_NAMED: dict[str, Callable[[torch.Tensor], object]] = {
    "fill": lambda x: x.fill_(3),
    "mul": lambda x: x.mul_(x),
    "sin": lambda x: x.sin_(),
}


@check("error/deferred_name", "ERR-021", needs=_DEFERRED)
def a_late_error_names_the_launch(dev: Device) -> None:
    """The message of a late error names the kernel that failed, not the call that found it."""
    message = _message_of(dev, 0, ["fill"], 0)
    assert "fill" in message, f"the failed launch, fill, is not named: {message}"


#: Which of three launches fails.
_FAILING = {"first": 0, "second": 1, "last": 2}


@check("error/deferred_name", "ERR-021", cases=_FAILING, needs=_DEFERRED)
def a_late_error_names_the_launch_that_failed(dev: Device, case: str) -> None:
    """Of several launches on one stream the message names the one that failed, and no other."""
    for index in {0, dev.count - 1}:
        message = _message_of(dev, index, [*_NAMED], _FAILING[case])
        named = [name in message for name in _NAMED]
        wanted = [position == _FAILING[case] for position in range(len(_NAMED))]
        assert named == wanted, f"{[*_NAMED][_FAILING[case]]} failed on device {index}: {message}"


def _waits_without_error(
    dev: Device,
    other: torch.Stream,
    wait: Callable[[torch.Stream, torch.Event], None],
    index: int = 0,
) -> None:
    """While a late error of a device is pending, `wait` for what it does not concern."""
    stream, x = dev.stream(index), torch.ones(64, device=dev.device(index))
    y = torch.ones(64, device=other.device)
    try:
        failed = _fail_late(dev, stream, x)
        with other:
            y.fill_(4)
        wait(other, other.record_event())
        with other:
            assert y[0].item() == 4
        error = raised(failed.synchronize)
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


_UNRELATED_WAITS: dict[str, Callable[[torch.Stream, torch.Event], None]] = {
    "other_stream": lambda stream, event: stream.synchronize(),
    "other_event": lambda stream, event: event.synchronize(),
}


@check("error/deferred_scope", "ERR-022", cases=_UNRELATED_WAITS, needs=_DEFERRED)
def a_late_error_stays_with_its_stream(dev: Device, case: str) -> None:
    """Waiting for unrelated work of the device does not raise the error of another stream."""
    _waits_without_error(dev, dev.stream(0), _UNRELATED_WAITS[case])


@check("error/deferred_scope:other_device", "ERR-022", needs=_DEFERRED)
def a_late_error_stays_with_its_device(dev: Device) -> None:
    """Waiting for another device does not raise the error of a stream."""
    dev.require("multi_device")
    _waits_without_error(
        dev,
        dev.stream(dev.count - 1),
        lambda stream, event: torch.accelerator.synchronize(stream.device),
    )


@check("error/deferred_scope:first_device", "ERR-022", needs=_DEFERRED)
def a_late_error_of_the_last_device_stays_there(dev: Device) -> None:
    """Waiting for the first device does not raise the error of the last one."""
    dev.require("multi_device")
    _waits_without_error(
        dev,
        dev.stream(0),
        lambda stream, event: torch.accelerator.synchronize(stream.device),
        dev.count - 1,
    )


#: What is asked of an event.
_EARLIER: dict[str, Callable[[torch.Event], object]] = {
    "earlier_event": lambda event: event.synchronize(),
    "earlier_event_query": lambda event: becomes_true(event.query),
}


@check("error/deferred_scope", "ERR-022", cases=_EARLIER, needs=_DEFERRED)
def a_late_error_does_not_reach_back(dev: Device, case: str) -> None:
    """An event that was recorded before the work that failed is done, without an error."""
    stream, x = dev.stream(0), torch.ones(64, device=dev.device(0))
    earlier = dev.event()
    earlier.record(stream)
    try:
        failed = _fail_late(dev, stream, x)
        _EARLIER[case](earlier)
        error = raised(failed.synchronize)
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


def _two_fail(dev: Device, index: int) -> list[torch.Stream]:
    """Two streams of a device on each of which a kernel has failed: fill, and then sin."""
    streams = [dev.stream(index) for _ in range(2)]
    tensors = [torch.ones(64, device=dev.device(index)) for _ in streams]
    dev.synchronize()
    for stream, x, name in zip(streams, tensors, ("fill", "sin"), strict=True):
        dev.fault.kernel_error_at(1)
        with stream:
            _NAMED[name](x)
    return streams


@check("error/deferred_two:streams", "ERR-023", needs=_DEFERRED)
def each_stream_raises_its_own_error(dev: Device) -> None:
    """Of two streams whose work failed each raises its own error, once."""
    try:
        streams = _two_fail(dev, dev.count - 1)
        messages = [str(raised(stream.synchronize)).lower() for stream in reversed(streams)]
        for stream in streams:
            stream.synchronize()
        dev.synchronize()
    finally:
        dev.fault.reset()
    for name, message in zip(("sin", "fill"), messages, strict=True):
        assert name in message, f"the failed launch, {name}, is not named: {message}"


@check("error/deferred_two:device", "ERR-023", needs=_DEFERRED)
def a_device_raises_the_errors_of_its_streams(dev: Device) -> None:
    """Waits for a device raise the errors of two of its streams, and then nothing more."""
    index = dev.count - 1
    try:
        _two_fail(dev, index)
        raised(lambda: torch.accelerator.synchronize(index))
        with suppress(RuntimeError):  # the second one, unless the first wait took both
            torch.accelerator.synchronize(index)
        torch.accelerator.synchronize(index)
    finally:
        dev.fault.reset()


def _late_error_is_raised_once(
    dev: Device, launch: Callable[[torch.Tensor], object] = lambda x: None
) -> tuple[torch.Stream, torch.Tensor]:
    """Queue a kernel that fails and a `launch` behind it: only the first wait raises."""
    stream, x = dev.stream(0), torch.ones(64, device=dev.device(0))
    try:
        _fail_late(dev, stream, x)  # the launch itself must not raise
        with stream:
            launch(x)
        error = raised(stream.synchronize)
        assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
        stream.synchronize()
        torch.accelerator.synchronize(0)
    finally:
        dev.fault.reset()
    return stream, x


_LAUNCHES: dict[str, Callable[[torch.Tensor], object]] = {
    "reported_once": lambda x: None,
    "launch_does_not_raise": lambda x: x.fill_(5),
}


@check("error/deferred_once", "ERR-023", cases=_LAUNCHES, needs=_DEFERRED)
def a_late_error_is_reported_once(dev: Device, case: str) -> None:
    """A late error is raised by the first wait, and neither by a launch nor by the next waits."""
    _late_error_is_raised_once(dev, _LAUNCHES[case])


@check("error/deferred_once:usable_after", "ERR-029", needs=_DEFERRED)
def the_device_goes_on_after_a_late_error(dev: Device) -> None:
    """After a late error the device computes."""
    _late_error_is_raised_once(dev)
    dev.assert_equal(torch.ones(3, device=dev.device(0)) + 1, torch.full((3,), 2.0))


@check("error/deferred_once:stream_usable", "ERR-029", needs=_DEFERRED)
def the_stream_goes_on_after_its_late_error(dev: Device) -> None:
    """After a late error the stream that had it runs new work."""
    stream, x = _late_error_is_raised_once(dev)
    with stream:
        x.fill_(6)
    stream.synchronize()
    dev.assert_equal(x, torch.full((64,), 6.0))


#: How a program uses memory on the stream whose work fails: it made it there, or elsewhere.
_FAILED_USES: dict[str, tuple[bool, Callable[[torch.Stream, torch.Tensor], None]]] = {
    "own": (True, lambda stream, x: None),
    "of_another_stream": (False, lambda stream, x: x.record_stream(stream)),
}


@check(
    "error/deferred_memory",
    "ERR-029",
    cases=_FAILED_USES,
    needs=(*_DEFERRED, "memory_stats", "record_stream"),
)
def memory_of_failed_work_returns(dev: Device, case: str) -> None:
    """Memory that failed work used goes back to the device, once its error was raised."""
    made_there, use = _FAILED_USES[case]
    stream = dev.stream(0)
    dev.synchronize()
    torch.accelerator.empty_cache()
    before = torch.accelerator.memory_reserved(0)
    with stream if made_there else nullcontext():
        x = torch.ones(1 << 22, device=dev.device(0))
    try:
        _fail_late(dev, stream, x)
        use(stream, x)
        del x
        raisers = (torch.accelerator.empty_cache, stream.synchronize, torch.accelerator.empty_cache)
        errors = [error for work in raisers for error in _error_of(work)]
    finally:
        dev.fault.reset()
    assert errors, "the error was not raised"
    torch.accelerator.empty_cache()
    left = torch.accelerator.memory_reserved(0) - before
    assert left <= 0, f"{left} bytes are still reserved"


@contextmanager
def _last_device_lost(dev: Device) -> Iterator[torch.Tensor]:
    """A tensor of the last device, which is lost inside."""
    x = torch.ones(64, device=dev.device(dev.count - 1))
    dev.synchronize()
    try:
        dev.fault.device_lost(dev.count - 1)
        yield x
    finally:
        dev.fault.reset()


def _fill(x: torch.Tensor) -> None:
    x.fill_(2)
    torch.accelerator.synchronize(x.device)


def _allocate(x: torch.Tensor) -> None:
    torch.empty(1 << 26, dtype=torch.uint8, device=x.device)  # which a cache may serve
    _fill(x)


_USES: dict[str, Callable[[torch.Tensor], None]] = {"raises": _fill, "allocation": _allocate}


def _lost_device_raises(x: torch.Tensor, use: Callable[[torch.Tensor], None] = _fill) -> None:
    error = raised(lambda: use(x))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    assert not isinstance(error, torch.OutOfMemoryError), "a lost device is not out of memory"


@check("error/device_lost", "ERR-025", cases=_USES, needs=("fault_injection",), isolate=True)
def a_lost_device_raises(dev: Device, case: str) -> None:
    """Work on a lost device raises RuntimeError, without a crash or a hang."""
    with _last_device_lost(dev) as x:
        _lost_device_raises(x, _USES[case])


def _record_and_wait(x: torch.Tensor) -> None:
    torch.accelerator.current_stream(x.device).record_event().synchronize()


#: Other uses of a lost device.
_LOST_CALLS: dict[str, Callable[[torch.Tensor], object]] = {
    "copy_in": lambda x: x.copy_(torch.ones(64)),
    "copy_out": lambda x: x.cpu(),
    "item": lambda x: x[0].item(),
    "copy": lambda x: _fill(x.clone()),
    "synchronize": lambda x: torch.accelerator.synchronize(x.device),
    "stream": lambda x: torch.accelerator.current_stream(x.device).synchronize(),
    "event": _record_and_wait,
}


@check("error/device_lost", "ERR-025", cases=_LOST_CALLS, needs=("fault_injection",), isolate=True)
def every_use_of_a_lost_device_raises(dev: Device, case: str) -> None:
    """Copies from and to a lost device, and waits for it, raise RuntimeError."""
    with _last_device_lost(dev) as x:
        error = raised(lambda: _LOST_CALLS[case](x))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    assert not isinstance(error, torch.OutOfMemoryError), "a lost device is not out of memory"


#: Milliseconds of work that is pending when its device is lost, and by when its wait has ended.
_PENDING_MS, _ENDED_MS = 20_000.0, 10_000.0


def _ends_in_time(work: Callable[[], object]) -> None:
    begun = time.monotonic()
    with suppress(RuntimeError):
        in_thread(work)
    took = (time.monotonic() - begun) * 1e3
    assert took < _ENDED_MS, f"it took {took:.0f} ms to end"


_LOST_PENDING = ("fault_injection", "streams", "events", "delay")


@check("error/device_lost:pending_work", "ERR-025", needs=_LOST_PENDING, isolate=True)
def a_lost_device_is_not_waited_for(dev: Device) -> None:
    """A wait for work that was pending when its device was lost ends before the work would."""
    stream, x = dev.stream(dev.count - 1), torch.ones(64, device=dev.device(dev.count - 1))
    dev.synchronize()
    with stream:
        dev.delay(_PENDING_MS)
        x.fill_(3)
    try:
        dev.fault.device_lost(dev.count - 1)
        _ends_in_time(stream.synchronize)
    finally:
        dev.fault.reset()
    y = torch.full((64,), 4.0, device=x.device)
    dev.assert_equal(y, torch.full((64,), 4.0))


#: The stream that waits for work of a device that is lost: of the same device, or of another one.
_WAITING_FOR_LOST: dict[str, Callable[[Device], torch.Stream]] = {
    "waiting_stream": lambda dev: dev.stream(dev.count - 1),
    "waiting_device": lambda dev: dev.stream(0),
}


@check(
    "error/device_lost",
    "ERR-025",
    cases=_WAITING_FOR_LOST,
    needs=(*_LOST_PENDING, "multi_device"),
    isolate=True,
)
def streams_that_wait_for_a_lost_device_end(dev: Device, case: str) -> None:
    """A stream that waits for work of a device that is lost ends its wait, or raises."""
    first, then = dev.stream(dev.count - 1), _WAITING_FOR_LOST[case](dev)
    y = torch.ones(64, device=then.device)
    dev.synchronize()
    with first:
        dev.delay(_PENDING_MS)
    then.wait_stream(first)
    with then:
        y.fill_(3)
    try:
        dev.fault.device_lost(dev.count - 1)
        _ends_in_time(then.synchronize)
    finally:
        dev.fault.reset()
    dev.assert_equal(torch.ones(3, device=dev.device(0)) + 1, torch.full((3,), 2.0))


@check("error/device_lost:other_device", "ERR-025", needs=("fault_injection",), isolate=True)
def other_devices_work_beside_a_lost_one(dev: Device) -> None:
    """While a device is lost, another one computes."""
    dev.require("multi_device")
    with _last_device_lost(dev) as x:
        _lost_device_raises(x)
        dev.assert_equal(torch.ones(3, device=dev.device(0)) + 1, torch.full((3,), 2.0))


def _freed_while_lost(dev: Device, x: torch.Tensor) -> None:
    del x


def _used_elsewhere(dev: Device, x: torch.Tensor) -> None:
    with dev.stream(x.device.index) as stream:
        dev.delay(LATE_MS)
        x.fill_(5)
        x.record_stream(stream)
    del x


#: What a program does with a tensor of a device just before the device is lost.
_FREED: dict[str, Callable[[Device, torch.Tensor], None]] = {
    "freed": _freed_while_lost,
    "in_use": _used_elsewhere,
}


@check(
    "error/device_lost_memory",
    "ERR-025",
    cases=_FREED,
    needs=("fault_injection", "memory_stats", "record_stream", "streams", "delay"),
    isolate=True,
)
def memory_of_a_lost_device_returns_with_it(dev: Device, case: str) -> None:
    """Memory that is freed around the loss of a device can be used again once it is back."""
    index = dev.count - 1

    def make() -> torch.Tensor:
        return torch.zeros(1 << 22, device=dev.device(index))

    first = make()
    dev.synchronize()
    before = torch.accelerator.memory_allocated(index)
    del first
    with suppress(RuntimeError):  # the allocator may meet the loss
        _FREED[case](dev, make())
        dev.fault.device_lost(index)
        for _ in range(3):
            with suppress(RuntimeError):
                make()
        torch.accelerator.empty_cache()
    dev.fault.reset()
    for _ in range(3):
        with suppress(RuntimeError):  # errors that are reported late
            torch.accelerator.synchronize(index)
            make()
    again = make()
    dev.assert_equal(again[:3] + 1, torch.ones(3))
    allocated = torch.accelerator.memory_allocated(index)
    assert allocated == before, f"{allocated - before} bytes have not returned"


@check("error/device_lost:recovers", "ERR-025", needs=("fault_injection",), isolate=True)
def a_device_that_is_back_computes(dev: Device) -> None:
    """Once the device is no longer lost it computes."""
    with _last_device_lost(dev) as x:
        _lost_device_raises(x)
    y = torch.ones(64, device=x.device)
    y.fill_(3)
    dev.assert_equal(y, torch.full((64,), 3.0))


#: What another stream writes, beside the work that it waits for afterwards.
_BESIDE: dict[str, Callable[[torch.Tensor], object]] = {
    "order": lambda y: None,
    "overlap": lambda y: y.fill_(9),
}


@check("error/latency", "ERR-026", cases=_BESIDE, needs=("fault_injection", "streams", "events"))
def a_slow_device_gives_the_same_results(dev: Device, case: str) -> None:
    """Latency in front of every piece of work changes no result and no order."""
    x, y = torch.zeros(64, device=dev.device(0)), torch.zeros(64, device=dev.device(0))
    dev.synchronize()
    try:
        dev.fault.latency_ns(int(LATE_MS / 8 * 1e6))
        first, then = dev.stream(0), dev.stream(0)
        with first:
            for value in range(1, 4):
                x.fill_(value)
        with then:
            _BESIDE[case](y)
        then.wait_stream(first)
        with then:
            y.copy_(x)
        dev.assert_equal(y, torch.full((64,), 3.0))
    finally:
        dev.fault.reset()


# ---- finding the call ------------------------------------------------------------------------

#: Each queues work that takes longer than it takes to ask whether it is done. `x` and `y` are large
#: and on the device, `host` is pinned if that is possible.
_QUEUED = {
    "fill": "x.fill_(2)",
    "copy": "y.copy_(x)",
    "operator": "torch.add(x, x, out=y)",
    "reduction": "x.view(64, -1).sum(1)",
    "from_host": "x.copy_(host, non_blocking=True)",
    "to_host": "host.copy_(x, non_blocking=True)",
}
_ASKED_AT_ONCE = """
import torch
device = torch.device({type!r}, torch.accelerator.device_count() - 1)
x, y = (torch.ones(1 << 22, device=device) for _ in range(2))
host = torch.ones(1 << 22)
if {pinned}:
    host = host.pin_memory()
stream = torch.Stream(device)
with stream:
    for name, call in {calls!r}.items():
        ended = []
        for _ in range(3):
            exec(call)
            ended.append(stream.query())
            stream.synchronize()
        print(name, "ended" if all(ended) else "pending")
"""
_ASKED_AFTER_A_REPLAY = """
graph = torch.accelerator.Graph()
torch.accelerator.synchronize()
with stream, graph:
    x.fill_(7)
captured = x[0].item()
with stream:
    graph.replay()
    ended = stream.query()
print("replay", "ended" if ended and captured != 7 == x[0].item() else "pending")
"""


def _debugging(dev: Device, code: str, env: Mapping[str, str]) -> list[str]:
    """The lines of what a fresh interpreter says with the environment of the descriptor."""
    done = dev.python(code, env=env)
    assert done.returncode == 0, why_ended(done)
    return done.stdout.splitlines()


@check("error/blocking:ended", "ERR-031", needs=("streams",))
def calls_end_with_their_work_where_that_is_asked_for(dev: Device) -> None:
    """With the descriptor's blocking_env, no work is left after a call, but for captures."""
    env = dev.environment("blocking_env")
    pinned = dev.has("pinned_memory")
    code = _ASKED_AT_ONCE.format(type=dev.type, calls=_QUEUED, pinned=pinned)
    names = [*_QUEUED]
    if dev.has("graphs"):
        code += _ASKED_AFTER_A_REPLAY
        names.append("replay")
    found = dict(line.split() for line in _debugging(dev, code, env))
    pending = [name for name in names if found.get(name) != "ended"]
    assert not pending, f"work of {pending} goes on after the call, with {env}"


_FAILING_CALL = """
import torch
from torch_conformance.authoring.backend import resolve
fault = resolve({fault!r})
x = torch.ones(64, device={type!r})
torch.accelerator.synchronize()

def guilty():
    x.fill_(3)

def innocent():
    x.add_(1)
    torch.accelerator.synchronize()

{program}
"""
_CAUGHT = """
def said(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__ + " " + str(error).replace(chr(10), " ")
    return "nothing"
"""


@check("error/blocking:raised", "ERR-031", needs=_DEFERRED)
def calls_raise_their_own_error_where_that_is_asked_for(dev: Device) -> None:
    """With the descriptor's blocking_env, the call that queued the failed work raises its error."""
    env = dev.environment("blocking_env")
    program = f"{_CAUGHT}\nfault.kernel_error_at(1)\nprint(said(guilty))\nprint(said(innocent))"
    code = _FAILING_CALL.format(type=dev.type, fault=dev.descriptor.fault, program=program)
    first, second = _debugging(dev, code, env)
    assert "Error" in first, f"the call that fails raises {first}"
    assert second == "nothing", f"the next call raises {second}"


@check("error/deferred_advice", "ERR-032", needs=_DEFERRED)
def late_errors_name_the_variable_that_makes_calls_wait(dev: Device) -> None:
    """The message of a late error has the name of the descriptor's blocking_env."""
    names = dev.environment("blocking_env")
    message = _message_of(dev, 0, ["fill"], 0)
    for name in names:
        assert name.lower() in message, f"{name} is not in the message: {message}"


#: Where the failed work is queued.
_QUEUEING = """
import threading

def here():
    guilty()

def on_a_stream():
    with torch.Stream(x.device):
        guilty()

def in_a_thread():
    queueing = threading.Thread(target=guilty)
    queueing.start()
    queueing.join()

for queue in (here, on_a_stream, in_a_thread):
    fault.kernel_error_at(1)
    queue()
    print(queue.__name__, said(innocent))
"""


@check("error/stacks", "ERR-033", needs=_DEFERRED)
def late_errors_have_the_stack_of_the_call(dev: Device) -> None:
    """With the descriptor's stacks_env, a late error names the function that queued the work."""
    env = dev.environment("stacks_env")
    program = _CAUGHT + _QUEUEING
    code = _FAILING_CALL.format(type=dev.type, fault=dev.descriptor.fault, program=program)
    found = dict(line.split(maxsplit=1) for line in _debugging(dev, code, env))
    for where in ("here", "on_a_stream", "in_a_thread"):
        message = found.get(where, "nothing")
        assert "Error" in message, f"queued {where}, the next call that waits raises {message}"
        assert "guilty" in message, f"queued {where}, the function is not named: {message}"


# ---- indices that only the device sees -------------------------------------------------------

_Indexed = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

#: Each with a 5 x 4 matrix, and one good and one bad index of a row.
_INDEXED: dict[str, _Indexed] = {
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), x[:2]),
    "index_put_accumulate": lambda x, i: x.index_put((i,), x[:2], accumulate=True),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2]),
    "index_fill": lambda x, i: x.index_fill(0, i, 7.0),
    "take": lambda x, i: x[:, 0].clone().take(i),
    "gather": lambda x, i: x.gather(0, i[:, None].expand(2, 4)),
    "scatter": lambda x, i: x.scatter(0, i[:, None].expand(2, 4), 7.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(2, 4), x[:2]),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "nll_loss": lambda x, i: torch.nn.functional.nll_loss(x.t()[:2], i),
}


def _refused_index(dev: Device, case: str, index: int) -> None:
    """Queue work with a bad index; raises if the backend finds out at once."""
    x = torch.arange(20.0).reshape(5, 4).to(dev.device())
    _INDEXED[case](x, torch.tensor([1, index]).to(dev.device()))


def _index_error(work: Callable[[], Any]) -> None:
    """Run what must raise the error of a refused index, and no other."""
    error = raised(work)
    assert isinstance(error, (RuntimeError, IndexError)), f"{type(error).__name__}: {error}"
    assert not isinstance(error, (NotImplementedError, torch.OutOfMemoryError)), str(error)


def _is_refused(dev: Device, case: str, index: int) -> None:
    """A bad index raises, at the call or at the wait that follows."""

    def work() -> None:
        _refused_index(dev, case, index)
        dev.synchronize()

    _index_error(work)


def _is_refused_at_last(dev: Device, case: str, index: int) -> None:
    """A bad index raises; not every device goes on after its error."""
    try:
        _is_refused(dev, case, index)
    finally:
        dev.abandon()


@check("error/index", "ERR-027", cases=_INDEXED, isolate=True)
def an_index_behind_the_last_row_raises(dev: Device, case: str) -> None:
    """An index behind the last row raises, at the call or at the wait that follows."""
    _is_refused_at_last(dev, case, 5)


@check("error/index_below", "ERR-027", cases=("index", "gather", "embedding"), isolate=True)
def an_index_before_the_first_row_raises(dev: Device, case: str) -> None:
    """A negative index that names no row raises, at the call or at the wait that follows."""
    _is_refused_at_last(dev, case, -6)


def _index_is_pending(dev: Device) -> bool:
    """Queue work with a bad index on the current stream; whether its error is still to come."""
    try:
        _refused_index(dev, "index_select", 5)
    except (RuntimeError, IndexError):
        return False
    return True


_RAMP = torch.arange(64.0)


#: Where the error of a bad index is raised.
_RAISED: dict[str, _Runner] = {"raised_once": _here, "thread": in_thread}


@check("error/recovery", "ERR-028", cases=_RAISED, needs=("error_recovery",))
def work_goes_on_after_a_refused_index(dev: Device, case: str) -> None:
    """After the error of a bad index, waits do not raise and results are right, time after time."""
    x = _RAMP.to(dev.device())
    for _ in range(3):
        _RAISED[case](lambda: _is_refused(dev, "index_select", 5))
        dev.synchronize()
        dev.assert_equal(x * 2, _RAMP * 2)


def _surfaces(stream: torch.Stream, pending: bool) -> None:
    """Wait for a stream, which raises the error of a bad index if that is still to come."""
    if pending:
        _index_error(stream.synchronize)
    stream.synchronize()


@check("error/recovery_stream:earlier_work", "ERR-028", needs=("error_recovery", "streams"))
def a_refused_index_spoils_no_earlier_work(dev: Device) -> None:
    """A bad index on a stream spoils no result of the work before it."""
    x, stream = _RAMP.to(dev.device()), dev.stream()
    dev.synchronize()
    with stream:
        result = x * 3
        pending = _index_is_pending(dev)
    _surfaces(stream, pending)
    with stream:
        assert torch.equal(result.cpu(), _RAMP * 3)


@check("error/recovery_stream:later_work", "ERR-028", needs=("error_recovery", "streams"))
def a_refused_index_spoils_no_later_work(dev: Device) -> None:
    """A bad index on a stream spoils no result of the work after its error."""
    x, stream = _RAMP.to(dev.device()), dev.stream()
    dev.synchronize()
    with stream:
        pending = _index_is_pending(dev)
    _surfaces(stream, pending)
    with stream:
        assert torch.equal((x * 3).cpu(), _RAMP * 3)


@check("error/recovery_stream:other_stream", "ERR-028", needs=("error_recovery", "streams"))
def a_refused_index_spoils_no_other_stream(dev: Device) -> None:
    """A bad index on a stream neither spoils a result of another stream nor raises there."""
    x, stream, other = _RAMP.to(dev.device()), dev.stream(), dev.stream()
    dev.synchronize()
    with stream:
        pending = _index_is_pending(dev)
    with other:
        result = x * 3
        assert torch.equal(result.cpu(), _RAMP * 3)
    other.synchronize()
    _surfaces(stream, pending)
    assert torch.equal(result.cpu(), _RAMP * 3)


@check("error/recovery_device", "ERR-028", needs=("error_recovery", "multi_device"))
def other_devices_go_on_beside_a_refused_index(dev: Device) -> None:
    """A bad index on one device spoils no result of another and raises nothing there."""
    dev.require("synchronize")
    here = torch.accelerator.current_device_index()
    there = torch.device(dev.type, (here + 1) % dev.count)
    x = _RAMP.to(there)
    dev.synchronize()
    pending = _index_is_pending(dev)
    assert torch.equal((x * 3).cpu(), _RAMP * 3)
    torch.accelerator.synchronize(there)
    if pending:
        _index_error(lambda: torch.accelerator.synchronize(here))
    dev.synchronize()
