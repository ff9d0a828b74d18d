# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that real backends make above their driver, to be caught by the suite's chapters.

A lie wraps the operators of the device under test: it sees each call and may change its arguments,
its result or what it did. A planted lie changes something else, once, before the checks run. Run as
a program, the checks named by every lie are run under it and the results printed as JSON:
{lie: {check: message or null}}; the lie `none` is the honest backend.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from conformance import backend, descriptor
from conformance.check import REGISTRY, Check, matches
from conformance.device import Device, run_forked
from conformance.opinfo import TOPICS
from conformance.runner.execute import execute

BACKEND = "puone"
CHAPTERS = (
    "autograd",
    "autocast",
    "copy",
    "custom_operator",
    "factory",
    "func",
    "generator",
    "grad_scaler",
    "model",
    "module",
    "operator",
    "optimizer",
    "random",
    "serialization",
    "view",
)
TRUTH = "none"

Call = Callable[..., Any]


@dataclass(frozen=True)
class Lie:
    """A mistake: what it does to a call, and which requirements must notice, by which checks."""

    tell: Callable[..., Any]
    requirements: tuple[str, ...]
    checks: tuple[str, ...]
    planted: bool = False
    """Called once, without arguments, instead of for every operator."""

    @property
    def text(self) -> str:
        """What is wrong, in a sentence."""
        return str(self.tell.__doc__)


LIES: dict[str, Lie] = {}


def lie(
    requirements: str, checks: str, *, planted: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a lie with the requirements, and the check patterns, that must catch it."""

    def register(tell: Callable[..., Any]) -> Callable[..., Any]:
        LIES[tell.__name__] = Lie(tell, tuple(requirements.split()), tuple(checks.split()), planted)
        return tell

    return register


class Telling(TorchDispatchMode):
    """While active, every operator that touches the device goes through one lie."""

    def __init__(self, told: Lie) -> None:
        super().__init__()
        self.told = told

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not on_device([args, kwargs]):
            return func(*args, **kwargs)
        return self.told.tell(func.name().removeprefix("aten::"), func, args, kwargs)


def on_device(value: Any) -> bool:
    if isinstance(value, (torch.Tensor, torch.device)):
        return (value if isinstance(value, torch.device) else value.device).type == BACKEND
    if isinstance(value, dict):
        return any(on_device(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(on_device(item) for item in value)


# ---- views and memory --------------------------------------------------------------------------


@lie("VIEW-002 VIEW-003", "view/shared:slice view/write:slice")
def a_slice_is_a_copy(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Slicing gives memory of its own."""
    result = call(*args, **kwargs)
    return result.clone() if name == "slice.Tensor" else result


@lie("VIEW-003 OP-003", "view/write:transpose operator/in_place:mul")
def writes_to_strided_views_are_lost(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An in-place product with a view that is not contiguous is computed in a temporary."""
    if name in ("mul_.Tensor", "mul_.Scalar") and not args[0].is_contiguous():
        call(args[0].clone(memory_format=torch.contiguous_format), *args[1:], **kwargs)
        return args[0]
    return call(*args, **kwargs)


@lie("VIEW-008", "view/resize_grow:*")
def resizing_forgets(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """resize_ gives fresh memory."""
    result = call(*args, **kwargs)
    return result.zero_() if name == "resize_" else result


@lie("VIEW-009 SER-004", "view/set:* serialization/sharing:views")
def set_copies(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """set_ to a storage copies it."""
    if name.startswith("set_.source_Storage"):
        args = (args[0], args[1].clone(), *args[2:])
    return call(*args, **kwargs)


@lie("COPY-006", "copy/strides_kept:*")
def moving_makes_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor that is moved to another device loses its strides."""
    if name == "_to_copy":
        kwargs = {**kwargs, "memory_format": torch.contiguous_format}
    return call(*args, **kwargs)


@lie("FACT-004", "factory/second_device:zeros factory/second_device:empty")
def the_device_index_is_ignored(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every allocation is on device 0."""
    if "device" in kwargs:
        kwargs = {**kwargs, "device": torch.device(BACKEND, 0)}
    return call(*args, **kwargs)


# ---- copies and precision ----------------------------------------------------------------------


@lie("COPY-011", "copy/cast:d2d:float32 copy/cast:to:float32")
def conversion_to_integers_rounds(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Floating point numbers are rounded, not truncated, when they become integers."""
    if name == "copy_" and args[1].is_floating_point() and not args[0].is_floating_point():
        args = (args[0], args[1].round(), *args[2:])
    if name == "_to_copy" and args[0].is_floating_point() and kwargs.get("dtype") == torch.int32:
        args = (args[0].round(),)
    return call(*args, **kwargs)


@lie(
    "COPY-013 COPY-014 OPINFO-006",
    "copy/lazy_source:conj:complex64 copy/lazy_target:conj opinfo/math_bits:sinh:complex64",
)
def conjugate_bits_are_overlooked(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy moves the bytes of a conjugate view, whatever they mean."""
    if name == "copy_":
        args = tuple(a.conj() if isinstance(a, torch.Tensor) and a.is_conj() else a for a in args)
    elif name in ("_to_copy", "clone") and args[0].is_conj():
        args = (args[0].conj(),)
    return call(*args, **kwargs)


@lie("COPY-003", "copy/bit_exact:*")
def copies_flush_subnormals(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A clone replaces subnormal numbers by zero."""
    result = call(*args, **kwargs)
    if name == "clone" and result.is_floating_point():
        result[result.abs() < torch.finfo(result.dtype).smallest_normal] = 0
    return result


@lie("COPY-025", "copy/item:* copy/tolist:int64")
def item_goes_through_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """item() returns a float for every data type."""
    result = call(*args, **kwargs)
    return float(result.real) if name == "_local_scalar_dense" else result


@lie("OP-026", "operator/float64:*")
def float64_is_computed_in_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Sums and products of float64 numbers have the precision of float32."""
    result = call(*args, **kwargs)
    if name in ("add.Tensor", "mul.Tensor", "mm", "sum") and result.dtype == torch.float64:
        return result.float().double()
    return result


# ---- random numbers ----------------------------------------------------------------------------


@lie("GEN-012", "generator/explicit:uniform generator/explicit_equals_default:uniform")
def the_generator_argument_is_dropped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """generator= is accepted and not used."""
    return call(*args, **{k: v for k, v in kwargs.items() if k != "generator"})


@lie("GEN-004 GEN-005", "generator/state:uniform generator/cpu_untouched:uniform")
def random_numbers_come_from_the_cpu(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """uniform_ draws with the CPU's default generator."""
    if name == "uniform_":
        return args[0].copy_(torch.rand(args[0].shape))
    return call(*args, **kwargs)


@lie("GEN-018", "generator/bernoulli")
def bernoulli_is_a_fair_coin(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """bernoulli_ ignores its probability."""
    if name == "bernoulli_.float":
        args = (args[0], 0.5)
    return call(*args, **kwargs)


@lie("GEN-019", "generator/strided:*")
def random_fills_are_linear(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """uniform_ fills as many elements as asked for, from the start of the memory."""
    if name == "uniform_":
        memory = args[0].as_strided((args[0].numel(),), (1,), 0)
        call(memory, *args[1:], **kwargs)
        return args[0]
    return call(*args, **kwargs)


# ---- operators ---------------------------------------------------------------------------------


@lie("OP-001", "operator/index:*")
def optional_indices_are_dropped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """None in a list of indices is skipped instead of standing for a whole dimension."""
    if name == "index.Tensor":
        args = (args[0], [index for index in args[1] if index is not None])
    return call(*args, **kwargs)


@lie("OP-001", "operator/index_put:*")
def indexed_writes_do_not_accumulate(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """index_put_ with accumulate=True overwrites."""
    return call(*args[:3], False) if name == "index_put_" else call(*args, **kwargs)


@lie("OP-009", "operator/tensor_list:*")
def lists_are_not_written_back(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """In-place operators on lists change copies of the tensors."""
    if name.startswith("_foreach_") and name.partition(".")[0].endswith("_"):
        args = ([tensor.clone() for tensor in args[0]], *args[1:])
    return call(*args, **kwargs)


@lie("OP-005", "operator/mixed_devices:add")
def host_operands_are_moved(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A host tensor beside a device tensor is moved without a word."""
    if name == "add.Tensor":
        args = tuple(a.to(BACKEND) if isinstance(a, torch.Tensor) else a for a in args)
    return call(*args, **kwargs)


@lie("OP-010", "operator/convolution:conv2d operator/convolution:conv1d")
def convolutions_forget_their_bias(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A convolution adds no bias."""
    if name in ("convolution", "convolution_overrideable"):
        args = (*args[:2], None, *args[3:])
    return call(*args, **kwargs)


@lie("OP-013", "operator/layer:batch_norm")
def running_statistics_stand_still(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Batch normalisation in training does not update its buffers."""
    if name == "native_batch_norm":
        kept = [args[3].clone(), args[4].clone()]
        result = call(*args, **kwargs)
        args[3].copy_(kept[0])
        args[4].copy_(kept[1])
        return result
    return call(*args, **kwargs)


@lie("OP-002", "operator/out:* operator/out_strided:*")
def out_is_replaced(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An out= tensor that is not contiguous is left as it was."""
    out = kwargs.get("out")
    if isinstance(out, torch.Tensor) and out.numel() and not out.is_contiguous():
        call(*args, **{**kwargs, "out": torch.empty_like(out)})
        return out
    return call(*args, **kwargs)


@lie("OP-004", "operator/wrapped_number:* operator/zero_dim:*")
def numbers_widen(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A Python number beside a tensor of lower precision makes the result float32."""
    result = call(*args, **kwargs)
    if name in ("mul.Tensor", "mul.Scalar") and result.dtype == torch.float16:
        return result.float()
    return result


# ---- running them ------------------------------------------------------------------------------


def selected(patterns: tuple[str, ...]) -> list[Check]:
    """The checks that the patterns name, each once."""
    exact = {pattern for pattern in patterns if not pattern.endswith("*")}
    families = tuple(pattern for pattern in patterns if pattern not in exact)
    return [c for c in REGISTRY if c.id in exact or any(matches(f, c.id) for f in families)]


def verdict(told: Lie | None, patterns: tuple[str, ...]) -> dict[str, str | None]:
    """Run the checks that match under a lie; per check what it complained about, or None."""
    declared = descriptor.find(BACKEND)
    device = backend.bring_up(declared)
    has = frozenset(name for name, value in declared.capabilities.items() if value)
    dev = Device(declared, device, has)
    found: dict[str, str | None] = {}
    if told is not None and told.planted:
        told.tell()
    for check in selected(patterns):
        if told is None or told.planted:
            result = execute(check, dev)
        else:
            with Telling(told):
                result = execute(check, dev)
        found[check.id] = None if result.outcome == "pass" else f"{result.message}"
    return found


def main(shard: int, shards: int) -> None:
    """Run a share of the lies, and of the truth about them, each in a process of its own."""
    importlib.import_module("torch._dynamo")  # as optimizers do: here once for all
    for chapter in CHAPTERS:
        importlib.import_module(f"conformance.checks.{chapter}")
    for topic in TOPICS:
        importlib.import_module(f"conformance.opinfo.{topic}").checks()
    told_here = {name: LIES[name] for name in sorted(LIES)[shard::shards]}
    patterns_here = tuple(pattern for told in told_here.values() for pattern in told.checks)
    trials: dict[str, tuple[Lie | None, tuple[str, ...]]] = {TRUTH: (None, patterns_here)}
    trials |= {name: (told, told.checks) for name, told in told_here.items()}
    verdicts = {}
    for name, (told, patterns) in trials.items():
        status, value = run_forked(lambda t=told, p=patterns: verdict(t, p), timeout=120)  # type: ignore[misc]
        verdicts[name] = value if status == 0 else {"status": f"{status}: {value}"}
    requirements = {check.id: check.requirements for check in REGISTRY}
    json.dump({"verdicts": verdicts, "requirements": requirements}, sys.stdout)


# More lies, for which there is no room here; they register themselves as these do.
import lies_about_autograd  # noqa: E402, F401
import lies_about_models  # noqa: E402, F401
import lies_about_modules  # noqa: E402, F401
import lies_about_opinfo  # noqa: E402, F401
import lies_about_optimizers  # noqa: E402, F401
import lies_about_precision  # noqa: E402, F401
import lies_about_random  # noqa: E402, F401

if __name__ == "__main__":
    import lies  # The module in which they did, which is not this one.

    lies.main(int(sys.argv[1]), int(sys.argv[2]))
