# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of functions of two elements, besides the four operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from hal_conformance.answers import COMPLEXES, COMPUTE, INTEGERS, STORAGE, Array, Case, types_of
from hal_conformance.kernels import DType
from hal_conformance.known_answers._elementwise import (
    Points,
    Row,
    at,
    cases_of,
    crossed,
    only,
    spread,
    without,
)

# ---- references ----


def by_type(integer: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """`integer` of Python's integers, one by one; `real` of arrays of any others."""
    each = np.frompyfunc(integer, 2, 1)

    def function(a: Array, b: Array) -> Array:
        return np.asarray((each if a.dtype.kind == "O" else real)(a, b))

    return function


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def floor_quotient(a: Any, b: Any) -> Any:
    """Exactly, where a / b would round up to an integer."""
    if b == 0 or not np.isfinite(a) or np.isnan(b):
        return a / b if b == 0 else np.longdouble(np.nan)
    if np.isinf(b):
        return np.longdouble(-1) if a != 0 and (a < 0) != (b < 0) else np.copysign(a * 0, a / b)
    quotient = math.floor(Fraction(*a.as_integer_ratio()) / Fraction(*b.as_integer_ratio()))
    return np.longdouble(str(quotient)) if quotient else np.copysign(np.longdouble(0), a / b)


def larger(a: Array, b: Array) -> Array:
    return np.where((a > b) | (a != a), a, b)


def smaller(a: Array, b: Array) -> Array:
    return np.where((a < b) | (a != a), a, b)


def other_than_nan(choose: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.where(a != a, b, np.where(b != b, a, choose(a, b)))


def power(a: int, b: int) -> int:
    """a ** b modulo 2 ** 64; with b < 0 the reciprocal without its fraction."""
    if b >= 0:
        return pow(a, b, 2**64)
    return a**-b if abs(a) == 1 else 0


def shifted_left(a: int, b: int) -> int:
    return a << b if 0 <= b < 64 else 0


def shifted_right(a: int, b: int) -> int:
    """Python's integers keep their sign however far they are shifted, as those of a type do."""
    return a >> (b if 0 <= b < 64 else 64)


def times_logarithm(logarithm: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.where(b != b, b, np.where(a == 0, 0, a * logarithm(b)))


def truncated_in(dtype: DType) -> Callable[..., Any]:
    """The quotient is rounded first, as IEEE 754 rounds it: 1.5 / 0.1 is 15 in some types."""
    compute = STORAGE[COMPUTE[dtype]]
    return by_type(truncated, lambda a, b: np.trunc(a.astype(compute) / b.astype(compute)))


def next_in(dtype: DType) -> Callable[[Array, Array], Array]:
    """Of the type computed in; NumPy steps from one number's bits to the next ones."""
    compute = STORAGE[COMPUTE[dtype]]
    return lambda a, b: np.nextafter(a.astype(compute), b.astype(compute))


# ---- points ----


def by_zero(a: Array, b: Array) -> Array:
    """An integer divided by 0, or 0 by a negative power, is unspecified."""
    return (b == 0) & (b.dtype.kind != "f")


def negative_power_of_zero(a: Array, b: Array) -> Array:
    return (a == 0) & (b < 0) if a.dtype.kind != "f" else np.zeros(a.shape)


def powers(dtype: DType) -> tuple[Array, ...]:
    if dtype not in COMPLEXES:
        return without(crossed(2, 0.5, 10, -2, scale=2), negative_power_of_zero)(dtype)
    return spread(dtype, 1, 1), spread(dtype, 1, 2)


def bits_of(dtype: DType) -> int:
    return STORAGE[dtype].itemsize * 8


def distances(dtype: DType) -> tuple[Array, ...]:
    """All there are for the type, as many beyond, and negative ones."""
    if dtype is DType.BOOL:
        return np.array([1, 0, 1, 0]), np.array([1, 1, 0, 0])
    b = np.array([*range(bits_of(dtype) + 2), 100, 127, -1, -2, -100])
    numbers = np.array([5, 1, -1, 100, -128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
    pairs = np.array(np.meshgrid(numbers, b)).reshape(2, -1)
    return pairs[0], pairs[1]


def multiples(dtype: DType) -> tuple[Array, ...]:
    """Of numbers whose least common multiple any type holds."""
    numbers = [4, 0, 1, 2, 3, 6, 10, 12, 7]
    if dtype is not DType.BOOL and dtype not in (DType.UINT8, DType.UINT16, DType.UINT32):
        numbers += [-1, -4, -6, -12]
    pairs = np.array(np.meshgrid(numbers, numbers)).reshape(2, -1)
    return pairs[0], pairs[1]


QUOTIENTS: Points = without(crossed(2, 0.1, 0.3, 6, -7, scale=9), by_zero)
# Around powers of 2 and where one term vanishes beside the other.
SUMS = crossed(2, 20, -20, 0.001, 90, -90)
MODERATE = crossed(2, 0.5, -0.5, 1e-3, 10)

ROWS = [
    Row("maximum", larger, crossed(2)),
    Row("minimum", smaller, crossed(2)),
    Row("fmax", other_than_nan(larger), crossed(2)),
    Row("fmin", other_than_nan(smaller), crossed(2)),
    Row("fmod", by_type(lambda a, b: a - b * truncated(a, b), np.fmod), QUOTIENTS, signs=True),
    Row("remainder", by_type(lambda a, b: a % b, np.remainder), QUOTIENTS, ulps=0.5),
    *(
        Row("div_trunc", truncated_in(dtype), QUOTIENTS, types=(dtype,), signs=True)
        for dtype in types_of("div_trunc")
    ),
    Row(
        "div_floor",
        by_type(lambda a, b: a // b, np.frompyfunc(floor_quotient, 2, 1)),
        QUOTIENTS,
        ulps=1,
        signs=True,
    ),
    Row("pow", by_type(power, np.power), powers, ulps=2, complex_ulps=16),
    Row(
        "pow_scalar",
        by_type(power, np.power),
        at(),
        ulps=2,
        complex_ulps=16,
        parameters=[(2,), (0.5,), (3,), (-1,), (-2.5,), (0,)],
        integers=[(2,), (0,), (1,), (3,), (31,), (63,)],
    ),
    Row(
        "pow_scalar",
        by_type(power, np.power),
        only([2, 1, -1, 3, -2, 100]),
        ulps=2,
        complex_ulps=16,
        parameters=[(-3,), (0.25 - 0.5j,)],
        integers=[(-1,), (-2,)],
        label="without zeros",
        types=tuple(t for t in types_of("pow_scalar") if t in (*INTEGERS, *COMPLEXES)),
    ),
    Row("atan2", np.arctan2, crossed(2, 0.5, 1e-3, 1000), ulps=3, signs=True),
    Row("hypot", np.hypot, crossed(2, 1e-3, 1000, 3, 4), ulps=2),
    Row("copysign", np.copysign, crossed(2), signs=True),
    *(
        Row("nextafter", next_in(dtype), crossed(2), signs=True, types=(dtype,))
        for dtype in types_of("nextafter")
    ),
    Row("logaddexp", np.logaddexp, SUMS, ulps=2.5, absolute=1),
    Row("logaddexp2", np.logaddexp2, SUMS, ulps=2.5, absolute=1),
    Row("xlogy", times_logarithm(np.log), MODERATE, ulps=3.5),
    Row("xlog1py", times_logarithm(np.log1p), MODERATE, ulps=3.5),
    Row(
        "heaviside", lambda a, b: np.where(a == 0, b, np.where(a > 0, 1, 0)), crossed(2), signs=True
    ),
    Row("bitwise_and", lambda a, b: a & b, crossed(2)),
    Row("bitwise_or", lambda a, b: a | b, crossed(2)),
    Row("bitwise_xor", lambda a, b: a ^ b, crossed(2)),
    Row("left_shift", by_type(shifted_left, np.left_shift), distances),
    Row("right_shift", by_type(shifted_right, np.right_shift), distances),
    Row("gcd", by_type(math.gcd, np.gcd), crossed(2, 12, 18, 60, -24)),
    Row("lcm", by_type(math.lcm, np.lcm), multiples),
]


def cases() -> Iterator[Case]:
    yield from cases_of(ROWS)
