# SPDX-License-Identifier: BSD-3-Clause
"""Products of square matrices; the best of a dtype gauges what its matrix units can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import torch
from torch import Tensor

from bench.gpu.measure import inputs
from bench.gpu.measure.case import Case, Operation
from bench.gpu.measure.scale import Scale
from bench.gpu.measure.side import Side

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def cases(scale: Scale) -> Iterator[Case]:
    """Every size in every dtype."""
    for name, dtype in DTYPES.items():
        for size in scale.matrices:
            yield Case(
                "matmul",
                f"{name} {size}",
                "device",
                _maker(dtype, size),
                work=2.0 * size**3,
                resource=f"{name} arithmetic",
                gauges=True,
            )


def _maker(dtype: torch.dtype, size: int) -> Callable[[Side], Operation]:
    # Random, not zeros: a card computes zeros faster.
    left = inputs.normal(size * size, dtype, 1).view(size, size)
    right = inputs.normal(size * size, dtype, 2).view(size, size)

    @cache
    def expected() -> Tensor:
        return left.float() @ right.float()

    def make(side: Side) -> Operation:
        lefts, rights = inputs.rotated(left, side.device), inputs.rotated(right, side.device)
        out = torch.empty(size, size, dtype=dtype, device=side.device)
        return Operation(
            lambda turn: torch.mm(lefts[turn % inputs.SETS], rights[turn % inputs.SETS], out=out),
            lambda: inputs.verify(out, expected(), slack=10 if dtype == torch.float32 else 1),
        )

    return make
