# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of signs, magnitudes, rounding and tests of elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import COMPLEXES, Array, Case, In, Out, elementwise_args
from hal_conformance.kernels import DType
from hal_conformance.known_answers._elementwise import (
    REAL_OF,
    Row,
    at,
    cases_of,
    only,
    special,
    to_bool,
    to_real,
)

# Ties, and numbers just beside integers.
TIES = at(0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.25, 0.75, -0.75, 1023.5, 2.0**23 + 1, 2.0**52 + 1)
DECIMALS = only([0.25, 0.75, -0.25, 1.5, -2.5, 12.0, 35, 25, -25, 0.0, np.inf, -np.inf, np.nan])
NAN_AND_INFINITY = (0.5, 1000, -3)


def sign(x: Array) -> Array:
    if x.dtype.kind != "c":
        return (x > 0).astype(int) - (x < 0).astype(int)
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))


def signbit(x: Array) -> Array:
    return x < 0 if x.dtype.kind == "O" else np.signbit(x)


def angle(x: Array) -> Array:
    if x.dtype.kind == "c":
        return np.arctan2(x.imag, x.real)
    return np.where(np.isnan(x), x, np.where(x < 0, np.arctan2(np.longdouble(0), x), 0))


def nan_to_num(x: Array, nan: Array, high: Array, low: Array) -> Array:
    if x.dtype.kind == "c":
        bounds = (nan.real, high.real, low.real)
        return nan_to_num(x.real, *bounds) + 1j * nan_to_num(x.imag, *bounds)
    return np.where(
        np.isnan(x), nan, np.where(np.isposinf(x), high, np.where(np.isneginf(x), low, x))
    )


def round_decimals(x: Array, power: Array, negative: Array) -> Array:
    return np.rint(x / power) * power if negative else np.rint(x * power) / power


ROWS = [
    Row("abs", np.abs, at(), complex_ulps=2, result=to_real, signs=True),
    Row("neg", np.negative, at(), signs=True),
    Row("reciprocal", lambda x: 1 / x, at(), ulps=0.5, complex_ulps=4, signs=True),
    Row("square", lambda x: x * x, at(), ulps=0.5, complex_ulps=3, signs=True),
    Row("cube", lambda x: x * x * x, at(), ulps=1.5, complex_ulps=5, signs=True),
    Row("inverse_square", lambda x: 1 / (x * x), at(), ulps=1.5, complex_ulps=6),
    Row("sign", sign, at(), complex_ulps=2),
    Row("angle", angle, at(), ulps=0.5, complex_ulps=4, result=to_real),
    Row("conj", np.conj, at()),
    Row("ceil", np.ceil, TIES, signs=True),
    Row("floor", np.floor, TIES, signs=True),
    Row("round", np.rint, TIES, signs=True),
    Row("trunc", np.trunc, TIES, signs=True),
    Row("frac", lambda x: x - np.trunc(x), TIES),
    Row(
        "round_decimals",
        round_decimals,
        DECIMALS,
        ulps=0.5,
        parameters=[(10, 0), (1, 0), (100, 0), (10, 1), (100, 1)],
    ),
    Row("nan_to_num", nan_to_num, at(), parameters=[NAN_AND_INFINITY, (0, 1, -1)]),
    Row("bitwise_not", np.invert, at()),
    Row("logical_not", lambda x: x == 0, at(), result=to_bool),
    Row("signbit", signbit, at(), result=to_bool),
    Row("isposinf", np.isposinf, at(), result=to_bool),
    Row("isneginf", np.isneginf, at(), result=to_bool),
]


def parts_not_finite(dtype: DType) -> Array:
    """Complex numbers of all pairs of special parts."""
    parts = special(REAL_OF[dtype])
    numbers = np.empty((len(parts), len(parts)), np.complex128)
    numbers.real, numbers.imag = np.meshgrid(parts, parts)
    return numbers


def of_parts() -> Iterator[Case]:
    """What is defined for complex numbers whose parts are zero, infinite or NaN."""
    for dtype in COMPLEXES:
        x = parts_not_finite(dtype)
        ahead = nan_to_num(x.real, *NAN_AND_INFINITY), nan_to_num(x.imag, *NAN_AND_INFINITY)
        replaced = np.empty(x.shape, np.complex128)
        replaced.real, replaced.imag = ahead
        with np.errstate(all="ignore"):
            known = {
                "abs": Out(np.hypot(x.real, x.imag), REAL_OF[dtype], ulps=2),
                "angle": Out(np.arctan2(x.imag, x.real), REAL_OF[dtype], ulps=4),
                "neg": Out(-x, dtype),
                "conj": Out(np.conj(x), dtype),
                "logical_not": Out(x == 0, DType.BOOL),
                "nan_to_num": Out(replaced, dtype),
            }
        for kernel, out in known.items():
            parameters = NAN_AND_INFINITY if kernel == "nan_to_num" else ()
            args = elementwise_args(dtype, [out], [In(x, dtype)], parameters)
            yield Case(kernel, f"{dtype.name.lower()} special parts", args, (dtype,))


def cases() -> Iterator[Case]:
    yield from cases_of(ROWS)
    yield from of_parts()
