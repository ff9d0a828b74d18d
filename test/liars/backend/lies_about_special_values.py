# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes at the corners of functions and at the limits of data types."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie


@lie("SPECIAL-006", "special_values/corner:*")
def the_corner_belongs_to_the_other_piece(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """threshold keeps what is equal to the threshold."""
    result = call(*args, **kwargs)
    if name == "threshold":
        return torch.where(args[0] == args[1], args[0], result)
    return result


@lie("SPECIAL-008", "special_values/shift:*")
def shifts_count_in_five_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A shift takes five bits of its count."""
    if "shift" in name and isinstance(args[1], torch.Tensor):
        args = (args[0], args[1] & 31, *args[2:])
    return call(*args, **kwargs)


@lie("SPECIAL-010", "special_values/wide_integer:*")
def wide_integers_pass_through_floating_numbers(
    name: str, call: Call, args: Any, kwargs: Any
) -> Any:
    """Results of int64 are computed in double precision."""
    result = call(*args, **kwargs)
    if isinstance(result, torch.Tensor) and result.dtype == torch.int64 and result.numel() > 1:
        return result.double().long()
    return result


@lie("SPECIAL-011", "special_values/integer_cast:*")
def conversions_to_int8_saturate(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A conversion to int8 keeps the nearest number, not the lowest bits."""
    if name == "_to_copy" and kwargs.get("dtype") == torch.int8 and not args[0].is_complex():
        args = (args[0].clamp(-128, 127),)
    return call(*args, **kwargs)


@lie("SPECIAL-012", "special_values/bound:triangle")
def the_diagonal_is_left_out(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """tril writes what is below the diagonal, without the diagonal itself."""
    if name == "tril":
        args = (args[0], (args[1] if len(args) > 1 else 0) - 1)
    return call(*args, **kwargs)


@lie("SPECIAL-013", "special_values/quotient:*")
def quotients_pass_through_single_precision(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Quotients of integers are computed in float32."""
    result = call(*args, **kwargs)
    if name.startswith(("div", "floor_divide")) and not result.is_floating_point():
        return result.float().to(result.dtype)
    return result


@lie("SPECIAL-001", "special_values/written_zero:fill:float32")
def zeros_are_filled_as_memory(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """fill_ with a value that equals zero clears the memory."""
    if name.startswith("fill_.Scalar") and args[1] == 0:
        args = (args[0], 0.0)
    return call(*args, **kwargs)


@lie("SPECIAL-002 SPECIAL-003", "special_values/bits:flip special_values/subnormal:copy:float32")
def moves_flush_subnormal_numbers(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """flip loads floating numbers into registers that flush subnormal ones to zero."""
    if name == "flip" and args[0].dtype == torch.float32:
        tiny = torch.finfo(torch.float32).smallest_normal
        args = (torch.where(args[0].abs() < tiny, 0.0, args[0]), *args[1:])
    return call(*args, **kwargs)


@lie("SPECIAL-004", "special_values/extreme_pair:hypot:float32")
def hypot_overflows(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """hypot is the square root of a sum of squares."""
    if name == "hypot":
        return (args[0] * args[0] + args[1] * args[1]).sqrt()
    return call(*args, **kwargs)


@lie("SPECIAL-005", "special_values/nan:clamp_min")
def bounds_that_are_nan_are_ignored(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A bound of clamp that is NaN does not bound."""
    if name.startswith("clamp") and any(isinstance(a, torch.Tensor) for a in args[1:]):
        args = [args[0]] + [
            torch.where(a.isnan(), args[0], a) if isinstance(a, torch.Tensor) else a
            for a in args[1:]
        ]
    return call(*args, **kwargs)


@lie("SPECIAL-007", "special_values/corner_gradient:hardtanh:float32")
def gradients_flow_at_the_bound(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradient of hardtanh is not cut off at the bounds themselves."""
    if name == "hardtanh_backward":
        grad, x, low, high = args
        return torch.where((x >= low) & (x <= high), grad, 0.0)
    return call(*args, **kwargs)


@lie("SPECIAL-009", "special_values/integer:add:int32")
def sums_saturate(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Sums of int32 stop at the limits of the type."""
    if name == "add.Tensor" and args[0].dtype == torch.int32 == args[1].dtype:
        return call(args[0].long(), args[1].long()).clamp(-(2**31), 2**31 - 1).to(torch.int32)
    return call(*args, **kwargs)


def _converts(name: str, args: Any, kwargs: Any, target: torch.dtype) -> bool:
    return name == "_to_copy" and kwargs.get("dtype") == target and args[0].dtype == torch.float32


@lie("SPECIAL-014", "special_values/float_rounding:float32")
def conversions_cut_off(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A conversion to bfloat16 takes the upper half of the bits."""
    if _converts(name, args, kwargs, torch.bfloat16):
        bits = args[0].clone().view(torch.int32) & -65_536
        args = (bits.view(torch.float32),)
    return call(*args, **kwargs)


@lie("SPECIAL-015", "special_values/unsigned_cast:uint32")
def wide_unsigned_integers_have_a_sign(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A conversion from uint32 takes the highest bit for a sign."""
    if name == "_to_copy" and args[0].dtype == torch.uint32 and kwargs.get("dtype") is not None:
        args = (args[0].view(torch.int32), *args[1:])
    return call(*args, **kwargs)
