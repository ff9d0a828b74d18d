# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "dot"."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    INTEGERS,
    STORAGE,
    Case,
    In,
    Layout,
    Out,
    dense,
    flipped,
    gaps,
    types_of,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import narrow, numbers, wide


def dot(
    dtype: DType, n: int, layout: Layout = dense, conj: tuple[bool, bool] = (False, False)
) -> Case:
    a, b = numbers((n,), dtype, 1), numbers((n,), dtype, 2)
    exact_a, exact_b = (
        np.conj(wide(x, dtype)) if flag else wide(x, dtype)
        for x, flag in zip((a, b), conj, strict=True)
    )
    expected = np.asarray(np.sum(exact_a * exact_b) if n else 0)
    absolute = 0.0
    if dtype not in INTEGERS:
        terms = float(np.sum(np.abs(a) * np.abs(b)))
        absolute = 8 * EPSILON[COMPUTE[dtype]] * terms
    size = STORAGE[dtype].itemsize
    args = {
        "dtype": dtype,
        "n": n,
        "out": Out(
            narrow(wide(expected, dtype), dtype), dtype, ulps=bool(absolute), absolute=absolute
        ),
        "a": In(a, dtype, layout),
        "b": In(b, dtype),
        "a_stride": layout((n,), size).strides[0],
        "b_stride": size,
        "a_conj": int(conj[0]),
        "b_conj": int(conj[1]),
    }
    return Case("dot", f"{dtype.name.lower()} {n} {layout.__name__} conj {conj}", args, (dtype,))


def cases() -> Iterator[Case]:
    for dtype in types_of("dot"):
        for n in (0, 1, 2, 63, 64, 65, 1000, 5000, 70000):
            yield dot(dtype, n)
        for layout in (gaps, flipped):
            yield dot(dtype, 300, layout)
    for dtype in (DType.COMPLEX64, DType.COMPLEX128):
        for conj in ((True, False), (False, True), (True, True)):
            yield dot(dtype, 100, conj=conj)
