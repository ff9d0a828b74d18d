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
