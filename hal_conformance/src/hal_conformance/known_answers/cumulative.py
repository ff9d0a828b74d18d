# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of running sums, products, extremes and log-sum-exps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    INTEGERS,
    LAYOUTS,
    REALS,
    Array,
    Case,
    In,
    Layout,
    Out,
    dense,
    dims,
    rounded,
    types_of,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import narrow, numbers, wide
from hal_conformance.known_answers.reduction import HALVES, Place, inf, nan, near_one

SMALL: list[Place] = [
    ((1,), (0,)),
    ((65,), (0,)),
    ((5, 7), (0,)),
    ((5, 7), (1,)),
    ((3, 4, 5), (1,)),
    ((3, 4, 5), (0,)),
    ((0, 3), (0,)),
    ((3, 0), (0,)),
]
# Long lines, one behind the other and side by side, that kernels divide.
BOTH_WAYS: list[Place] = [((2, 16_411), (1,)), ((4099, 3), (0,))]
# A line that one piece of a kernel scans, and one of more pieces than a kernel's threads.
WHOLE: Place = ((2, 300), (1,))
LONG: Place = ((600_001,), (0,))
# Around the pieces of a line and the lines side by side that kernels take at a time.
LARGE: list[Place] = [
    *(((n,), (0,)) for n in (63, 64, 255, 256, 257, 4096, 4099)),
    *BOTH_WAYS,
    ((20, 600), (0,)),
    ((2, 65, 257), (1,)),
]


@dataclass(frozen=True)
class Scan:
    """A kernel: `exact` makes each output of wide numbers along a dimension."""

    kernel: str
    values: Callable[[tuple[int, ...], DType], Array]
    exact: Callable[[Array, int], Sequence[Array]]
    ulps: float = 0
    cancels: bool = False  # the error is one of the sum of magnitudes

    @property
    def types(self) -> tuple[DType, ...]:
        return types_of(self.kernel)

    def case(
        self,
        dtype: DType,
        place: Place,
        label: str = "",
        layouts: tuple[Layout, Layout] = (dense, dense),
        values: Array | None = None,
        broadcast: bool = False,
    ) -> Case:
        shape, (along,) = place
        given = tuple(1 if d == along else n for d, n in enumerate(shape)) if broadcast else shape
        x = rounded(self.values(given, dtype) if values is None else values, dtype)
        totals = self.kernel in ("cumsum", "cumprod") and dtype in INTEGERS
        result = DType.INT64 if totals else dtype
        absolute = 0.0
        with np.errstate(all="ignore"):
            expected = self.exact(wide(np.broadcast_to(x, shape), dtype), along)
            if self.cancels and dtype not in INTEGERS:
                terms = np.sum(np.abs(np.where(np.isfinite(x), x, 0)), axis=along)
                absolute = 2 * EPSILON[COMPUTE[dtype]] * float(np.max(terms, initial=0))
        types = [result, DType.INT64][: len(expected)]
        ulps = self.ulps * max(1, shape[along] / 1024)
        ulps = min(ulps, 1) if result in HALVES else ulps
        args = {
            **dims(shape),
            "compute": DType.INT64 if totals else COMPUTE[dtype],
            "scanned": len(shape) - 1 - along,
            "in_dtype": dtype,
            "out_dtypes": types,
            "in": In(x, dtype, layouts[0]),
            "outs": [
                Out(narrow(np.asarray(values), type), type, layouts[1], ulps, absolute)
                for values, type in zip(expected, types, strict=True)
            ],
        }
        name = f"{dtype.name.lower()} {shape} along {along} {label}".strip()
        return Case(self.kernel, name, args, (dtype,))


def _extremes(better: Callable[[Any, Any], bool]) -> Callable[[Array, int], list[Array]]:
    """NaN beats all; of equal ones the last."""

    def exact(x: Array, along: int) -> list[Array]:
        values, positions = x.copy(), np.zeros(x.shape, np.int64)
        lines, at = np.moveaxis(values, along, -1), np.moveaxis(positions, along, -1)
        for index in np.ndindex(lines.shape[:-1]):
            line, found, best = lines[index], at[index], 0
            for i, value in enumerate(line.tolist()):
                old = line[best]
                best = i if value != value or better(value, old) else best
                line[i], found[i] = line[best], best
        return [values, positions]

    return exact


def _few_values(shape: tuple[int, ...], dtype: DType) -> Array:
    return np.random.default_rng(8).integers(0, 50, shape)


def _around_zero(shape: tuple[int, ...], dtype: DType) -> Array:
    return 3 * numbers(shape, dtype, 9)


KERNELS = (
    Scan(
        "cumsum",
        lambda shape, dtype: numbers(shape, dtype, 9),
        lambda x, along: [np.cumsum(x, axis=along)],
        ulps=1,
        cancels=True,
    ),
    Scan(
        "cumprod",
        near_one,
        lambda x, along: [np.cumprod(x, axis=along)],
        ulps=64,
    ),
    Scan("cummax", _few_values, _extremes(lambda a, b: a >= b)),
    Scan("cummin", _few_values, _extremes(lambda a, b: a <= b)),
    Scan(
        "logcumsumexp",
        _around_zero,
        lambda x, along: [np.logaddexp.accumulate(x, axis=along)] if x.size else [x],
        ulps=8,
        cancels=True,
    ),
)
# A row of real numbers, and what is made of it.
SPECIAL: dict[str, list[tuple[list[float], list[list[float]]]]] = {
    "cumsum": [
        ([1, inf, 2, -inf, 5], [[1, inf, inf, nan, nan]]),
        ([1, nan, 2], [[1, nan, nan]]),
    ],
    "cumprod": [
        ([2, -inf, 3, 0, 1], [[2, -inf, -inf, nan, nan]]),
        ([3, 0, 5, nan], [[3, 0, 0, nan]]),
    ],
    "cummax": [
        ([1, 3, 3, 2, 4, 4], [[1, 3, 3, 3, 4, 4], [0, 1, 2, 2, 4, 5]]),
        ([2, nan, 9, nan, 1], [[2, nan, nan, nan, nan], [0, 1, 1, 3, 3]]),
        ([-inf, -inf, inf, 5, inf], [[-inf, -inf, inf, inf, inf], [0, 1, 2, 2, 4]]),
        ([0, -0.0, 0], [[0, 0, 0], [0, 1, 2]]),
    ],
    "cummin": [
        ([3, 1, 1, 2, 0, 0], [[3, 1, 1, 1, 0, 0], [0, 1, 2, 2, 4, 5]]),
        ([2, nan, -9, nan, 1], [[2, nan, nan, nan, nan], [0, 1, 1, 3, 3]]),
        ([inf, inf, -inf, 5, -inf], [[inf, inf, -inf, -inf, -inf], [0, 1, 2, 2, 4]]),
        ([-0.0, 0], [[0, 0], [0, 1]]),
    ],
    "logcumsumexp": [
        ([-inf, -inf, 0, -inf], [[-inf, -inf, 0, 0]]),
        ([1, inf, 2, inf], [[1, inf, inf, inf]]),
        ([inf, -inf, 3], [[inf, inf, inf]]),
        ([1, nan, 2], [[1, nan, nan]]),
        ([-inf, inf, nan], [[-inf, inf, nan]]),
        ([0, -20000, 20000, 0], [[0, 0, 20000, 20000]]),
        ([20000, 20000], [[20000, 20000 + np.log(2)]]),
        ([-20000, -20000], [[-20000, -20000 + np.log(2)]]),
    ],
}


def cases() -> Iterator[Case]:
    for scan in KERNELS:
        for dtype in scan.types:
            for place in SMALL:
                yield scan.case(dtype, place)
        for dtype in [t for t in (DType.FLOAT32, DType.FLOAT64, DType.INT32) if t in scan.types]:
            for place in LARGE:
                yield scan.case(dtype, place)
        for dtype in (DType.INT64, DType.COMPLEX64, DType.COMPLEX128):
            for place in (*BOTH_WAYS, WHOLE) if dtype in scan.types else ():
                yield scan.case(dtype, place)
        for dtype in [t for t in (DType.FLOAT32, DType.INT16) if t in scan.types]:
            for along in (0, 1):
                place = ((9, 70), (along,))
                for layout in LAYOUTS[1:]:
                    yield scan.case(dtype, place, f"in {layout.__name__}", (layout, dense))
                    yield scan.case(dtype, place, f"out {layout.__name__}", (dense, layout))
                yield scan.case(dtype, place, "broadcast", broadcast=True)
        if scan.kernel == "cumsum":
            yield scan.case(DType.INT32, LONG)
        for row, expected in SPECIAL[scan.kernel]:
            for dtype in REALS:
                case = scan.case(dtype, ((len(row),), (0,)), str(row), values=row)
                outs = [
                    Out(rounded(values, out.dtype), out.dtype, ulps=min(scan.ulps, 1))
                    for values, out in zip(expected, case.args["outs"], strict=True)
                ]
                yield Case(case.kernel, case.name, {**case.args, "outs": outs}, case.types)
