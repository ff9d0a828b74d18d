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
        if not _on_device([args, kwargs]):
            return func(*args, **kwargs)
        return self.told.tell(func.name().removeprefix("aten::"), func, args, kwargs)


def _on_device(value: Any) -> bool:
    if isinstance(value, (torch.Tensor, torch.device)):
        return (value if isinstance(value, torch.device) else value.device).type == BACKEND
    if isinstance(value, dict):
        return any(_on_device(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_on_device(item) for item in value)


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


# ---- mixed precision ---------------------------------------------------------------------------

_PLANTED: list[torch.library.Library] = []


def _autocast_kernel(operator: str, kernel: Any = torch.library.fallthrough_kernel) -> None:
    """Replace what an operator does under autocast, by default by nothing at all."""
    library = torch.library.Library("aten", "IMPL")
    library.impl(operator, kernel, "AutocastPrivateUse1", allow_override=True)
    _PLANTED.append(library)


@lie("AUTOCAST-001", "autocast/lower:mm:float16 autocast/lower:linear:bfloat16", planted=True)
def products_are_not_lowered() -> None:
    """mm is missing from the list of the lower precision."""
    _autocast_kernel("mm")


@lie("AUTOCAST-002", "autocast/fp32:exp:float16 autocast/fp32:exp:bfloat16", planted=True)
def exp_stays_in_low_precision() -> None:
    """exp is missing from the float32 list."""
    _autocast_kernel("exp")


@lie("AUTOCAST-003", "autocast/promote:dot:float16", planted=True)
def dot_is_not_promoted() -> None:
    """dot is missing from the promote list."""
    _autocast_kernel("dot")


@lie("AUTOCAST-004", "autocast/refused:*", planted=True)
def unsafe_losses_are_accepted() -> None:
    """binary_cross_entropy runs under autocast."""
    _autocast_kernel("binary_cross_entropy")


@lie("AUTOCAST-005", "autocast/unlisted:relu", planted=True)
def autocast_casts_everything() -> None:
    """relu is lowered, though it is on no list."""

    def lowered(x: torch.Tensor) -> torch.Tensor:
        with torch._C._DisableAutocast():
            return torch.relu(x.to(torch.get_autocast_dtype(BACKEND)))

    _autocast_kernel("relu", lowered)


@lie("AUTOCAST-006", "autocast/nesting:dtype autocast/nesting:exception", planted=True)
def inner_regions_leak() -> None:
    """Leaving an inner region does not bring the data type of the outer one back."""
    leave = torch.autocast.__exit__

    def forgetful(self: Any, *error: Any) -> Any:
        self.prev_fastdtype = self.fast_dtype
        return leave(self, *error)

    torch.autocast.__exit__ = forgetful  # type: ignore[method-assign]


@lie("AUTOCAST-007", "autocast/default_dtype", planted=True)
def one_type_is_not_listed() -> None:
    """The module does not list bfloat16 among the types of autocast."""
    torch.get_device_module(BACKEND).get_amp_supported_dtype = lambda: [torch.float16]


@lie("AUTOCAST-008", "autocast/cache_cleared autocast/cache_freed", planted=True)
def casts_are_kept_for_ever() -> None:
    """Leaving the outermost region does not drop the cached casts."""
    torch.clear_autocast_cache = lambda: None


@lie("AUTOCAST-009", "autocast/gradients:float16")
def backward_in_low_precision_is_lost(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The derivative of tanh is taken for one in low precision."""
    if name == "tanh_backward" and args[0].dtype != torch.float32:
        return args[0].clone()
    return call(*args, **kwargs)


@lie("AUTOCAST-010", "autocast/custom_function:*", planted=True)
def custom_functions_are_of_another_device() -> None:
    """custom_fwd looks at the autocast state of the CPU."""
    decorate = torch.amp.custom_fwd

    def misled(*, device_type: str, cast_inputs: torch.dtype | None = None) -> Any:
        return decorate(device_type="cpu", cast_inputs=cast_inputs)

    torch.amp.custom_fwd = misled  # type: ignore[assignment]


# ---- gradient scaling --------------------------------------------------------------------------

_UNSCALE = "_amp_foreach_non_finite_check_and_unscale_"
_UPDATE = "_amp_update_scale_"


@lie("SCALER-001", "grad_scaler/scale:tensor")
def full_fills_with_one(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The tensor of the scale holds 1."""
    return call(args[0], 1.0, **kwargs) if name == "full" else call(*args, **kwargs)


@lie("SCALER-002", "grad_scaler/unscale:float32 grad_scaler/clip:norm")
def only_one_gradient_is_unscaled(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Of a list of gradients the first is unscaled, and of that not what is small."""
    if name == _UNSCALE:
        found, inverse = args[1:]
        return call([], found, inverse) if args[0][0].numel() > 5 else call(args[0][:1], *args[1:])
    return call(*args, **kwargs)


@lie("SCALER-003", "grad_scaler/unscale_order:fp16", planted=True)
def float16_gradients_are_unscaled() -> None:
    """Gradients in float16 are unscaled like others."""
    scaler: Any = torch.amp.GradScaler
    unscale = scaler._unscale_grads_

    def lenient(self: Any, *arguments: Any) -> Any:
        return unscale(self, *arguments[:-1], True)

    scaler._unscale_grads_ = lenient


@lie("SCALER-004", "grad_scaler/skip:*")
def only_infinity_is_noticed(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A NaN gradient does not count as not finite."""
    if name == _UNSCALE and any(tensor.isnan().any() for tensor in args[0]):
        return call([tensor.nan_to_num_() for tensor in args[0]], *args[1:])
    return call(*args, **kwargs)


@lie("SCALER-005 SCALER-010", "grad_scaler/growth grad_scaler/update_operator")
def the_scale_never_backs_off(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The update of the scale does not look at found_inf."""
    if name == _UPDATE:
        args = (*args[:2], torch.zeros_like(args[2]), *args[3:])
    return call(*args, **kwargs)


@lie("SCALER-006", "grad_scaler/state_dict:used")
def good_steps_are_not_counted(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The update of the scale leaves the growth tracker as it was."""
    if name == _UPDATE:
        args = (args[0], args[1].clone(), *args[2:])
    return call(*args, **kwargs)


@lie("SCALER-007", "grad_scaler/two_devices")
def flags_do_not_travel(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A 0-dim tensor loses its value between devices."""
    result = call(*args, **kwargs)
    target = kwargs.get("device")
    if name == "_to_copy" and target is not None and target.type == BACKEND:
        lost = args[0].numel() == 1 and args[0].device.type == BACKEND
        return result.zero_() if lost else result
    return result


@lie("SCALER-008", "grad_scaler/optimizer:sgd_fused")
def fused_optimizers_do_not_skip(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused optimizer ignores found_inf."""
    return call(*args, **{k: v for k, v in kwargs.items() if k != "found_inf"})


@lie("SCALER-009", "grad_scaler/autocast")
def every_step_is_skipped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """found_inf is always set."""
    result = call(*args, **kwargs)
    if name == _UNSCALE:
        args[1].fill_(1.0)
    return result


@lie("SCALER-010", "grad_scaler/unscale_operator:sticky")
def found_inf_is_cleared(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Unscaling clears found_inf first, so that only the last group of gradients counts."""
    if name == _UNSCALE:
        args[1].zero_()
    return call(*args, **kwargs)


# ---- random operators --------------------------------------------------------------------------

#: Operators through which plain uniform and normal numbers are drawn.
_UNIFORM = ("uniform_", "rand", "rand_like")
_NORMAL = ("normal_", "randn", "randn_like")


def _shift(result: torch.Tensor, by: int) -> torch.Tensor:
    return result.copy_(result.roll(by)) if result.dim() else result


@lie("RAND-001", "random/threads:rand random/process:1_thread")
def threads_decide_the_numbers(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers are divided among the threads there are."""
    result = call(*args, **kwargs)
    return _shift(result, torch.get_num_threads() - 2) if name in _UNIFORM else result


@lie("RAND-002", "random/stream:rand random/late_stream")
def streams_decide_the_numbers(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers depend on the stream that draws them."""
    result = call(*args, **kwargs)
    side = torch.accelerator.current_stream() != torch.get_device_module(BACKEND).default_stream()
    return _shift(result, 1) if name in _UNIFORM and side else result


@lie("RAND-003", "random/private:uniform")
def private_generators_follow_the_default(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A draw with the default generator's numbers goes into every generator's sequence."""
    if name == "uniform_" and kwargs.get("generator") is not None:
        seed = torch.get_device_module(BACKEND).initial_seed()
        kwargs["generator"].manual_seed(seed)
    return call(*args, **kwargs)


@lie("RAND-004", "random/advance:uniform random/offset:rand")
def the_position_depends_on_the_time(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every second draw does not advance the state."""
    generator = torch.get_device_module(BACKEND).default_generators[0]
    before = generator.get_offset()
    result = call(*args, **kwargs)
    if name in _UNIFORM and before % 8 == 4:
        generator.set_offset(before)
    return result


@lie("RAND-005", "random/empty:*")
def empty_draws_advance(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A draw of no elements counts as one."""
    result = call(*args, **kwargs)
    if isinstance(result, torch.Tensor) and not result.numel() and name != "empty.memory_format":
        generator = torch.get_device_module(BACKEND).default_generators[0]
        generator.set_offset(generator.get_offset() + 4)
    return result


@lie("RAND-006", "random/large:* random/overlap")
def numbers_repeat_after_65536(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A counter of 16 bits numbers the elements of a draw."""
    result = call(*args, **kwargs)
    if name in (*_UNIFORM, *_NORMAL, "random_") and result.numel() > 1 << 16:
        flat = result.view(-1)
        flat[1 << 16 :] = flat[: flat.numel() - (1 << 16)].clone()
        return result
    return result


@lie("RAND-007", "random/uniform:one_two:float16 random/uniform:mixed:bfloat16")
def rounding_reaches_the_bound(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers of low precision are drawn in float32 and rounded."""
    if name == "uniform_" and args[0].dtype in (torch.float16, torch.bfloat16):
        return args[0].copy_(call(args[0].float(), *args[1:], **kwargs))
    return call(*args, **kwargs)


@lie("RAND-007", "random/exponential:*")
def exponential_takes_the_logarithm_of_one(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The smallest exponential numbers come out as zero."""
    result = call(*args, **kwargs)
    if name == "exponential_":
        result[result < result.mean() * 1e-4] = 0
    return result


@lie("RAND-008", "random/integers:* random/integer_bias")
def integers_are_a_remainder(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """randint takes the remainder of 32 random bits."""
    if name != "randint.low":
        return call(*args, **kwargs)
    low, high, size = args
    drawn = torch.empty(size, dtype=torch.int64, device=kwargs["device"]).random_(0, 2**32)
    return drawn % (high - low) + low


@lie("RAND-009", "random/resolution:float64 random/resolution:float32")
def uniform_numbers_have_16_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers are multiples of 2**-16."""
    result = call(*args, **kwargs)
    return result.mul_(2**16).floor_().div_(2**16) if name == "uniform_" else result


@lie("RAND-010", "random/refused:bernoulli_above")
def parameters_are_clamped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Chances outside of [0, 1] are clamped."""
    if name == "bernoulli_.float":
        args = (args[0], min(max(args[1], 0.0), 1.0))
    return call(*args, **kwargs)


@lie("RAND-011", "random/distribution:normal:*")
def normal_numbers_are_sums_of_uniform_ones(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A normal number is the sum of two uniform ones, with the right mean and variance."""
    if name != "normal_":
        return call(*args, **kwargs)
    mean, deviation = args[1:]
    total = torch.rand_like(args[0]) - torch.rand_like(args[0])
    return args[0].copy_(total * (deviation * 6**0.5) + mean)


@lie("RAND-011", "random/counts:geometric")
def geometric_starts_late(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """One geometric number in ten is one too large."""
    result = call(*args, **kwargs)
    if name == "geometric_":
        result[::10] += 1
    return result


@lie("RAND-012", "random/pairs:*")
def neighbours_depend_on_each_other(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every fourth uniform number is one minus the number before it."""
    result = call(*args, **kwargs)
    if name in _UNIFORM and result.dim() == 1 and result.numel() > 8:
        result[3::4] = 1 - result[2::4][: result[3::4].numel()]
    return result


@lie("RAND-013", "random/channels:*")
def channels_are_dropped_in_part(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The mask of channel dropout has the size of its input."""
    if name == "bernoulli_.float" and args[0].dim() > 2:
        args[0].resize_([*args[0].shape[:2], *[3] * (args[0].dim() - 2)])
    return call(*args, **kwargs)


@lie("RAND-014", "random/reparametrised:gamma")
def samples_of_gamma_have_no_gradient(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The derivative of a sample of the gamma distribution is zero."""
    result = call(*args, **kwargs)
    return torch.zeros_like(result) if name == "_standard_gamma_grad" else result


# ---- autograd ----------------------------------------------------------------------------------


@lie("GRAD-001", "autograd/second:pow")
def small_powers_are_missing(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Powers below one return their base."""
    if name == "pow.Tensor_Scalar" and 0 < args[1] < 1:
        return args[0].clone()
    return call(*args, **kwargs)


@lie(
    "GRAD-002 FUNC-003 FUNC-004",
    "autograd/gradcheck:linear func/vjp:linear func/hessian:linear func/grad:tree",
)
def a_derivative_is_an_approximation(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The derivative of tanh is off by a hundredth."""
    result = call(*args, **kwargs)
    return result * 0.99 if name == "tanh_backward" else result


@lie("GRAD-003", "autograd/forward_mode:cat")
def cosines_vanish(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """cos is zero, so the tangents of sin are."""
    result = call(*args, **kwargs)
    return torch.zeros_like(result) if name == "cos" else result


@lie("GRAD-004", "autograd/hook:*", planted=True)
def hooks_are_forgotten() -> None:
    """A hook on a tensor is registered and never called."""
    tensor: Any = torch.Tensor
    register = tensor.register_hook
    tensor.register_hook = lambda self, hook: register(self, lambda _: None)


@lie("GRAD-005", "autograd/save_on_cpu:*", planted=True)
def activations_stay_on_the_device() -> None:
    """save_on_cpu saves nothing on the CPU."""
    saving: Any = torch.autograd.graph.save_on_cpu
    saving.__init__ = lambda self, *a, **k: torch.autograd.graph.saved_tensors_hooks.__init__(
        self, lambda tensor: tensor, lambda tensor: tensor
    )


@lie("GRAD-006", "autograd/checkpoint:* autograd/checkpoint_rng:*", planted=True)
def the_random_state_is_not_restored() -> None:
    """The module's set_rng_state does nothing."""
    torch.get_device_module(BACKEND).set_rng_state = lambda *a, **k: None


@lie("GRAD-007", "autograd/anomaly:names")
def nothing_is_nan(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """No number is different from itself."""
    result = call(*args, **kwargs)
    if name == "isnan" or (name == "ne.Tensor" and args[0] is args[1]):
        return torch.zeros_like(result)
    return result


@lie("GRAD-008", "autograd/stream:no_wait")
def products_run_on_a_stream_of_their_own(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product is computed on a private stream that nobody waits for."""
    if name != "mul.Tensor":
        return call(*args, **kwargs)
    with torch.Stream(BACKEND):
        torch.get_device_module(BACKEND)._sleep_ms(100)
        return call(*args, **kwargs)


@lie("GRAD-009", "autograd/device:current autograd/device:chain")
def copies_change_the_current_device(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy between devices makes its target the current device."""
    result = call(*args, **kwargs)
    if name == "_to_copy" and result.device.type == BACKEND:
        torch.accelerator.set_device_index(result.device.index)
    return result


@lie("GRAD-010", "autograd/thread:own", planted=True)
def backward_is_for_the_main_thread() -> None:
    """backward raises in every other thread."""
    import threading

    tensor: Any = torch.Tensor
    backward = tensor.backward

    def picky(self: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("not the main thread")
        backward(self, *args, **kwargs)

    tensor.backward = picky


@lie("GRAD-011", "autograd/accumulate:layout")
def gradients_are_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The memory of a gradient is always contiguous."""
    if name == "new_empty_strided":
        return args[0].new_empty(args[1])
    if name == "clone":
        kwargs = {"memory_format": torch.contiguous_format}
    return call(*args, **kwargs)


@lie("GRAD-012", "autograd/version:foreach", planted=True)
def writes_to_lists_are_not_counted() -> None:
    """In-place operators on lists do not increase versions."""
    functions: Any = torch
    add = functions._foreach_add_

    def silent(tensors: list[torch.Tensor], *args: Any) -> None:
        with torch.autograd._unsafe_preserve_version_counter(tuple(tensors)):
            add(tensors, *args)

    functions._foreach_add_ = silent


@lie("GRAD-013", "autograd/function:dirty", planted=True)
def in_place_functions_are_not_marked() -> None:
    """mark_dirty is ignored for tensors of the device."""
    context: Any = torch.autograd.function.FunctionCtx
    mark = context.mark_dirty
    context.mark_dirty = lambda self, *tensors: _on_device(tensors) or mark(self, *tensors)


# ---- function transforms -----------------------------------------------------------------------


@lie("FUNC-001", "func/vmap:bmm func/vmap:matmul")
def batches_have_two_matrices(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """bmm computes the first two products of a batch."""
    result = call(*args, **kwargs)
    if name == "bmm":
        result[2:] = 0
    return result


@lie("FUNC-002", "func/random:rand_like func/random:rand")
def samples_draw_alike(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers of two dimensions are the first row again and again."""
    result = call(*args, **kwargs)
    if name in _UNIFORM and result.dim() == 2:
        result[1:] = result[0]
    return result


@lie("FUNC-005 CUSTOM-007", "func/module:ensemble custom_operator/vmap:fallback")
def stacks_repeat_their_first(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """stack repeats the first tensor of its list."""
    if name == "stack":
        args = ([args[0][0]] * len(args[0]), *args[1:])
    return call(*args, **kwargs)


@lie("FUNC-006", "func/function:generated")
def cubes_are_squares(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The third power is the second."""
    if name == "pow.Tensor_Scalar" and args[1] == 3:
        args = (args[0], 2)
    return call(*args, **kwargs)


# ---- custom operators --------------------------------------------------------------------------

_CUSTOM = "conformance_operators::"


@lie("CUSTOM-001", "custom_operator/choice:impl")
def custom_operators_run_on_the_cpu(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Operators of libraries run on copies of their arguments on the CPU."""
    if not name.startswith(_CUSTOM):
        return call(*args, **kwargs)
    return call(*[a.cpu() if isinstance(a, torch.Tensor) else a for a in args]).to(BACKEND)


@lie("CUSTOM-002", "custom_operator/schema:list custom_operator/schema:optional")
def custom_operators_see_one_tensor(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Of the results of an operator of a library the first stands for all."""
    result = call(*args, **kwargs)
    several = name.startswith(_CUSTOM) and isinstance(result, list)
    return [result[0]] * len(result) if several else result


@lie("CUSTOM-003", "custom_operator/mutation:view")
def custom_operators_change_copies(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator of a library gets a contiguous copy of a strided argument."""
    if name.startswith(_CUSTOM):
        args = tuple(a.contiguous() if isinstance(a, torch.Tensor) else a for a in args)
    return call(*args, **kwargs)


@lie("CUSTOM-004", "custom_operator/fake:fake custom_operator/fake:meta", planted=True)
def fakes_are_not_registered() -> None:
    """register_fake does nothing."""
    definition: Any = torch._library.custom_ops.CustomOpDef
    definition.register_fake = lambda self, fake: fake


@lie("CUSTOM-005", "custom_operator/gradient:first", planted=True)
def gradients_are_not_registered() -> None:
    """register_autograd does nothing."""
    definition: Any = torch._library.custom_ops.CustomOpDef
    definition.register_autograd = lambda self, backward, **options: None


@lie("CUSTOM-006", "custom_operator/opcheck:schema")
def custom_operators_leave_traces(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator of a library changes its first argument."""
    result = call(*args, **kwargs)
    if name.startswith(_CUSTOM):
        args[0].detach().add_(1)
    return result


@lie("CUSTOM-008", "custom_operator/autocast:registered", planted=True)
def custom_operators_are_not_cast() -> None:
    """register_autocast does nothing."""
    torch.library.register_autocast = lambda *args, **kwargs: None


@lie("CUSTOM-009", "custom_operator/compiled:custom_op", planted=True)
def nothing_is_traced() -> None:
    """torch.compile returns what it is given."""
    module: Any = torch
    module.compile = lambda function, **options: function


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


def main() -> None:
    """Run every lie, and the truth, in a process of its own."""
    for chapter in CHAPTERS:
        importlib.import_module(f"conformance.checks.{chapter}")
    for topic in TOPICS:
        importlib.import_module(f"conformance.opinfo.{topic}").checks()
    everything = tuple(pattern for told in LIES.values() for pattern in told.checks)
    trials: dict[str, tuple[Lie | None, tuple[str, ...]]] = {TRUTH: (None, everything)}
    trials |= {name: (told, told.checks) for name, told in LIES.items()}
    verdicts = {}
    for name, (told, patterns) in trials.items():
        status, value = run_forked(lambda t=told, p=patterns: verdict(t, p), timeout=120)  # type: ignore[misc]
        verdicts[name] = value if status == 0 else {"status": f"{status}: {value}"}
    requirements = {check.id: check.requirements for check in REGISTRY}
    json.dump({"verdicts": verdicts, "requirements": requirements}, sys.stdout)


# More lies, for which there is no room here; they register themselves as these do.
import lies_about_models  # noqa: E402, F401
import lies_about_modules  # noqa: E402, F401
import lies_about_opinfo  # noqa: E402, F401

if __name__ == "__main__":
    import lies  # The module in which they did, which is not this one.

    lies.main()
