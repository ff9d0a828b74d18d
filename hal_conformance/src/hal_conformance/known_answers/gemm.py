# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "gemm"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum, auto
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPLEXES,
    COMPUTE,
    EPSILON,
    INTEGERS,
    LAYOUTS,
    Array,
    Case,
    In,
    Layout,
    Out,
    dense,
    flipped,
    gaps,
    padded,
    padded_columns,
    rounded,
    transposed,
    types_of,
)
from hal_conformance.kernels import DType

# batch, m, n, k: sizes around those of tiles, vectors, and nothing.
SIZES = [
    (1, 1, 1, 1),
    (1, 1, 9, 5),
    (1, 7, 1, 5),
    (3, 5, 7, 4),
    (1, 64, 64, 64),
    (2, 65, 33, 70),
    (1, 130, 17, 257),
    (1, 9, 5, 1100),  # a sum that kernels divide
    (1, 0, 3, 2),
    (1, 3, 0, 2),
    (0, 2, 2, 2),
    (2, 3, 4, 0),
]


#: puone_activation
NONE, RELU = 0, 1


#: Between 1 and the next larger number.
EPSILON_OF_TF32 = 2.0**-10


class Tf32(Enum):
    """Whether factors may be rounded to TF32."""

    NO = auto()
    EXACT = auto()  # they may, and lose nothing by it
    ROUNDED = auto()


def of_tf32(values: Array) -> Array:
    """The numbers without the bits that TF32 lacks."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return bits.view(np.float32).astype(values.dtype)


def numbers(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Numbers of `dtype` around 0, and as large as wraps where it is an integer."""
    random = np.random.default_rng(seed)
    if dtype in INTEGERS:
        return rounded(random.integers(-100, 100, shape), dtype)
    values = random.standard_normal(shape)
    if dtype in COMPLEXES:
        values = values + 1j * random.standard_normal(shape)
    return rounded(values, dtype)


def wide(values: Any, dtype: DType) -> Array:
    """For the reference: Python's integers, or numbers of more precision than the kernel's."""
    if dtype in INTEGERS:
        return np.asarray(values).astype(object)
    return np.asarray(values, np.clongdouble if dtype in COMPLEXES else np.longdouble)


def narrow(values: Array, dtype: DType) -> Array:
    """What the reference's numbers are as integers of `dtype`, which wrap, or as float64."""
    if dtype not in INTEGERS:
        return np.asarray(values, np.complex128 if dtype in COMPLEXES else np.float64)
    wrapped = [int(value) & (1 << 64) - 1 for value in values.reshape(-1)]
    return np.array(wrapped, np.uint64).reshape(values.shape)


def product(
    dtype: DType,
    size: tuple[int, int, int, int],
    label: str = "",
    alpha: complex = 1,
    beta: complex = 0,
    layouts: tuple[Layout, Layout, Layout] = (dense, dense, dense),
    conj: tuple[bool, bool] = (False, False),
    first: complex | None = None,
    tf32: Tf32 = Tf32.NO,
    bias: tuple[int, int, int] | None = None,
    activation: int = NONE,
) -> Case:
    """A case of `size`; layouts are those of out, a and b. `first` replaces the first of a. `bias`
    is the shape of `self` where that is broadcast."""
    batch, m, n, k = size
    a, b = numbers((batch, m, k), dtype, 1), numbers((batch, k, n), dtype, 2)
    if tf32 is Tf32.EXACT:
        a, b = of_tf32(a), of_tf32(b)
    if first is not None:
        a[0, 0, 0] = first
    self = numbers(bias or (batch, m, n), dtype, 3)
    exact_a, exact_b = (
        np.conj(wide(x, dtype)) if flag else wide(x, dtype)
        for x, flag in zip((a, b), conj, strict=True)
    )
    factors = [
        int(x.real) if dtype in INTEGERS else x if dtype in COMPLEXES else x.real
        for x in (complex(alpha), complex(beta))
    ]
    expected = factors[0] * (exact_a @ exact_b) if k else wide(np.zeros((batch, m, n)), dtype)
    expected = expected + factors[1] * wide(self, dtype)
    if activation == RELU:
        expected = np.maximum(expected, 0)
    ulps, absolute = 0.0, 0.0
    if dtype not in INTEGERS:
        ulps = 4 if COMPUTE[dtype] is dtype else 1
        terms = np.abs(a) @ np.abs(b) if k else np.zeros((batch, m, n))
        largest = float(np.nanmax(terms, initial=0)) * max(1, abs(alpha)) + 4 * abs(beta)
        # Each factor may be off by half a unit of TF32.
        of_sums = EPSILON_OF_TF32 if tf32 is Tf32.ROUNDED else 4 * EPSILON[COMPUTE[dtype]]
        absolute = of_sums * largest
    args = {
        "dtype": dtype,
        "allow_tf32": int(tf32 is not Tf32.NO),
        "batch": batch,
        "m": m,
        "n": n,
        "k": k,
        "activation": activation,
        "alpha": _factor(alpha),
        "beta": _factor(beta),
        "out": Out(narrow(expected, dtype), dtype, layouts[0], ulps, absolute),
        "self": In(self, dtype) if beta else None,
        "a": In(a, dtype, layouts[1], conj[0]),
        "b": In(b, dtype, layouts[2], conj[1]),
    }
    return Case("gemm", f"{dtype.name.lower()} {size} {label}".strip(), args, (dtype,))


def _factor(value: complex) -> dict[str, Any]:
    number = complex(value)
    return {"real": number.real, "imaginary": number.imag, "integer": int(number.real)}


def with_bias(dtype: DType, activation: int) -> Iterator[Case]:
    """What is added has one number for each column, for each row, or for all."""
    label = "relu, " if activation == RELU else ""
    for m, n, k in ((40, 72, 65), (1, 48, 33), (33, 1, 48), (3, 5, 1300)):
        for name, bias in (("columns", (1, 1, n)), ("rows", (1, m, 1)), ("all", (1, 1, 1))):
            for layout in (dense, transposed):
                yield product(
                    dtype,
                    (1, m, n, k),
                    f"{label}a number for {name}, {layout.__name__}",
                    beta=1,
                    layouts=(layout, dense, transposed),
                    bias=bias,
                    activation=activation,
                )


def of_aligned_rows(dtype: DType, **options: Any) -> Iterator[Case]:
    """Rows, or columns, that begin at multiples of 16 bytes, and end anywhere."""
    for size in ((2, 20, 70, 45), (2, 70, 130, 100), (1, 40, 24, 1100)):
        for left in (padded, padded_columns):
            for right in (padded, padded_columns):
                label = f"a {left.__name__}, b {right.__name__}"
                yield product(dtype, size, label, layouts=(dense, left, right), **options)
    for depth in (1, 31, 32, 33, 64, 65, 96, 97, 160):
        layouts = (padded, padded, padded)
        yield product(dtype, (1, 40, 16, depth), "aligned", layouts=layouts, **options)
    layouts = (padded_columns, padded, padded)
    yield product(dtype, (2, 40, 72, 48), "aligned, all of it", 2, 3, layouts, **options)


def cases() -> Iterator[Case]:
    for dtype in types_of("gemm"):
        for size in SIZES:
            yield product(dtype, size)
        yield product(dtype, (2, 5, 7, 9), "alpha 3", alpha=3)
        yield product(dtype, (2, 5, 7, 9), "alpha -2 beta 3", alpha=-2, beta=3)
        yield product(dtype, (2, 5, 7, 0), "only beta", beta=2)
        yield product(dtype, (1, 66, 70, 40), "large with beta", beta=1)
        for layout in LAYOUTS[1:]:
            name = layout.__name__
            yield product(dtype, (2, 9, 8, 7), f"out {name}", layouts=(layout, dense, dense))
            yield product(dtype, (2, 9, 8, 7), f"a {name}", layouts=(dense, layout, dense))
            yield product(dtype, (2, 9, 8, 7), f"b {name}", layouts=(dense, dense, layout))
        mixed = (gaps, transposed, flipped)
        yield product(dtype, (1, 67, 69, 65), "every factor strided", layouts=mixed)
    for dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64):
        for activation in (NONE, RELU):
            yield from with_bias(dtype, activation)
        nan = float("nan")
        yield product(dtype, (1, 4, 5, 6), "relu of NaN", first=nan, activation=RELU)
        yield product(dtype, (2, 5, 70, 600), "relu", alpha=2, activation=RELU)
        yield product(dtype, (2, 5, 7, 0), "relu, only beta", beta=-2, activation=RELU)
        yield product(dtype, (1, 66, 70, 40), "relu with beta", beta=1, activation=RELU)
    for dtype in (DType.FLOAT16, DType.BFLOAT16):
        yield from of_aligned_rows(dtype)
    yield from of_aligned_rows(DType.FLOAT32, tf32=Tf32.EXACT)
    for size in SIZES:
        yield product(DType.FLOAT32, size, "TF32", tf32=Tf32.EXACT)
    for layout in (transposed, gaps):
        layouts = (dense, layout, layout)
        yield product(
            DType.FLOAT32,
            (2, 40, 64, 32),
            f"TF32 {layout.__name__}",
            2,
            3,
            layouts,
            tf32=Tf32.EXACT,
        )
    yield product(DType.FLOAT32, (1, 40, 50, 60), "rounded to TF32", tf32=Tf32.ROUNDED)
    for dtype, activation in ((DType.INT32, RELU), (DType.COMPLEX64, RELU), (DType.FLOAT32, 7)):
        case = product(dtype, (1, 2, 3, 4), f"activation {activation} is refused")
        args = {**case.args, "activation": activation}
        yield replace(case, args=args, fails="gemm has no such activation")
    for dtype in (DType.FLOAT32, DType.FLOAT64):
        yield product(dtype, (1, 4, 5, 6), "0 * NaN", alpha=0, beta=1, first=float("nan"))
    for dtype in (DType.COMPLEX64, DType.COMPLEX128):
        for conj in ((True, False), (False, True), (True, True)):
            yield product(dtype, (2, 6, 5, 7), f"conj {conj}", conj=conj)
        yield product(dtype, (1, 3, 4, 5), "complex factors", alpha=1 + 2j, beta=-1j)
