# SPDX-License-Identifier: BSD-3-Clause
"""The same values in other arrangements of memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def dense_only(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """`change` for tensors that have strides and elements; others stay as they are."""

    def changed(tensor: Tensor) -> Tensor:
        return change(tensor) if tensor.layout == torch.strided and tensor.numel() else tensor

    return changed


def garbage(tensor: Tensor) -> Tensor:
    """Fill a tensor with what shows up where it must not: NaN, or a number nobody computes."""
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor.fill_(float("nan"))
    return tensor.fill_(True if tensor.dtype == torch.bool else 77)


def gaps(tensor: Tensor) -> Tensor:
    """Every other element of a larger memory, the first one left out, too."""
    memory = garbage(torch.empty((*tensor.shape, 2), dtype=tensor.dtype))
    return memory[..., 1].copy_(tensor)


def transposed(tensor: Tensor) -> Tensor:
    """Dimensions in the reverse order in memory."""
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).clone(memory_format=torch.contiguous_format).permute(order)


def offset(tensor: Tensor) -> Tensor:
    """Contiguous, but not at the start of its storage."""
    memory = garbage(torch.empty(tensor.numel() + 5, dtype=tensor.dtype))
    return memory[3 : 3 + tensor.numel()].view(tensor.shape).copy_(tensor)


def expanded(tensor: Tensor) -> Tensor:
    """The first row stands for all: other values, stride 0."""
    if tensor.dim() == 0 or tensor.size(0) < 2:
        return tensor
    return tensor[:1].expand_as(tensor)
