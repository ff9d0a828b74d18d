# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "complex" and "polar", which make complex numbers of real ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import Array, Case
from hal_conformance.known_answers._elementwise import Row, cases_of, crossed, to_complex


def cartesian(real: Array, imaginary: Array) -> Array:
    """Not real + 1j * imaginary, which is NaN where a part is infinite."""
    found = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), np.clongdouble)
    found.real, found.imag = real, imaginary
    return found


def polar(magnitude: Array, angle: Array) -> Array:
    return cartesian(magnitude * np.cos(angle), magnitude * np.sin(angle))


def cases() -> Iterator[Case]:
    yield from cases_of(
        [
            Row("complex", cartesian, crossed(2), result=to_complex, signs=True),
            Row("polar", polar, crossed(2, finite=True), ulps=2, result=to_complex),
        ]
    )
