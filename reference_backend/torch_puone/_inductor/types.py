# SPDX-License-Identifier: BSD-3-Clause
"""Element types as the dialect of csrc/kernels/module.h has them."""

from __future__ import annotations

import math

import torch

#: In memory.
STORED = {
    torch.bool: "Bool",
    torch.uint8: "uint8_t",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int32_t",
    torch.int64: "int64_t",
    torch.uint16: "uint16_t",
    torch.uint32: "uint32_t",
    torch.uint64: "uint64_t",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "float",
    torch.float64: "double",
}


def stored(dtype: torch.dtype) -> str:
    try:
        return STORED[dtype]
    except KeyError:
        raise NotImplementedError(
            f"puone's generated kernels have no elements of {dtype}: use operators for them"
        ) from None


def computed(dtype: torch.dtype) -> str:
    """The type of a value between a load and a store: what ops::read() gives."""
    if dtype == torch.bool:
        return "bool"
    if dtype in (torch.float16, torch.bfloat16):
        return "float"
    return stored(dtype)


def literal(value: float | bool, dtype: torch.dtype) -> str:
    """The constant as an expression of the type computed(dtype)."""
    kind = computed(dtype)
    if kind == "bool":
        return "true" if value else "false"
    if not dtype.is_floating_point:
        return f"{kind}({_integer(int(value))})"
    value = float(value)
    if math.isnan(value):
        return f"kNaN<{kind}>"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}kInfinity<{kind}>"
    return f"{kind}({value!r})"


def _integer(value: int) -> str:
    smallest = -(2**63)
    if value == smallest:
        return f"{smallest + 1}L - 1"
    return f"{value}L" if value < 2**63 else f"{value}UL"
