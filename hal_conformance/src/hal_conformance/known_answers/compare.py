# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of comparisons and logic."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hal_conformance.answers import COMPLEXES, Array, Case
from hal_conformance.kernels import DType
from hal_conformance.known_answers._elementwise import Row, cases_of, crossed, to_bool

# All combinations of these have equal and unequal parts, zeros and NaN.
COMPLEX = [0, complex(-0.0, 0.0), 1, 1j, 1 + 1j, -1, complex(np.nan, 0), complex(0, np.inf)]


def points(dtype: DType) -> tuple[Array, ...]:
    if dtype not in COMPLEXES:
        return crossed(2)(dtype)
    pairs = np.array(list(itertools.product(COMPLEX, repeat=2)))
    return pairs[:, 0], pairs[:, 1]


COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
}


def cases() -> Iterator[Case]:
    yield from cases_of(
        Row(kernel, function, points, result=to_bool) for kernel, function in COMPARISONS.items()
    )
