# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of the functions that make tensors."""

from __future__ import annotations

import math
from typing import Any

import torch
from lies import BACKEND, Call, lie, plant

#: The largest number of dimensions that a library of operators takes.
_RANK = 8


def _made_elsewhere(result: torch.Tensor) -> bool:
    return result.device.type == BACKEND


# ---- where and what ----------------------------------------------------------------------------


@lie("FACT-001", "factory/value:linspace")
def linspace_never_arrives(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """linspace divides by the number of points, not of the steps between them."""
    if name == "linspace" and args[2] > 1:
        start, end, points = args
        args = (start, start + (end - start) * (points - 1) / points, points)
    return call(*args, **kwargs)


@lie("FACT-001", "factory/large:arange_wide")
def ranges_are_counted_in_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """arange of whole numbers computes them in float32."""
    result = call(*args, **kwargs)
    if name.startswith("arange") and not result.is_floating_point():
        return result.float().to(result.dtype)
    return result


@lie("FACT-001", "factory/value:arange_fraction")
def ranges_are_counted_in_single_precision(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The number of elements of arange is computed in float32."""
    result = call(*args, **kwargs)
    if name == "arange.start_step":
        start, end, step = (torch.tensor(float(number)) for number in args[:3])
        return result[: int(((end - start) / step).ceil())].clone()
    return result


@lie("FACT-002", "factory/dtype_inferred:full")
def full_is_always_floating(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """full without dtype= takes the default data type, whatever it is filled with."""
    if name == "full" and kwargs.get("dtype") is None:
        kwargs = {**kwargs, "dtype": torch.get_default_dtype()}
    return call(*args, **kwargs)


@lie("FACT-003 OP-008", "factory/placement:randperm operator/device_argument:tril_indices")
def results_of_the_fallback_stay_on_the_host(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Factories that run on the CPU do not bring their result to the device."""
    if name in ("randperm", "tril_indices", "triu_indices"):
        kwargs = {**kwargs, "device": torch.device("cpu")}
    return call(*args, **kwargs)


@lie("FACT-004", "factory/second_device:zeros factory/second_device:empty")
def the_device_index_is_ignored(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every allocation is on device 0."""
    if "device" in kwargs:
        kwargs = {**kwargs, "device": torch.device(BACKEND, 0)}
    return call(*args, **kwargs)


@lie("FACT-005", "factory/bad_index:count factory/bad_index:large factory/bad_index:integer")
def device_indices_wrap_around(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A device index past the last device becomes one that exists."""
    device = kwargs.get("device")
    if device is not None and device.type == BACKEND and device.index is not None:
        count = torch.accelerator.device_count()
        kwargs = {**kwargs, "device": torch.device(BACKEND, device.index % count)}
    return call(*args, **kwargs)


# ---- like others -------------------------------------------------------------------------------


@lie("FACT-006", "factory/like_dtype:zeros_like:int32 factory/like_dtype:ones_like:float64")
def like_factories_choose_the_dtype(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """zeros_like and ones_like without dtype= take the default data type."""
    if name in ("zeros_like", "ones_like") and kwargs.get("dtype") is None:
        kwargs = {**kwargs, "dtype": torch.get_default_dtype()}
    return call(*args, **kwargs)


@lie("FACT-006", "factory/like_strides:transposed factory/like_strides:channels_last")
def like_factories_are_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """*_like makes contiguous tensors, whatever the strides of the one they are to be like."""
    if name.endswith("_like"):
        kwargs = {**kwargs, "memory_format": torch.contiguous_format}
    return call(*args, **kwargs)


@lie("FACT-007", "factory/strided:padded")
def gaps_get_no_memory(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """empty_strided allocates as many elements as the tensor has, not as its strides span."""
    result = call(*args, **kwargs)
    if name == "empty_strided" and _made_elsewhere(result):
        result.untyped_storage().resize_(result.numel() * result.element_size())
    return result


@lie("FACT-007", "factory/memory_format:channels_last factory/memory_format:channels_last_3d")
def memory_formats_are_dropped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """empty accepts memory_format= and makes contiguous memory."""
    return call(*args, **{k: v for k, v in kwargs.items() if k != "memory_format"})


@lie("FACT-008", "factory/shapes:rank_ten")
def many_dimensions_are_refused(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A library of operators takes eight dimensions, and the backend passes its error on."""
    if name in ("ones", "zeros", "full") and len(args[0]) > _RANK:
        raise RuntimeError(f"tensors have at most {_RANK} dimensions")
    return call(*args, **kwargs)


@lie("FACT-008", "factory/shapes:zero_dim")
def scalars_have_a_dimension(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor without dimensions is made with one, of size one."""
    if name in ("full", "zeros", "ones") and not args[0]:
        args = ([1], *args[1:])
    return call(*args, **kwargs)


# ---- limits ------------------------------------------------------------------------------------


@lie("FACT-009 FACT-020", "factory/too_large factory/bad_size:petabytes")
def failed_allocations_give_no_memory(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor for which there is no memory is returned without any."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        if name != "empty.memory_format":
            raise
        return call([0], **kwargs)


@lie("FACT-009", "factory/bad_size:overflow")
def sizes_wrap_around(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The number of elements is computed in 64 bits, and what does not fit is dropped."""
    if name == "empty.memory_format" and math.prod(args[0]) >= 1 << 64:
        args = ([math.prod(args[0]) % (1 << 64)],)
    return call(*args, **kwargs)


@lie("FACT-010", "factory/pin_memory:empty factory/pin_memory:zeros")
def device_memory_is_pinned(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """pin_memory=True with a device is accepted and not used."""
    return call(*args, **{k: v for k, v in kwargs.items() if k != "pin_memory"})


# ---- from data ---------------------------------------------------------------------------------


@lie("FACT-011", "factory/from_data:numpy")
def double_precision_is_lost_on_the_way(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """float64 from the host becomes float32 on the device."""
    if name == "_to_copy" and args[0].is_cpu and args[0].dtype == torch.float64:
        kwargs = {**kwargs, "dtype": torch.float32}
    return call(*args, **kwargs)


@lie("FACT-012", "factory/asarray_copy:copy factory/tensor_of_tensor")
def copies_in_place_are_aliases(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """clone() of a contiguous tensor returns the tensor's own memory."""
    if name == "clone" and args[0].is_contiguous():
        return args[0].view(args[0].shape)
    if name == "_to_copy" and kwargs.get("dtype") in (None, args[0].dtype):
        there = kwargs.get("device")
        if there in (None, args[0].device):
            return args[0].view(args[0].shape)
    return call(*args, **kwargs)


@lie("FACT-013", "factory/derived:block_diag factory/derived:diag_embed")
def composed_results_stay_on_the_host(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Operators that run on the CPU for want of a kernel leave their result there."""
    result = call(*args, **kwargs)
    return result.cpu() if name in ("block_diag", "diag_embed") else result


@lie("FACT-013", "factory/composed:complex")
def imaginary_parts_are_read_in_a_row(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """torch.complex takes its second part for contiguous."""
    if name == "complex" and not args[1].is_contiguous():
        size = args[1].untyped_storage().nbytes() // args[1].element_size()
        whole = args[1].as_strided((size,), (1,), 0)
        args = (args[0], whole.repeat_interleave(args[1].numel() // size).view(args[1].shape))
    return call(*args, **kwargs)


@lie("FACT-014", "factory/out:arange factory/out:linspace")
def ranges_leave_out_alone(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """arange and linspace fill memory of their own and return the out= tensor as it was."""
    if name.startswith(("arange", "linspace")) and "out" in kwargs:
        call(*args, out=torch.empty_like(kwargs["out"]))
        return kwargs["out"]
    return call(*args, **kwargs)


@lie("FACT-014", "factory/out:strided")
def fills_of_out_are_linear(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """ones(out=) fills as many elements as asked for, from where the tensor starts."""
    out = kwargs.get("out")
    if name == "ones.out" and out.numel():
        out.as_strided((out.numel(),), (1,)).fill_(1)
        return out
    return call(*args, **kwargs)


# ---- properties --------------------------------------------------------------------------------


@lie("FACT-015", "factory/requires_grad:zeros", planted=True)
def new_tensors_are_moved_there() -> None:
    """The backend's own torch.zeros makes the tensor on the host and moves it."""
    zeros: Any = torch.zeros

    def moved(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        return zeros(*args, **kwargs).to(device or "cpu")

    plant(torch, "zeros", moved)


@lie("FACT-021", "factory/requires_grad_integral", planted=True)
def integers_may_require_gradients() -> None:
    """The backend's own torch.zeros forgets requires_grad where it makes no sense."""
    zeros: Any = torch.zeros

    def lenient(*args: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
        made = zeros(*args, **kwargs)
        return made.requires_grad_(requires_grad and made.is_floating_point())

    plant(torch, "zeros", lenient)


@lie("FACT-016", "factory/deterministic_fill:empty:float32")
def deterministic_memory_is_zero(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """In deterministic mode new memory is filled with zeros."""
    result = call(*args, **kwargs)
    return result.zero_() if name.startswith("empty") and _made_elsewhere(result) else result


@lie("FACT-022", "factory/alignment")
def memory_starts_anywhere(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor starts one element after the start of its block."""
    if name == "empty.memory_format" and _made_elsewhere(result := call(*args, **kwargs)):
        larger = call([result.numel() + 1], **kwargs)
        return larger.as_strided(result.shape, result.stride(), 1)
    return call(*args, **kwargs)


@lie("FACT-017", "factory/fresh_memory")
def odd_sizes_overlap(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The allocator rounds sizes down, so that the next tensor starts in the last one's tail."""
    if name == "full" and kwargs.get("dtype") is None and len(args[0]) == 1 and args[0][0]:
        count = args[0][0]
        arena = _ARENA.setdefault("memory", torch.empty(1 << 16, device=BACKEND))
        start = int(_ARENA.setdefault("next", 0))
        _ARENA["next"] = start + count // 8 * 8
        return arena[start : start + count].fill_(args[1])
    return call(*args, **kwargs)


_ARENA: dict[str, Any] = {}


@lie("FACT-018", "factory/module:to")
def scalars_are_not_moved(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor without dimensions stays on the host when it is moved to the device."""
    if name == "_to_copy" and args[0].is_cpu and not args[0].dim():
        kwargs = {**kwargs, "device": torch.device("cpu")}
    return call(*args, **kwargs)


@lie("FACT-023", "factory/meta:to_meta")
def meta_twins_are_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The meta tensor of a device tensor has lost its strides."""
    result = call(*args, **kwargs)
    return result.contiguous() if isinstance(result, torch.Tensor) and result.is_meta else result


@lie("FACT-019", "factory/fill:float32 factory/fill:int8")
def fills_are_linear(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """fill_ and zero_ write as many elements as the view has, from where it starts."""
    if name.startswith(("fill_", "zero_")) and not args[0].is_contiguous():
        call(args[0].as_strided((args[0].numel(),), (1,)), *args[1:])
        return args[0]
    return call(*args, **kwargs)


@lie("FACT-024", "factory/fill_value:overflow")
def fill_values_wrap_around(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """fill_ takes of a number what fits into the tensor's data type."""
    if name == "fill_.Scalar" and args[0].dtype == torch.int8:
        args = (args[0], (int(args[1]) + 128) % 256 - 128)
    return call(*args, **kwargs)
