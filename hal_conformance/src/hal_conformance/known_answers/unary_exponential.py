# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of exponentials, logarithms and roots."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import Array, Case
from hal_conformance.known_answers._elementwise import Row, at, cases_of

NEAR_ZERO = (1e-3, -1e-3, 1e-5, -1e-5, 2.0**-20, -(2.0**-20))
# Arguments whose exponentials are large, tiny, or no numbers of a type.
EXPONENTS = at(*NEAR_ZERO, 10, -10, 80, -80, 88.5, -87, -90, -100, -104, 700, -700, scale=4)
POWERS = at(*NEAR_ZERO, 10, -10, 16, -24, -25, 127, 128, -126, -149, -151, 1000, -1000, scale=4)
# Of -90 a float's exp(-x) overflows, and the sigmoid is 0 where a subnormal number would be nearer.
LOGISTIC = at(*NEAR_ZERO, 10, -10, 17, 37, 80, -80, 87, -87, 700, -700, scale=4)
# 1 and around, powers of 2 and 10.
POSITIVE = at(0.5, 2, 4, 10, 100, 1000, 0.1, 0.999, 1.001, 1e-4, 1e4, 6e4, 0.7071, 1.4142)
BEYOND = at(*NEAR_ZERO, 0.5, -0.5, -0.999, -1.001, 2, 10, 1000, 6e4)


def log1p(x: Array) -> Array:
    """Of complex numbers so that a small |1 + x| - 1 keeps its digits."""
    if x.dtype.kind != "c":
        return np.asarray(np.log1p(x))
    square = x.real * (2 + x.real) + x.imag * x.imag
    return np.asarray(np.log1p(square) / 2 + 1j * np.arctan2(x.imag, 1 + x.real))


ROWS = [
    Row("exp", np.exp, EXPONENTS, ulps=2.5, complex_ulps=4),
    Row("exp2", np.exp2, POWERS, ulps=2.5, complex_ulps=16),
    Row("expm1", np.expm1, EXPONENTS, ulps=2.5, complex_ulps=6, signs=True),
    Row("log", np.log, POSITIVE, ulps=2.5, complex_ulps=4, signs=True),
    Row("log2", np.log2, POSITIVE, ulps=2.5, complex_ulps=4, signs=True),
    Row("log10", np.log10, POSITIVE, ulps=2.5, complex_ulps=4, signs=True),
    Row("log1p", log1p, BEYOND, ulps=2.5, complex_ulps=4, signs=True),
    Row("sqrt", np.sqrt, POSITIVE, ulps=0.5, complex_ulps=3, signs=True),
    Row("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE, ulps=1.5, complex_ulps=6, signs=True),
    Row("sigmoid", lambda x: 1 / (1 + np.exp(-x)), LOGISTIC, ulps=4, complex_ulps=16),
]


def cases() -> Iterator[Case]:
    yield from cases_of(ROWS)
