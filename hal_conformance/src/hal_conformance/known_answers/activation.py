# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of activation functions and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hal_conformance.answers import COMPLEXES, INTEGERS, REALS, TINIEST, Array, Case
from hal_conformance.kernels import DType
from hal_conformance.known_answers._elementwise import (
    SMALLEST_NORMAL,
    Points,
    Row,
    cases_of,
    spread,
)
from hal_conformance.known_answers._numbers import erf

ROOT = np.sqrt(np.longdouble(2))
PI = 4 * np.arctan(np.longdouble(1))
# Where pieces of any of these functions meet, and where their exponentials vanish.
CORNERS = [0.5, 0.0, -0.0, 1, -1, 3, -3, 2, -2, 6, -6, -0.5, 0.25, 20, -20, 1e-4, -30, 30, -80, 80]

# ---- points ----


def corners(dtype: DType) -> Array:
    if dtype in INTEGERS:
        low = 0 if dtype in (DType.BOOL, DType.UINT8, DType.UINT16, DType.UINT32) else -100
        return np.array([0, 1, 2, 3, 4, 20, 100, low, min(low + 99, -1) if low else 5], object)
    tiny = [TINIEST[dtype], -TINIEST[dtype], SMALLEST_NORMAL[dtype]]
    beside = [x + d for x in (3, -3, 0.5, -0.5, 1, -1) for d in (2.0**-6, -(2.0**-6))]
    return np.array([*CORNERS, *tiny, *beside, np.nan])


def points(count: int, infinite: bool = True, scale: float = 3) -> Points:
    """`count` operands, the last of which goes through the corners; each of them is NaN once."""

    def columns(dtype: DType) -> tuple[Array, ...]:
        if dtype in COMPLEXES:
            return tuple(spread(dtype, 1, seed) for seed in range(count))
        last = corners(dtype)
        if infinite and dtype in REALS:
            last = np.concatenate([last, [np.inf, -np.inf]])
        last = np.concatenate([last, spread(dtype, scale)])
        found = [np.resize(spread(dtype, 1, seed + 5), len(last)) for seed in range(count - 1)]
        for i, column in enumerate(found):
            if dtype in REALS:
                column[40 + i], last[40 + i] = np.nan, 1.5
        return *found, last

    return columns


def swapped(given: Points) -> Points:
    """Of operands among which the gradient comes last."""
    return lambda dtype: tuple(reversed(given(dtype)))


def probabilities(count: int) -> Points:
    """The last operand in [0, 1], and a little beyond."""

    def columns(dtype: DType) -> tuple[Array, ...]:
        last = np.concatenate([np.linspace(0, 1, 33), [0.1, 0.9, -0.5, 1.5, np.nan, 1e-3, 0.999]])
        return *(np.resize(spread(dtype, 1, s), len(last)) for s in range(count - 1)), last

    return columns


# ---- references ----


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def normal_distribution(x: Array) -> Array:
    return (1 + erf(x / ROOT)) / 2


def normal_density(x: Array) -> Array:
    return np.exp(-x * x / 2) / np.sqrt(2 * PI)


def gelu_inner(x: Array) -> Array:
    return np.sqrt(2 / PI) * (x + np.longdouble("0.044715") * x**3)


def gelu_tanh_slope(x: Array) -> Array:
    t = np.tanh(gelu_inner(x))
    slope = np.sqrt(2 / PI) * (1 + 3 * np.longdouble("0.044715") * x * x)
    return (1 + t) / 2 + x * (1 - t * t) * slope / 2


def silu_slope(x: Array) -> Array:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


def mish_gate(x: Array) -> Array:
    return np.tanh(np.log1p(np.exp(x)))


def mish_slope(x: Array) -> Array:
    gate = mish_gate(x)
    return gate + x * sigmoid(x) * (1 - gate * gate)


def hard_gate(x: Array) -> Array:
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


def log_sigmoid(x: Array) -> Array:
    return -np.logaddexp(0, -x)


def elu(x: Array, alpha: Array, scale: Array, input_scale: Array) -> Array:
    return np.where(x <= 0, np.expm1(x * input_scale) * alpha * scale, x * scale)


def elu_backward(g: Array, x: Array, alpha: Array, scale: Array, of: Array, result: Array) -> Array:
    # With y = alpha * scale * expm1(x * of): y' = of * (y + alpha * scale)
    below = x + alpha * scale if result else alpha * scale * np.exp(x * of)
    return g * np.where(x <= 0, of * below, scale)


def softplus(x: Array, beta: Array, threshold: Array) -> Array:
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)


def softshrink(x: Array, bound: Array) -> Array:
    return np.where(x > bound, x - bound, np.where(x < -bound, x + bound, x * 0))


def outside(x: Array, bound: Array, value: Array) -> Array:
    return np.where((x >= -bound) & (x <= bound), 0, value)


def logit(x: Array, low: Array, high: Array) -> Array:
    y = x if low < 0 else np.where(x < low, low, np.where(x > high, high, x))
    return np.log(y / (1 - y))


def logit_backward(g: Array, x: Array, low: Array, high: Array) -> Array:
    if low < 0:
        return np.where((x < 0) | (x > 1), np.nan, g / (x * (1 - x)))
    return np.where((x < low) | (x > high), 0, g / (x * (1 - x)))


def glu_backward(g: Array, x: Array, gate: Array) -> tuple[Array, Array]:
    s = sigmoid(gate)
    return g * s, g * x * s * (1 - s)


def prelu_backward(g: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    return np.where(x > 0, g, weight * g), np.where(x > 0, 0, x * g)


def times(slope: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient that comes in times the derivative's conjugate."""
    return lambda g, x: g * np.conj(slope(x))


def rotated(given: Points) -> Points:
    """The last operand between the others, as that of prelu_backward and glu_backward."""
    return lambda dtype: (lambda a, b, x: (a, x, b))(*given(dtype))


SLOPES = [(0.01,), (-2,), (0,)]
ELUS = [(1, 1, 1), (1.5, 2, 0.5), (1.6732632, 1.0507010, 1)]
BOUNDS = [(0.5,), (0,), (1.25,)]
EPS = [(-1, 0), (0.1, 0.9), (0.25, 0.75), (0, 1)]
SOFTPLUS = [(1, 20), (2, 3), (0.5, 10)]
FINITE = points(1, infinite=False)
GRADIENT, FINITE_GRADIENT = points(2), points(2, infinite=False)

ROWS = [
    Row("relu", lambda x: np.where(x <= 0, 0, x), points(1), signs=True),
    Row(
        "threshold",
        lambda x, t, value: np.where(x <= t, value, x),
        points(1),
        parameters=[(0.5, 20), (0, 0), (-3, -1)],
        integers=[(3, 20), (0, 0), (99, 1)],
    ),
    Row(
        "threshold_backward",
        lambda x, g, t: np.where(x <= t, 0, g),
        swapped(GRADIENT),
        parameters=[(0,), (0.5,)],
        integers=[(0,), (3,)],
    ),
    Row(
        "leaky_relu",
        lambda x, slope: np.where(x > 0, x, x * slope),
        points(1),
        ulps=0.5,
        parameters=SLOPES,
    ),
    Row(
        "leaky_relu_backward",
        lambda x, g, slope: np.where(x > 0, g, g * slope),
        swapped(GRADIENT),
        ulps=0.5,
        parameters=SLOPES,
    ),
    Row("elu", elu, points(1), ulps=5, parameters=ELUS),
    Row(
        "elu_backward",
        elu_backward,
        FINITE_GRADIENT,
        ulps=6,
        absolute=16,
        parameters=[(*p, of) for p in ELUS for of in (0, 1)],
    ),
    Row("gelu", lambda x: x * normal_distribution(x), FINITE, ulps=4, absolute=4),
    Row(
        "gelu_backward",
        times(lambda x: normal_distribution(x) + x * normal_density(x)),
        FINITE_GRADIENT,
        ulps=6,
        absolute=8,
    ),
    Row("gelu_tanh", lambda x: x * (1 + np.tanh(gelu_inner(x))) / 2, FINITE, ulps=6, absolute=8),
    Row("gelu_tanh_backward", times(gelu_tanh_slope), FINITE_GRADIENT, ulps=8, absolute=32),
    Row("silu", lambda x: x * sigmoid(x), FINITE, ulps=4, complex_ulps=16),
    # x times 1 - sigmoid(x): what the sigmoid is rounded by, x times.
    Row("silu_backward", times(silu_slope), FINITE_GRADIENT, ulps=6, complex_ulps=32, absolute=64),
    Row("mish", lambda x: x * mish_gate(x), FINITE, ulps=8),
    Row("mish_backward", times(mish_slope), FINITE_GRADIENT, ulps=8, absolute=64),
    Row("hardswish", lambda x: x * hard_gate(x), FINITE, ulps=2, absolute=2),
    Row(
        "hardswish_backward",
        lambda g, x: np.where(x <= -3, 0, np.where(x < 3, g * (x / 3 + 0.5), g)),
        GRADIENT,
        ulps=2,
        absolute=4,
    ),
    Row("hardsigmoid", hard_gate, points(1), ulps=1, absolute=1),
    Row(
        "hardsigmoid_backward",
        lambda g, x: np.where((x > -3) & (x < 3), g / 6, 0),
        GRADIENT,
        ulps=0.5,
    ),
    Row(
        "hardtanh_backward",
        lambda g, x, low, high: np.where((x <= low) | (x >= high), 0, g),
        GRADIENT,
        parameters=[(-1, 1), (0, 6)],
    ),
    Row("softplus", softplus, points(1), ulps=5, parameters=SOFTPLUS),
    Row(
        "softplus_backward",
        lambda g, x, beta, t: np.where(x * beta > t, g, g * sigmoid(x * beta)),
        GRADIENT,
        ulps=5,
        parameters=SOFTPLUS,
    ),
    Row("softshrink", softshrink, points(1), ulps=0.5, parameters=BOUNDS),
    Row("hardshrink", lambda x, b: outside(x, b, x), points(1), parameters=BOUNDS),
    Row("shrink_backward", lambda g, x, b: outside(x, b, g), GRADIENT, parameters=BOUNDS),
    Row("log_sigmoid", log_sigmoid, points(1), ulps=4),
    Row("log_sigmoid_backward", times(lambda x: sigmoid(-x)), GRADIENT, ulps=6, absolute=1),
    Row("sigmoid_backward", times(lambda y: (1 - y) * y), probabilities(2), ulps=2, complex_ulps=8),
    Row(
        "tanh_backward",
        times(lambda y: 1 - y * y),
        probabilities(2),
        ulps=2,
        complex_ulps=8,
        absolute=2,
    ),
    Row("logit", logit, probabilities(1), ulps=4, absolute=4, parameters=EPS),
    Row("logit_backward", logit_backward, probabilities(2), ulps=3, parameters=EPS),
    Row("glu", lambda x, gate: x * sigmoid(gate), GRADIENT, ulps=5),
    Row("glu_backward", glu_backward, points(3, infinite=False), ulps=6, absolute=2),
    Row("prelu", lambda x, w: np.where(x > 0, x, w * x), swapped(GRADIENT), ulps=0.5),
    Row("prelu_backward", prelu_backward, rotated(points(3)), ulps=0.5),
]


def cases() -> Iterator[Case]:
    yield from cases_of(ROWS)
