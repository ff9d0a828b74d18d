# SPDX-License-Identifier: BSD-3-Clause
"""Inputs that are the same on all sides, and whether results are right."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from bench.gpu.measure.case import WrongResult

# Sets of buffers a timed operation goes round: more bytes together than any cache keeps.
SETS = 4
# Random numbers of which large inputs are made by repetition. Odd, so that rows differ.
SEED_VALUES = (1 << 20) + 7

# (rtol, atol by the root mean square of what is expected)
TOLERANCES = {
    torch.float32: (2e-5, 2e-5),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
}


def normal(count: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    """Values of both signs, on the CPU."""
    return _repeated(_seeds("normal", seed), count).to(dtype)


def positive(count: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    """Values in [0.5, 1.5): sums of them lose nothing to cancellation."""
    return _repeated(_seeds("positive", seed), count).to(dtype)


@cache
def _seeds(kind: str, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if kind == "normal":
        return torch.randn(SEED_VALUES, generator=generator)
    return torch.rand(SEED_VALUES, generator=generator) + 0.5


def _repeated(values: Tensor, count: int) -> Tensor:
    return values.repeat(-(-count // values.numel()))[:count]


def rotated(source: Tensor, device: torch.device) -> list[Tensor]:
    """Copies of one tensor in buffers of their own."""
    first = source.to(device)
    return [first, *(first.clone() for _ in range(SETS - 1))]


def verify(found: Tensor, expected: Tensor, slack: float = 1.0) -> None:
    """Raise WrongResult unless every element is as it should be, within the dtype's tolerance."""
    there, want = found.cpu().float(), expected.float()
    if there.shape != want.shape:
        raise WrongResult(f"shape {tuple(there.shape)}, expected {tuple(want.shape)}")
    rtol, atol = (slack * tolerance for tolerance in TOLERANCES[found.dtype])
    scale = float(want.square().mean().sqrt()) if want.numel() else 0.0
    bound = want.abs().mul_(rtol).add_(atol * scale)
    wrong = ((there - want).abs_() <= bound).logical_not_()  # NaN is wrong, too
    if wrong.any():
        index = int(wrong.flatten().nonzero()[0])
        raise WrongResult(
            f"{int(wrong.sum())} of {wrong.numel()} elements are wrong; the first, {index}, is "
            f"{there.flatten()[index]:g}, expected {want.flatten()[index]:g}"
        )
