# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import COMPLEXES, Array, Case
from hal_conformance.kernels import DType
from hal_conformance.known_answers._elementwise import Row, at, cases_of

SMALL = (1e-3, -1e-3, 2.0**-12, -(2.0**-20))
# Multiples of pi / 2, and around where the reduction of the argument changes its method.
ANGLES = at(
    *SMALL, *(n * np.pi / 4 for n in (1, -1, 2, 3, 4, -4, 6, 8, 101)), 1000, 6e4, 99999, 100001, 1e6
)
UNIT = at(*SMALL, 0.5, -0.5, 0.499, 0.501, 0.9, -0.9, 0.999, -0.999, 1.001, scale=0.4)
TANGENTS = at(*SMALL, 0.414, 0.4143, 2.414, -2.4143, 10, -1000, 6e4)
WIDE = at(*SMALL, 0.5, 9.9, 10.1, 20, -20, 79.9, 80.1, -88, 89, 710, scale=4)
ABOVE = at(*SMALL, 1.001, 0.999, 2, 10, 1000, 6e4)


def sinc(x: Array) -> Array:
    pi = 4 * np.arctan(np.longdouble(1))
    safe = np.where(x == 0, 1, x)
    return np.where(x == 0, 1, np.sin(pi * safe) / (pi * safe))


def fractions(dtype: DType) -> tuple[Array, ...]:
    """Not at the zeros of sinc, where the product with pi decides."""
    if dtype in COMPLEXES:
        return (np.array([0, 0.25, 1j, 0.5 + 1j, -1.25 - 0.5j, 0.125 + 0.25j]),)
    return (np.array([0.5, 0, -0.0, 0.25, -0.25, 1e-3, 1.5, -2.5, 3.75, 10.5, np.nan, 2.0**-20]),)


ROWS = [
    Row("sin", np.sin, ANGLES, ulps=2.5, complex_ulps=4, signs=True),
    Row("cos", np.cos, ANGLES, ulps=2.5, complex_ulps=4),
    Row("tan", np.tan, ANGLES, ulps=4, complex_ulps=6, signs=True),
    Row("asin", np.arcsin, UNIT, ulps=2.5, complex_ulps=6, signs=True),
    Row("acos", np.arccos, UNIT, ulps=2.5, complex_ulps=6, signs=True),
    Row("atan", np.arctan, TANGENTS, ulps=2.5, complex_ulps=6, signs=True),
    Row("sinh", np.sinh, WIDE, ulps=4, complex_ulps=6, signs=True),
    Row("cosh", np.cosh, WIDE, ulps=4, complex_ulps=6),
    Row("tanh", np.tanh, WIDE, ulps=4, complex_ulps=6, signs=True),
    Row("asinh", np.arcsinh, TANGENTS, ulps=4, complex_ulps=6, signs=True),
    Row("acosh", np.arccosh, ABOVE, ulps=4, complex_ulps=6, signs=True),
    Row("atanh", np.arctanh, UNIT, ulps=4, complex_ulps=6, signs=True),
    # The argument times pi is rounded, which counts the more the larger it is.
    Row("sinc", sinc, fractions, ulps=16, complex_ulps=16),
]


def cases() -> Iterator[Case]:
    yield from cases_of(ROWS)
