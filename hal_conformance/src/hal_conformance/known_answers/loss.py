# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of losses per element, and of their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hal_conformance.answers import COMPUTE, EPSILON, REALS, TINIEST, Array, Case, elementwise
from hal_conformance.known_answers.gemm import numbers
from hal_conformance.known_answers.reduction import inf, nan


def _smooth_l1(x: Array, target: Array, beta: float) -> Array:
    z = np.abs(x - target)
    return np.where(z < beta, z * z / (2 * np.longdouble(beta)), z - beta / 2)


def _smooth_l1_backward(
    x: Array, target: Array, gradient: Array, factor: float, beta: float
) -> Array:
    return factor * gradient * np.clip((x - target) / np.longdouble(beta), -1, 1)


def _huber(x: Array, target: Array, delta: float) -> Array:
    z = np.abs(x - target)
    return np.where(z <= delta, z * z / 2, delta * (z - delta / 2))


def _huber_backward(x: Array, target: Array, gradient: Array, factor: float, delta: float) -> Array:
    return factor * gradient * np.clip(x - target, -delta, delta)


def _cross_entropy(x: Array, target: Array, weight: Array) -> Array:
    yes, no = np.maximum(np.log(x), -100), np.maximum(np.log1p(-x), -100)
    return -(target * yes + (1 - target) * no) * weight


def _cross_entropy_backward(
    x: Array, target: Array, gradient: Array, weight: Array, factor: float
) -> Array:
    low = np.longdouble(1e-12)
    return factor * weight * gradient * (x - target) / np.maximum((1 - x) * x, low)


# The function, how many inputs it has, and its parameters.
REGRESSION: dict[str, tuple[Callable[..., Array], int, list[tuple[float, ...]]]] = {
    "mse_loss": (lambda x, target: (x - target) ** 2, 2, [()]),
    "mse_loss_backward": (
        lambda x, target, gradient, factor: factor * (x - target) * gradient,
        3,
        [(2,), (-0.125,)],
    ),
    "smooth_l1_loss": (_smooth_l1, 2, [(1,), (0.5,), (0,)]),
    "smooth_l1_loss_backward": (_smooth_l1_backward, 3, [(1, 1), (0.25, 2), (1, 0.125)]),
    "huber_loss": (_huber, 2, [(1,), (0.5,)]),
    "huber_loss_backward": (_huber_backward, 3, [(1, 1), (0.25, 0.5)]),
}
PROBABILITY: dict[str, tuple[Callable[..., Array], int, list[tuple[float, ...]]]] = {
    "binary_cross_entropy": (_cross_entropy, 3, [()]),
    "binary_cross_entropy_backward": (_cross_entropy_backward, 4, [(1,), (0.25,)]),
}
# x and target: where the pieces of a loss meet, what has no number, logarithms of 0.
PAIRS = [(1, 0), (0.5, 0), (-0.5, 0), (0, 1), (2, 2), (0, -0.0)]
PAIRS += [(inf, 0), (0, inf), (-inf, inf), (inf, inf), (nan, 1), (1, nan)]
CHANCES = [(0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5), (0, 0.5), (1, 0.25), (nan, 1), (0.5, nan)]


def _more_precise(function: Callable[..., Array], inputs: int) -> Callable[..., Array]:
    return lambda *given: function(
        *(np.asarray(x, np.longdouble) for x in given[:inputs]), *given[inputs:]
    )


def cases() -> Iterator[Case]:
    for family, special in ((REGRESSION, PAIRS), (PROBABILITY, CHANCES)):
        for kernel, (function, count, parameter_sets) in family.items():
            exact = _more_precise(function, count)
            for dtype in REALS:
                ulps = 1 if dtype is not COMPUTE[dtype] else 8
                # Where 1 - x rounds, or the difference of both is next to nothing.
                off = 4 * EPSILON[COMPUTE[dtype]] if kernel == "binary_cross_entropy" else 0.0
                off = max(off, TINIEST[dtype])
                for parameters in parameter_sets:
                    inputs = [numbers((4099,), dtype, seed) for seed in range(count)]
                    if family is PROBABILITY:
                        # Between 0 and 1 are those that are kept from both.
                        inputs[:2] = [1 / (1 + np.exp(-values)) for values in inputs[:2]]
                    for i, pair in enumerate(special):
                        for values, value in zip(inputs, pair, strict=False):
                            values[i] = value
                    for case in elementwise(
                        kernel,
                        exact,
                        dtype,
                        *inputs,
                        parameters=parameters,
                        ulps=ulps,
                        absolute=off,
                    ):
                        name = f"{case.name} {parameters}"
                        yield Case(kernel, name, case.args, case.types)
