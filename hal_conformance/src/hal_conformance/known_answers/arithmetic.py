# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of the four operations: the model for elementwise kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPLEXES,
    COMPUTE,
    EPSILON,
    INTEGERS,
    Array,
    Case,
    elementwise,
    types_of,
)
from hal_conformance.kernels import DType


def operands(dtype: DType) -> tuple[Array, Array]:
    """35 pairs of numbers; integers so large that results wrap."""
    random = np.random.default_rng(7)
    if dtype in INTEGERS:
        return random.integers(-9, 250, (5, 7)), random.integers(1, 250, (5, 7))
    a, b = random.standard_normal((5, 7)), random.standard_normal((5, 7))
    if dtype in COMPLEXES:
        a, b = a + 1j * b, b - 2j * a
    else:
        a[0, :4], b[0, :4] = [np.nan, np.inf, -np.inf, -0.0], [1, 2, np.inf, -0.0]
    return a, b


def added(a: Array, b: Array, alpha: Any) -> Array:
    return _integers(a) + alpha * _integers(b)


def subtracted(a: Array, b: Array, alpha: Any) -> Array:
    return _integers(a) - alpha * _integers(b)


def multiplied(a: Array, b: Array) -> Array:
    return _integers(a) * _integers(b)


def _integers(x: Array) -> Array:
    """Wide enough for any sum or product of 8- to 32-bit integers; int64 wraps as the kernel's."""
    return x if x.dtype.kind in "fc" else x.astype(np.int64)


def cases() -> Iterator[Case]:
    for dtype in types_of("mul"):
        a, b = operands(dtype)
        ulps = 0.0 if dtype in INTEGERS else 2.0
        # Sums may cancel: they are off by the last digits of their terms.
        off = 0.0 if dtype in INTEGERS else 8 * EPSILON[COMPUTE[dtype]]
        if dtype is not DType.BOOL:
            yield from elementwise(
                "add", added, dtype, a, b, parameters=[2], ulps=ulps, absolute=off
            )
            yield from elementwise(
                "sub", subtracted, dtype, a, b, parameters=[3], ulps=ulps, absolute=off
            )
        yield from elementwise("mul", multiplied, dtype, a, b, ulps=ulps)
        if dtype not in INTEGERS:
            yield from elementwise("div", np.divide, dtype, a, b, ulps=4)
