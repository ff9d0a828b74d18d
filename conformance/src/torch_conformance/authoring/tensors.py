# SPDX-License-Identifier: BSD-3-Clause
"""CPU tensors that the chapters use as inputs: small, distinct values, the same on every run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch_conformance.authoring.device import Device

#: Names of the data types every chapter that expands over data types goes through.
DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)

#: One data type per element size, for checks where only the size of an element matters.
DTYPES_BY_SIZE = ("uint8", "bfloat16", "float32", "int64", "complex128")

_PERIOD = 113  # prime, and small enough for int8 and for the 8 significant bits of bfloat16


def ramp(
    shape: Sequence[int], dtype: torch.dtype = torch.float32, *, positive: bool = False
) -> torch.Tensor:
    """A CPU tensor whose neighbours differ; every value is exact in every data type.

    Signed types run from -56 to 56 unless ``positive``; floating types add one half, complex
    types carry an imaginary part that differs from the real one.
    """
    steps = torch.arange(math.prod(shape), dtype=torch.int64).reshape(tuple(shape))
    values = (steps * 7 + 3) % _PERIOD
    if dtype == torch.bool:
        return values % 3 == 0
    if dtype.is_complex:
        imaginary = (steps * 5 + 1) % _PERIOD
        return torch.complex(values.double() - 56, imaginary.double() - 56).to(dtype)
    if dtype.is_signed and not positive:
        values = values - 56
    return (values.double() + 0.5 if dtype.is_floating_point else values).to(dtype)


def noise(
    shape: Sequence[int], dtype: torch.dtype = torch.float32, *, seed: int = 0
) -> torch.Tensor:
    """A CPU tensor of standard normal values that depend on ``seed`` only."""
    generator = torch.Generator().manual_seed(seed + 1)
    return torch.randn(tuple(shape), dtype=dtype, generator=generator)


def far_apart(dev: Device) -> torch.Tensor:
    """Uninitialised bytes on the device, (3, 5) of them: rows are 1 GiB apart and columns 7 bytes.

    The last row lies beyond what 31 bits can address. No more of the memory than that is touched.
    """
    row, column = 2**30, 7
    try:
        memory = torch.empty(2 * row + 4096, dtype=torch.uint8, device=dev.device())
    except torch.OutOfMemoryError as error:
        dev.unsupported(f"2 GiB of memory are not to be had: {error}")
    return memory.as_strided((3, 5), (row, column))


def index(like: torch.Tensor, *values: int) -> torch.Tensor:
    """The numbers as int64, shape (len(values),), on the device of `like`."""
    return torch.tensor(values, device=like.device)


def zeros_index(like: torch.Tensor, *shape: int) -> torch.Tensor:
    """Zeros as int64 of this shape, on the device of `like`."""
    return torch.zeros(shape, dtype=torch.int64, device=like.device)
