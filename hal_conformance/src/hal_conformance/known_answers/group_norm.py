# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of group norm and layer norm, and of their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    REALS,
    STORAGE,
    Array,
    Case,
    In,
    Out,
    Workspace,
    rounded,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import numbers
from hal_conformance.known_answers.reduction import HALVES, inf, nan

# Of the elements, and of parameters and statistics.
TYPES = [
    *((dtype, dtype) for dtype in REALS),
    (DType.FLOAT16, DType.FLOAT32),
    (DType.BFLOAT16, DType.FLOAT32),
]
# rows, groups, channels, inner: layer norms, group norms, groups of channels of one element
Shape = tuple[int, int, int, int]
SMALL: list[Shape] = [(3, 1, 7, 1), (2, 3, 2, 5), (2, 3, 4, 1), (1, 1, 1, 6), (5, 1, 65, 1)]
SMALL += [(2, 2, 3, 16), (70, 2, 3, 2), (70, 1, 9, 1)]
SMALL += [(0, 1, 3, 1), (0, 2, 3, 4)]
LARGE: list[Shape] = [(2, 1, n, 1) for n in (2, 63, 64, 1023, 1024, 1025, 4096, 4099, 20000)]
LARGE += [(300, 1, 9, 1), (2, 2, 3, 4099), (1, 2, 65, 64), (70, 3, 2, 2), (2, 1, 1, 40000)]
EPS = 2.0**-10


def _args(types: tuple[DType, DType], shape: Shape, **operands: Any) -> dict[str, Any]:
    names = ("rows", "groups", "channels", "inner")
    return {
        "dtype": types[0],
        "parameter_dtype": types[1],
        "statistics_dtype": types[1],
        **dict(zip(names, shape, strict=True)),
        "epsilon": EPS,
        **operands,
    }


def _name(types: tuple[DType, DType], shape: Shape, label: str) -> str:
    return f"{types[0].name.lower()} {types[1].name.lower()} {shape} {label}"


def _wide(values: Array, dtype: DType) -> Array:
    return np.asarray(rounded(values, dtype), np.longdouble)


def _parameters(shape: Shape, dtype: DType, seed: int) -> Array:
    return _wide(numbers(shape[1:3], DType.FLOAT64, seed), dtype)[..., None]


def _most(values: Array) -> float:
    return float(np.max(values[np.isfinite(values)], initial=0))


def forward(
    types: tuple[DType, DType],
    x: Array,
    label: str = "",
    weight: bool = True,
    bias: bool = True,
) -> Case:
    dtype, parameter = types
    shape, computed = x.shape, COMPUTE[dtype]
    x = _wide(x, dtype)
    w = _parameters(shape, parameter, 2) if weight else np.ones(1)
    b = _parameters(shape, parameter, 3) if bias else np.zeros(1)
    with np.errstate(all="ignore"):
        mean = np.mean(x, axis=(2, 3), keepdims=True)
        variance = np.mean((x - mean) ** 2, axis=(2, 3), keepdims=True)
        rstd = 1 / np.sqrt(variance + np.longdouble(EPS))
        # A method may multiply with weight * rstd and add bias - mean * weight * rstd.
        off = np.abs(x * rstd * w) + np.abs(mean * rstd * w) + np.abs(b)
        expected = (x - mean) * rstd * w + b
    args = _args(
        types,
        shape,
        **{"in": In(x, dtype)},
        weight=In(w, parameter) if weight else None,
        bias=In(b, parameter) if bias else None,
        out=Out(expected, dtype, ulps=2, absolute=4 * EPSILON[computed] * _most(off)),
        mean=Out(mean, parameter, ulps=1, absolute=8 * EPSILON[computed] * _most(np.abs(x))),
        rstd=Out(rstd, parameter, ulps=1 if parameter in HALVES else 8),
    )
    return Case("group_norm", _name(types, shape, label).strip(), args, types)


def backward(
    types: tuple[DType, DType],
    x: Array,
    label: str = "",
    weight: bool = True,
    wanted: tuple[bool, bool, bool] = (True, True, True),
) -> Case:
    dtype, parameter = types
    shape, computed = x.shape, COMPUTE[dtype]
    x, grad = _wide(x, dtype), _wide(numbers(shape, dtype, 4), dtype)
    size = max(1, shape[2] * shape[3])
    mean = _wide(np.sum(x, axis=(2, 3), keepdims=True) / size, parameter)
    variance = np.sum((x - mean) ** 2, axis=(2, 3), keepdims=True) / size
    rstd = _wide(1 / np.sqrt(variance + EPS), parameter)
    w = _parameters(shape, parameter, 2) if weight else np.ones(1)
    normal, scaled = (x - mean) * rstd, grad * w

    def average(values: Array) -> Array:
        return np.sum(values, axis=(2, 3), keepdims=True) / np.longdouble(size)

    expected = (scaled - average(scaled) - normal * average(scaled * normal)) * rstd
    off = np.abs(scaled) + average(np.abs(scaled))
    off = (off + np.abs(normal) * average(np.abs(scaled * normal))) * rstd
    weights, biases = grad * normal, grad
    epsilon = 4 * EPSILON[computed]
    outs = [Out(expected, dtype, ulps=2, absolute=epsilon * _most(off))]
    for terms in (weights, biases):
        total = np.sum(terms, axis=(0, 3))
        error = epsilon * _most(np.sum(np.abs(terms), axis=(0, 3)))
        outs.append(Out(total, parameter, ulps=2, absolute=error))
    planes = shape[0] * shape[1] * shape[2]
    args = _args(
        types,
        shape,
        **{"in": In(x, dtype), "out": In(grad, dtype)},
        weight=In(w, parameter) if weight else None,
        mean=In(mean, parameter),
        rstd=In(rstd, parameter),
        sums=Workspace(2 * planes * STORAGE[computed].itemsize),
        **{
            name: out if is_wanted else None
            for name, out, is_wanted in zip(
                ("grad_in", "grad_weight", "grad_bias"), outs, wanted, strict=True
            )
        },
    )
    return Case("group_norm_backward", _name(types, shape, label).strip(), args, types)


def cases() -> Iterator[Case]:
    for types in TYPES:
        for shape in SMALL + (LARGE if types == TYPES[2] else LARGE[2:8:5]):
            x = numbers(shape, types[0], 1)
            yield forward(types, x)
            yield backward(types, x)
        for shape in ((3, 1, 9, 1), (2, 2, 3, 5), (2, 2, 9, 1)):
            x = numbers(shape, types[0], 1)
            yield forward(types, x, "no weight", weight=False)
            yield forward(types, x, "no bias", bias=False)
            yield forward(types, x, "no parameters", weight=False, bias=False)
            yield backward(types, x, "no weight", weight=False)
            for wanted in ((True, False, False), (False, True, False), (False, False, True)):
                yield backward(types, x, f"wanted {wanted}", wanted=wanted)
    for dtype in (DType.FLOAT32, DType.FLOAT64):
        for shape in ((2, 1, 600, 1), (2, 2, 3, 300), (2, 1, 20000, 1)):
            far = numbers(shape, dtype, 1) + 1000
            yield forward((dtype, dtype), far, "far from 0")
            yield backward((dtype, dtype), far, "far from 0")
    for dtype in REALS:
        for special in (inf, -inf, nan):
            for shape in ((3, 1, 4, 1), (3, 1, 2, 2)):
                # One group of three has it.
                x = numbers(shape, dtype, 1)
                x[1, 0, 1, 0] = special
                yield forward((dtype, dtype), x, f"with {special}")
        yield forward((dtype, dtype), np.full((2, 2, 3, 4), 3.0), "equal elements")
