# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of choices, bounds and blends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import REALS, Array, Case
from hal_conformance.kernels import DType
from hal_conformance.known_answers._elementwise import Points, Row, at, cases_of, crossed


def bounded(x: Array, low: Array, high: Array) -> Array:
    """NumPy's extremes are NaN where an operand is."""
    return np.minimum(np.maximum(x, low), high)


def blended(start: Array, end: Array, weight: Array) -> Array:
    """From the nearer end: of infinities the other way gives NaN."""
    ahead, back = start + weight * (end - start), end - (end - start) * (1 - weight)
    return np.where(np.abs(weight) < 0.5, ahead, back)


def chosen(dtype: DType) -> tuple[Array, ...]:
    a, b = crossed(2)(dtype)
    return np.arange(len(a)) % 3 == 0, a, b


def weights(*values: float) -> Points:
    """Finite ends that cannot overflow, and weights."""

    def points(dtype: DType) -> tuple[Array, ...]:
        start, end = crossed(2)(dtype)
        finite = np.abs(np.concatenate([start, end])).reshape(2, -1).max(0) < 1e4
        keep = np.repeat(np.flatnonzero(finite), len(values))
        return start[keep], end[keep], np.resize(np.array(values), len(keep))

    return points


def divided(dtype: DType) -> tuple[Array, ...]:
    """As the points of sums, without divisors of 0."""
    x, a, b = SUM(dtype)
    return x, a, np.where(b == 0, 2, b)


def product_added(x: Array, a: Array, b: Array, value: Array) -> Array:
    return x + value * a * b


def quotient_added(x: Array, a: Array, b: Array, value: Array) -> Array:
    return x + value * a / b


SUM = crossed(3, finite=True, scale=1)
SPECIAL = crossed(3, 0.25, 0.75)
BOUNDS = [(-1, 2), (2, -1), (np.nan, 1), (0, np.nan), (-np.inf, np.inf), (0.5, 0.5)]
INTEGER_BOUNDS = [(1, 100), (100, 1), (0, 0)]
FACTORS = [(2,), (-0.5,), (0,)]
INTEGER_FACTORS = [(2,), (-3,), (0,)]
WEIGHTS = (0.25, 0.5, 0.75, -1, 2, 0.1)

ROWS = [
    Row("where", lambda c, a, b: np.where(c != 0, a, b), chosen, conditions=1, signs=True),
    Row("clamp", bounded, at(2, -1, 0.5), parameters=BOUNDS, integers=INTEGER_BOUNDS),
    Row("clamp_tensor", bounded, crossed(3)),
    # Sums may cancel: they are off by the last digits of their terms, which are below 32.
    Row("lerp", blended, weights(*WEIGHTS), ulps=2, complex_ulps=4, absolute=32),
    Row("lerp", blended, weights(0, 1), label="exact ends"),
    Row("lerp", blended, SPECIAL, ulps=2, absolute=8, label="special", types=REALS),
    Row(
        "lerp_scalar",
        blended,
        crossed(2, finite=True),
        ulps=2,
        absolute=32,
        parameters=[(weight,) for weight in WEIGHTS],
    ),
    Row(
        "lerp_scalar",
        blended,
        crossed(2, finite=True),
        parameters=[(0,), (1,)],
        label="exact ends",
    ),
    Row(
        "addcmul",
        product_added,
        SUM,
        ulps=1,
        complex_ulps=4,
        absolute=32,
        parameters=FACTORS,
        integers=INTEGER_FACTORS,
    ),
    Row(
        "addcdiv",
        quotient_added,
        divided,
        ulps=2,
        complex_ulps=8,
        absolute=32,
        parameters=FACTORS,
    ),
    *(
        Row(
            kernel,
            function,
            SPECIAL,
            ulps=2,
            absolute=32,
            parameters=[(2,)],
            label="special",
            types=REALS,
        )
        for kernel, function in (("addcmul", product_added), ("addcdiv", quotient_added))
    ),
]


def cases() -> Iterator[Case]:
    yield from cases_of(ROWS)
