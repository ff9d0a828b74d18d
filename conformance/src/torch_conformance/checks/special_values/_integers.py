# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: integer types, their limits, and wrapped integers."""

from __future__ import annotations

import torch
from torch import Tensor

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def limits(dtype: torch.dtype) -> Tensor:
    """The smallest, largest and middle numbers of an integer type."""
    info = torch.iinfo(dtype)
    middle = 1 << (info.bits // 2)
    numbers = [0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1, middle, middle - 1]
    return torch.tensor(numbers + ([-1, -2, -middle] if info.min else []), dtype=dtype)


def wrapped(rows: list[list[int]], dtype: torch.dtype) -> Tensor:
    """Integers of any size, modulo what a type has bits for."""
    info = torch.iinfo(dtype)
    span = 1 << info.bits
    return torch.tensor(
        [[(v - info.min) % span + info.min for v in row] for row in rows], dtype=dtype
    )
