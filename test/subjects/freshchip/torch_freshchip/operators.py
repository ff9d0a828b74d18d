# SPDX-License-Identifier: BSD-3-Clause
"""The twelve operators.

PyTorch derives more from them: `ones` needs `empty` and `fill_`, indexing and transposing need
`as_strided`, and `add`, `add_` and ``+`` all arrive at `add.out`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_freshchip.memory import METADATA, allocate, host

Number = bool | int | float | complex


def empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    memory_format: torch.memory_format | None = None,
    **_: Any,
) -> torch.Tensor:
    """Uninitialised memory; the meta device knows the strides of every memory format."""
    plan = torch.empty(size, dtype=dtype, memory_format=memory_format, device="meta")
    return allocate(plan.size(), plan.stride(), plan.dtype)


def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    """Uninitialised memory of a given geometry."""
    return allocate(size, stride, dtype or torch.get_default_dtype())


def copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """To the device, from the device, and between dtypes and strides on it."""
    host(target).copy_(host(source))
    return target


def as_strided(
    tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> torch.Tensor:
    """A view: the base of indexing, transposing, expanding."""
    operator = torch.ops.aten.as_strided.default
    made: torch.Tensor = operator.redispatch(METADATA, tensor, size, stride, offset)
    return made


def view(tensor: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """The same elements in another shape."""
    made: torch.Tensor = torch.ops.aten.view.default.redispatch(METADATA, tensor, size)
    return made


def item(tensor: torch.Tensor) -> Number:
    """The value of one element."""
    number: Number = host(tensor).item()
    return number


def fill(tensor: torch.Tensor, value: Number) -> torch.Tensor:
    """Write one value everywhere."""
    host(tensor).fill_(value)
    return tensor


def zero(tensor: torch.Tensor) -> torch.Tensor:
    """Write zeros."""
    return fill(tensor, 0)


def add(a: torch.Tensor, b: torch.Tensor, *, alpha: Number = 1, out: torch.Tensor) -> torch.Tensor:
    """a + alpha * b"""
    return _write(out, torch.add(host(a), host(b), alpha=alpha))


def mul(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """a * b"""
    return _write(out, torch.mul(host(a), host(b)))


def matrix_product(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """a @ b"""
    return _write(out, torch.mm(host(a), host(b)))


def total(
    tensor: torch.Tensor,
    dim: list[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: torch.Tensor,
) -> torch.Tensor:
    """The sum over dimensions."""
    return _write(out, torch.sum(host(tensor), dim, keepdim, dtype=dtype))


OPERATORS: dict[str, Callable[..., Any]] = {
    "empty.memory_format": empty,
    "empty_strided": empty_strided,
    "copy_": copy,
    "as_strided": as_strided,
    "view": view,
    "_local_scalar_dense": item,
    "fill_.Scalar": fill,
    "zero_": zero,
    "add.out": add,
    "mul.out": mul,
    "mm.out": matrix_product,
    "sum.IntList_out": total,
}

# What is registered lasts as long as this object.
_library = torch.library.Library("aten", "IMPL")


def register() -> None:
    """Give PyTorch the operators."""
    for name, function in OPERATORS.items():
        _library.impl(name, function, "PrivateUse1")


def _write(out: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    if out.size() != result.size():
        out.resize_(result.size())
    host(out).copy_(result)
    return out
