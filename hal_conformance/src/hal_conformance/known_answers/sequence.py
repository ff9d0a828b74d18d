# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "sequence" and "triangle_indices"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np

from hal_conformance.answers import (
    COMPLEXES,
    INTEGERS,
    REALS,
    STORAGE,
    Array,
    Case,
    Layout,
    Out,
    dense,
    element,
    flipped,
    gaps,
    types_of,
)
from hal_conformance.contract import constants
from hal_conformance.kernels import DType

# Around the pieces and the shares of a core in which elements are made.
LENGTHS = (0, 1, 2, 7, 255, 256, 257, 40_001)
KINDS = ("PUONE_FROM_START", "PUONE_FROM_BOTH", "PUONE_POWERS", "PUONE_KAISER")
# (rows, columns): of no element, of one row, wide, tall, and more than one share of a core.
MATRICES = ((0, 3), (3, 0), (1, 1), (1, 9), (4, 7), (7, 4), (150, 130), (3, 9000))


def sequence(
    label: str,
    dtype: DType,
    compute: DType,
    kind: str,
    expected: Array,
    start: complex = 0,
    step: complex = 0,
    end: complex = 0,
    base: float = 0,
    layout: Layout = dense,
    ulps: float = 0,
) -> Case:
    args = {
        "n": len(expected),
        "out": Out(expected, dtype, layout, ulps),
        "out_stride": layout(expected.shape, STORAGE[dtype].itemsize).strides[0],
        "dtype": dtype,
        "compute": compute,
        "progression": constants()[kind],
        "start": element(start, compute),
        "step": element(step, compute),
        "end": element(end, compute),
        "base": base,
    }
    name = f"{dtype.name.lower()} in {compute.name.lower()} {kind[6:].lower()} {label}"
    return Case("sequence", name, args, (dtype,))


def places(n: int, kind: str, start: Any, step: Any, end: Any) -> list[Any]:
    """The places of the progression: exact where start, step and end are."""
    ahead = n if kind in ("PUONE_FROM_START", "PUONE_KAISER") else n // 2
    return [start + i * step if i < ahead else end - (n - 1 - i) * step for i in range(n)]


def numbers(values: list[Any], compute: DType) -> Array:
    kind = {DType.INT64: np.int64, DType.FLOAT64: np.float64, DType.COMPLEX128: np.complex128}
    return np.array([complex(x) if compute in COMPLEXES else x for x in values], kind[compute])


def _kaiser(beta: float) -> Callable[[Any], Any]:
    middle = mpmath.besseli(0, beta)

    def window(x: Any) -> Any:
        inside = mpmath.sqrt(max(0, 1 - mpmath.mpf(x) ** 2))
        return mpmath.besseli(0, beta * inside) / middle

    return window


def _arithmetic() -> Iterator[Case]:
    """Every element type, of numbers that all of them hold (integers wrap)."""
    steps = {
        DType.INT64: (3, 2, 1000),
        DType.FLOAT64: (0.5, 0.25, 90),
        DType.COMPLEX128: (1 + 2j, 0.5 - 0.25j, 8 + 8j),
    }
    for dtype in types_of("sequence"):
        for compute, (start, step, end) in steps.items():
            if compute is not DType.INT64 and compute in COMPLEXES and dtype not in COMPLEXES:
                continue
            for kind in KINDS[:2]:
                n = 101
                values = numbers(places(n, kind, start, step, end), compute)
                if dtype in INTEGERS and dtype is not DType.BOOL:
                    values = np.trunc(values).astype(np.int64)
                label = f"{start} {step} {end}"
                yield sequence(label, dtype, compute, kind, values, start, step, end)
    for n in LENGTHS:
        for layout in (dense, gaps, flipped):
            label = f"{n} {layout.__name__}"
            for dtype in (DType.UINT8, DType.INT64):  # the former wraps
                values = numbers(places(n, KINDS[1], 5, -3, 70), DType.INT64)
                yield sequence(
                    label, dtype, DType.INT64, KINDS[1], values, 5, -3, 70, layout=layout
                )
            values = numbers(
                places(n, KINDS[0], np.longdouble(0.1), np.longdouble(0.7), 0), DType.FLOAT64
            )
            yield sequence(
                label,
                DType.FLOAT64,
                DType.FLOAT64,
                KINDS[0],
                values,
                0.1,
                0.7,
                layout=layout,
                ulps=2,
            )
    huge = (1 << 62) + 12345
    values = numbers(places(3, KINDS[0], huge, -huge, 0), DType.INT64)
    yield sequence("2 ** 62", DType.INT64, DType.INT64, KINDS[0], values, huge, -huge)


def _not_finite() -> Iterator[Case]:
    nan, inf = np.nan, np.inf
    for dtype in REALS:
        for start, step, expected in (
            (nan, 1.0, [nan, nan, nan]),
            (inf, 1.0, [inf, inf, inf]),
            (1.0, -inf, [nan, -inf, -inf]),
            (-0.0, -0.0, [-0.0, -0.0, -0.0]),
            (0.0, 1e300, [0, 1e300, 2e300]),
        ):
            label = f"{start} {step}"
            values = np.array(expected)
            yield sequence(label, dtype, DType.FLOAT64, KINDS[0], values, start, step)


def _powers() -> Iterator[Case]:
    for dtype in (*INTEGERS[:-1], *REALS):
        values = numbers([2**i for i in range(7)], DType.INT64)
        yield sequence("of 2", dtype, DType.INT64, KINDS[2], values, start=0, step=1, end=6, base=2)
    for whole in (3, 7, -5, 10):  # a little less than a whole number would lose one
        values = numbers([whole**i for i in range(5)], DType.INT64)
        yield sequence(f"of {whole}", DType.INT32, DType.FLOAT64, KINDS[2], values, 0, 1, 4, whole)
    # An integer is cut off: 2 ** -1 is 0.
    values = np.array([0, 0, 1, 2, 4])
    yield sequence("negative", DType.INT32, DType.INT64, KINDS[2], values, -2, 1, 2, base=2)
    for base, start, step, n in ((10.0, -3.0, 0.5, 13), (2.5, 0.0, 0.125, 300), (0.0, 0.0, 1.0, 3)):
        end = start + (n - 1) * step
        exact = [mpmath.power(base, x) for x in places(n, KINDS[2], start, step, end)]
        for dtype in REALS:
            values = np.array([float(x) for x in exact])
            yield sequence(
                f"of {base}", dtype, DType.FLOAT64, KINDS[2], values, start, step, end, base, ulps=2
            )
    for base in (2.0, -2.0, 0.5):
        first, turn, n = -1 + 0.5j, 0.25 - 0.125j, 17
        last = first + (n - 1) * turn
        exact = [
            mpmath.power(mpmath.mpc(base), mpmath.mpc(x))
            for x in places(n, KINDS[2], first, turn, last)
        ]
        for dtype in COMPLEXES:
            yield sequence(
                f"of {base}",
                dtype,
                DType.COMPLEX128,
                KINDS[2],
                numbers(exact, DType.COMPLEX128),
                first,
                turn,
                last,
                base,
                ulps=8,
            )


def _windows() -> Iterator[Case]:
    for beta in (0.0, 0.5, 12.0, 100.0):
        for n in (2, 3, 65):
            step = 2 / (n - 1)
            # The last place may lie a little beyond 1.
            exact = places(n, KINDS[3], -1.0, step, 0)
            window = _kaiser(beta)
            values = np.array([float(window(x)) for x in exact])
            for dtype in REALS:
                yield sequence(
                    f"{beta} {n}",
                    dtype,
                    DType.FLOAT64,
                    KINDS[3],
                    values,
                    -1.0,
                    step,
                    base=beta,
                    # An error of a spacing in the exponent, which is at most beta, weighs so much.
                    ulps=1 if dtype is not DType.FLOAT64 else 64 + 2 * int(beta),
                )


def _triangles() -> Iterator[Case]:
    for rows, columns in MATRICES:
        for diagonal in (-200, -4, -1, 0, 1, 3, 200):
            for upper in (0, 1):
                of = np.triu_indices if upper else np.tril_indices
                expected = np.stack(of(rows, diagonal, columns))
                for dtype in (DType.INT32, DType.INT64):
                    args = {
                        "rows": rows,
                        "columns": columns,
                        "diagonal": diagonal,
                        "count": expected.shape[1],
                        "upper": upper,
                        "dtype": dtype,
                        "out": Out(expected, dtype),
                    }
                    side = "upper" if upper else "lower"
                    name = f"{dtype.name.lower()} {side} {rows} x {columns} from {diagonal}"
                    yield Case("triangle_indices", name, args, (dtype,))


def cases() -> Iterator[Case]:
    yield from _arithmetic()
    yield from _not_finite()
    yield from _powers()
    yield from _windows()
    yield from _triangles()
    refused = sequence(
        "refused", DType.FLOAT32, DType.FLOAT32, KINDS[0], np.zeros(3), start=1, step=1
    )
    message = "sequences are computed in int64, float64 or complex128"
    yield Case("sequence", refused.name, refused.args, fails=message)
