# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of gradient scaling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from hal_conformance.answers import REALS, Case, In, InOut, rounded
from hal_conformance.kernels import DType
from hal_conformance.known_answers.foreach import LENGTHS, MOST

FLOAT32 = DType.FLOAT32


def unscale(
    dtype: DType,
    label: str,
    lengths: Sequence[int],
    factor: float,
    bad: tuple[int, int, float] | None = None,
    found: float = 0,
) -> Case:
    """`bad` is a tensor, a position in it, and the number there."""
    tensors = []
    for t, n in enumerate(lengths):
        before = rounded(np.random.default_rng(t).standard_normal(n) * 8, dtype)
        if bad is not None and bad[0] == t:
            before[bad[1]] = bad[2]
        # float16 and bfloat16 are exact in float, and so is their product with a power of 2.
        tensors.append({"n": n, "data": InOut(before, before * rounded(factor, FLOAT32), dtype)})
    args = {
        "count": len(lengths),
        "dtype": dtype,
        "inv_scale": In(np.array([factor]), FLOAT32),
        "found_inf": InOut(np.array([found]), np.array([1.0 if bad else found]), FLOAT32),
        "tensors": tensors,
    }
    return Case("amp_unscale", f"{dtype.name.lower()} {label}", args, (dtype,))


def update(
    label: str,
    *,
    scale: float,
    tracker: int,
    found: float,
    after: tuple[float, int],
    interval: int = 3,
    factors: tuple[float, float] = (2, 0.5),
) -> Case:
    args = {
        "scale": InOut(np.array([scale]), np.array([after[0]]), FLOAT32),
        "growth_tracker": InOut(np.array([tracker]), np.array([after[1]]), DType.INT32),
        "found_inf": In(np.array([found]), FLOAT32),
        "growth_factor": factors[0],
        "backoff_factor": factors[1],
        "growth_interval": interval,
    }
    return Case("amp_update_scale", label, args)


def cases() -> Iterator[Case]:
    for dtype in REALS:
        for factor in (1, 0.25, 2.0**-16, 0):
            yield unscale(dtype, f"by {factor:g}", LENGTHS, factor)
        yield unscale(dtype, "most tensors", [3] * MOST, 0.5)
        yield unscale(dtype, "no tensors", [], 0.5)
        yield unscale(dtype, "flag stays", LENGTHS, 0.5, found=1)
        for value in (math.inf, -math.inf, math.nan):
            for t, place in ((0, 0), (2, 0), (4, 4098), (6, 2)):
                said = f"{value} at {place} of tensor {t}"
                yield unscale(dtype, said, LENGTHS, 0.5, (t, place, value))
            yield unscale(dtype, f"{value} by 1", LENGTHS, 1, (3, 64, value))
    largest = float(np.finfo(np.float32).max)
    tiny = 2.0**-149
    yield update("a step", scale=1024, tracker=0, found=0, after=(1024, 1))
    yield update("grows", scale=1024, tracker=2, found=0, after=(2048, 0))
    yield update("not yet", scale=1024, tracker=1, found=0, after=(1024, 2))
    yield update("past the interval", scale=1024, tracker=3, found=0, after=(1024, 4))
    yield update("grows each step", scale=8, tracker=0, found=0, interval=1, after=(16, 0))
    yield update("overflow", scale=1024, tracker=2, found=1, after=(512, 0))
    yield update("overflow at the start", scale=1, tracker=0, found=1, after=(0.5, 0))
    # Any number that is not 0 is an overflow.
    yield update("two overflows", scale=1024, tracker=1, found=2, after=(512, 0))
    yield update("no larger than a float", scale=largest, tracker=2, found=0, after=(largest, 0))
    yield update("to nothing", scale=tiny, tracker=0, found=1, factors=(2, 0.25), after=(0, 0))
    yield update("other factors", scale=64, tracker=2, found=0, factors=(1.5, 0.25), after=(96, 0))
    yield update("other backoff", scale=64, tracker=2, found=1, factors=(1.5, 0.25), after=(16, 0))
