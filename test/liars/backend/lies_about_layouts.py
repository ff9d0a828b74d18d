# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes with operands that are not dense: permuted, sliced, repeated, or of many dimensions."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie


def _as_dense(tensor: torch.Tensor) -> torch.Tensor:
    """The elements that are there if the strides are not looked at; itself if that is too far."""
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    if tensor.storage_offset() + tensor.numel() > elements:
        return tensor
    strides = torch.empty(tensor.shape, device="meta").stride()
    return tensor.as_strided(tensor.shape, strides)


def _is_odd(tensor: Any) -> bool:
    """Whether it has three dimensions or more, in another order than memory."""
    return isinstance(tensor, torch.Tensor) and tensor.dim() > 2 and not tensor.is_contiguous()


@lie("LAYOUT-001", "layout/elementwise:add")
def permuted_operands_are_read_in_order_of_memory(
    name: str, call: Call, args: Any, kwargs: Any
) -> Any:
    """add reads a second operand of three dimensions as if it were dense."""
    if name == "add.Tensor" and _is_odd(args[1]):
        args = (args[0], _as_dense(args[1]))
    return call(*args, **kwargs)


@lie("LAYOUT-002", "layout/in_place:fill_")
def fills_of_slices_fill_the_gaps(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """fill_ of every second element of a row fills the whole row."""
    x = args[0]
    if name == "fill_.Scalar" and x.numel() and x.dim() > 1 and x.stride(-1) == 2:
        row = x.as_strided((*x.shape[:-1], 2 * x.size(-1) - 1), (*x.stride()[:-1], 1))
        call(row, *args[1:], **kwargs)
        return x
    return call(*args, **kwargs)


@lie("LAYOUT-003", "layout/reduction:sum")
def sums_of_permuted_operands_are_of_others(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """sum along a dimension reads an operand of three dimensions as if it were dense."""
    if name == "sum.dim_IntList" and _is_odd(args[0]):
        args = (_as_dense(args[0]), *args[1:])
    return call(*args, **kwargs)


@lie("LAYOUT-004", "layout/moved:flip")
def the_last_of_many_dimensions_is_not_flipped(
    name: str, call: Call, args: Any, kwargs: Any
) -> Any:
    """flip turns two dimensions at most."""
    if name == "flip":
        args = (args[0], args[1][:2])
    return call(*args, **kwargs)


@lie("LAYOUT-005", "layout/indexed:index_select")
def indices_of_a_slice_are_those_beside_each_other(
    name: str, call: Call, args: Any, kwargs: Any
) -> Any:
    """index_select reads indices as if they were dense."""
    if name == "index_select":
        args = (args[0], args[1], _as_dense(args[2]))
    return call(*args, **kwargs)


@lie("LAYOUT-006", "layout/window:max_pool2d")
def windows_are_those_of_a_dense_image(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Pooling reads an image as if it were dense."""
    if name.startswith("max_pool2d") and _is_odd(args[0]):
        args = (_as_dense(args[0]), *args[1:])
    return call(*args, **kwargs)


@lie("LAYOUT-007", "layout/gradient:relu")
def incoming_gradients_are_read_as_dense(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradient of relu reads what comes in as if it were dense."""
    if name == "threshold_backward":
        args = (_as_dense(args[0]), *args[1:])
    return call(*args, **kwargs)
