# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of copies and conversions."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie


@lie("COPY-006", "copy/strides_kept:*")
def moving_makes_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor that is moved to another device loses its strides."""
    if name == "_to_copy":
        kwargs = {**kwargs, "memory_format": torch.contiguous_format}
    return call(*args, **kwargs)


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
