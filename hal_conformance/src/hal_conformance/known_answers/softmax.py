# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of softmax and log_softmax and their gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import COMPUTE, EPSILON, REALS, Array, Case, In, Out, rounded
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import numbers, wide
from hal_conformance.known_answers.reduction import HALVES, inf, nan

# Of the input and of the output.
Types = tuple[DType, DType]
TYPES: list[Types] = [
    *((dtype, dtype) for dtype in REALS),
    (DType.FLOAT16, DType.FLOAT32),
    (DType.BFLOAT16, DType.FLOAT32),
    (DType.FLOAT32, DType.FLOAT16),
    (DType.FLOAT32, DType.BFLOAT16),
]
# outer, size, inner
SMALL = [(1, 1, 1), (3, 7, 1), (3, 16, 1), (2, 5, 3), (4, 65, 1), (2, 64, 65)]
SMALL += [(0, 3, 1), (2, 0, 3), (2, 3, 0)]
LARGE = [(2, n, 1) for n in (2, 63, 64, 1000, 1024, 1025, 4096, 4099, 30000)]
LARGE += [(1, 4099, 2), (2, 9, 4099), (4099, 3, 1), (1, 300, 66)]
# Rows with infinities, NaN, and numbers far apart or far from 0.
SPECIAL: list[list[float]] = [
    [0, -inf, 1],
    [-inf, -inf],
    [inf, 1, 2],
    [inf, -inf],
    [1, nan, 2],
    [nan, inf],
    [0, -0.0],
    [30000, 30000, 29984],
    [-30000, -30000, -30016],
    [60000, -60000],
    [-65000],
]


def softmax(x: Array, logarithm: int) -> Array:
    """Along dimension 1, of any number that is a row's largest."""
    with np.errstate(all="ignore"):
        apart = x - np.max(x, axis=1, keepdims=True, initial=-inf)
        total = np.sum(np.exp(apart), axis=1, keepdims=True)
        return apart - np.log(total) if logarithm else np.exp(apart) / total


def _head(types: Types, shape: tuple[int, ...], logarithm: int) -> dict[str, int]:
    sizes = dict(zip(("outer", "size", "inner"), shape, strict=True))
    return {"logarithm": logarithm, "in_dtype": types[0], "out_dtype": types[1], **sizes}


def forward(types: Types, x: Array, logarithm: int, label: str) -> Case:
    read, written = types
    x = rounded(x, read)
    # A logarithm near 0 is off by what 1 is.
    absolute = 2 * EPSILON[COMPUTE[read]] if logarithm else 0
    expected = softmax(wide(x, read), logarithm)
    # Exponentials may be added one by one.
    ulps = 1 if written in HALVES else max(16, x.shape[1] / 64)
    args = {
        **_head(types, x.shape, logarithm),
        "in": In(x, read),
        "out": Out(expected, written, ulps=ulps, absolute=absolute),
    }
    name = f"{read.name.lower()} to {written.name.lower()} logarithm {logarithm} {label}"
    return Case("softmax", name, args, types)


def backward(types: Types, x: Array, grad: Array, logarithm: int, label: str) -> Case:
    read, written = types
    grad, result = rounded(grad, read), rounded(softmax(wide(x, read), logarithm), read)
    g, y = wide(grad, read), wide(result, read)
    with np.errstate(all="ignore"):
        factor = np.exp(y) if logarithm else y
        terms = g if logarithm else g * y
        total = np.sum(terms, axis=1, keepdims=True)
        expected = g - factor * total if logarithm else (g - total) * y
        magnitudes = np.sum(np.abs(terms), axis=1, keepdims=True)
        off = np.abs(g) + factor * magnitudes if logarithm else (np.abs(g) + magnitudes) * y
    largest = float(np.max(off[np.isfinite(off)], initial=0))
    args = {
        **_head(types, x.shape, logarithm),
        "in": In(grad, read),
        "result": In(result, read),
        "out": Out(expected, written, ulps=1, absolute=4 * EPSILON[COMPUTE[read]] * largest),
    }
    name = f"{read.name.lower()} to {written.name.lower()} logarithm {logarithm} {label}"
    return Case("softmax_backward", name, args, types)


def cases() -> Iterator[Case]:
    for logarithm in (0, 1):
        for types in TYPES:
            large = LARGE if types in (TYPES[2], TYPES[0]) else []
            for shape in SMALL + large:
                x, grad = (numbers(shape, types[0], seed) for seed in (10, 11))
                yield forward(types, 2 * x, logarithm, str(shape))
                yield backward(types, 2 * x, grad, logarithm, str(shape))
            for row in SPECIAL:
                for inner in (1, 3):
                    x = np.repeat(np.array(row)[None, :, None], inner, axis=2)
                    yield forward(types, x, logarithm, f"{row} inner {inner}")
            for special in (inf, nan):
                grad = np.array([1.0, special, 2.0]).reshape(1, 3, 1)
                x = np.array([1.0, 2.0, -inf]).reshape(1, 3, 1)
                yield backward(types, x, grad, logarithm, f"gradient {special}")
    # Only what is not in common counts.
    for dtype in (DType.FLOAT32, DType.FLOAT64):
        for shape in ((2, 1000, 1), (2, 100, 3)):
            far = rounded(numbers(shape, dtype, 10) + 1e4, dtype)
            for logarithm in (0, 1):
                yield forward((dtype, dtype), far, logarithm, f"{shape} far from 0")
