# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of sorting and of what follows from an order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    INTEGERS,
    LAYOUTS,
    REALS,
    Array,
    Case,
    In,
    Layout,
    Out,
    Workspace,
    dense,
    dims,
    rounded,
    types_of,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import numbers
from hal_conformance.known_answers.reduction import Place, inf, nan

SMALL: list[Place] = [((), ()), ((1,), (0,)), ((2,), (0,)), ((65,), (0,)), ((5, 7), (0,))]
SMALL += [((5, 7), (1,)), ((3, 4, 5), (1,)), ((0, 3), (1,)), ((3, 0), (0,))]
# Around the sizes at which a sort changes its method.
LARGE: list[Place] = [((2, n), (1,)) for n in (31, 32, 33, 63, 64, 1024, 1025, 4096, 4099)]
LARGE += [((20000,), (0,)), ((300, 3), (0,)), ((70, 65), (1,)), ((600, 5), (1,))]
# What is left of a line: positions in the line, in the order of the result.
Choice = Callable[[list[float], int], list[int]]


def in_order(line: Sequence[float], descending: bool = False) -> list[int]:
    """Positions by value, NaN the largest; equal ones, and NaNs, as they come in the line."""
    numbers_in = [i for i, x in enumerate(line) if x == x]
    without = [i for i, x in enumerate(line) if x != x]
    # Python's sort is stable in both directions.
    numbers_in.sort(key=lambda i: line[i], reverse=descending)
    return without + numbers_in if descending else numbers_in + without


def _median(line: list[float], count: int) -> list[int]:
    without = [i for i, x in enumerate(line) if x != x]
    return without[:1] or [in_order(line)[(len(line) - 1) // 2]]


def _nanmedian(line: list[float], count: int) -> list[int]:
    found = sum(x == x for x in line)
    return [in_order(line)[(found - 1) // 2 if found else 0]]


def _mode(line: list[float], count: int) -> list[int]:
    times = Counter(x for x in line if x == x)
    most = min(x for x in times if times[x] == max(times.values()))
    return [max(i for i, x in enumerate(line) if x == most)]


ONE_OF: dict[str, Choice] = {
    "kth": lambda line, count: in_order(line)[count - 1 : count],
    "median": _median,
    "nanmedian": _nanmedian,
    "mode": _mode,
}


def order(
    kernel: str,
    dtype: DType,
    x: Array,
    along: int,
    count: int,
    descending: bool = False,
    layouts: tuple[Layout, Layout] = (dense, dense),
    label: str = "",
) -> Case:
    """The launch; `along` is -1 where there are no dimensions."""
    x = rounded(x, dtype)
    lines = np.moveaxis(x, along, -1) if x.ndim else x[None]
    kept = count if kernel == "sort" else 1
    positions = np.zeros((*lines.shape[:-1], kept), np.int64)
    for index in np.ndindex(lines.shape[:-1]):
        line = lines[index].tolist()
        found = in_order(line, descending) if kernel == "sort" else ONE_OF[kernel](line, count)
        positions[index] = found[:kept]
    values = np.take_along_axis(lines, positions, axis=-1)
    back = [np.moveaxis(y, -1, along) if x.ndim else y[0] for y in (values, positions)]
    args = {
        **dims(x.shape),
        "compute": COMPUTE[dtype],
        "ordered": x.ndim - 1 - along if x.ndim else -1,
        "dtype": dtype,
        "descending": int(descending),
        "count": count,
        "in": In(x, dtype, layouts[0]),
        "outs": [Out(back[0], dtype, layouts[1]), Out(back[1], DType.INT64, layouts[1])],
        "items": Workspace(16 * x.size),
    }
    name = f"{dtype.name.lower()} {x.shape} along {along} count {count}"
    name += " descending" if descending else ""
    return Case(kernel, f"{name} {label}".strip(), args, (dtype,))


def every(
    dtype: DType,
    x: Array,
    along: int,
    label: str = "",
    layouts: tuple[Layout, Layout] = (dense, dense),
) -> Iterator[Case]:
    """Sorts in both directions, of the whole lines and of their beginnings; all other kernels."""
    size = np.shape(x)[along] if np.ndim(x) else 1
    for descending in (False, True):
        for count in sorted({size, size // 2, min(size, 3)} - ({0} if size else set())):
            yield order("sort", dtype, x, along, count, descending, layouts, label)
    if size:
        for k in sorted({1, (size + 1) // 2, size}):
            yield order("kth", dtype, x, along, k, False, layouts, label)
        for kernel in ("median", "nanmedian", "mode"):
            yield order(kernel, dtype, x, along, 0, False, layouts, label)


def few_digits(size: int, bits: int) -> Array:
    """Lines in which all numbers have some of their bits in common: none, the upper or the lower
    ones, all but some in the middle, and all."""
    any_bits = np.random.default_rng(19).integers(0, 1 << bits, size)
    return np.stack(
        [any_bits, any_bits % 200, any_bits & -(1 << bits // 2), any_bits % 200 << 8, any_bits * 0]
    )


# Rows with infinities, NaN, equal elements and zeros of both signs.
SPECIAL: list[list[float]] = [
    [inf, -inf, 0, nan, -0.0, 1],
    [nan, 3, nan, 1, 2, 1],
    [0, -0.0, 0, -0.0],
    [-0.0, 0.0],
    [2, 2, 2, 1, 1, 1, 3],
    [inf, inf, -inf, -inf, nan],
    [5, 1, 4, 2],
    [1, nan],
]


def cases() -> Iterator[Case]:
    x: Array
    for dtype in types_of("kth"):
        for shape, over in SMALL:
            # Few values, so that many are equal.
            x = np.round(numbers(shape, dtype, 16), 0 if dtype in INTEGERS else 1)
            yield from every(dtype, x, over[0] if over else -1)
        ends = {DType.INT64: 2**63, DType.INT32: 2**31, DType.INT16: 2**15, DType.INT8: 2**7}
        if end := ends.get(dtype):
            # The next one differs in the last bit.
            yield from every(dtype, np.array([end - 1, -end, 0, end - 2, -1, 1 - end]), 0)
    for descending in (False, True):
        yield order("sort", DType.BOOL, numbers((3, 70), DType.INT32, 16) > 0, 1, 70, descending)
    for dtype in (DType.FLOAT32, DType.INT64):
        for shape, over in LARGE:
            some_equal = np.random.default_rng(17).integers(-100, 100, shape)
            yield from every(dtype, some_equal, over[0])
    for dtype, bits in ((DType.INT32, 30), (DType.INT64, 62)):
        yield from every(dtype, few_digits(4099, bits), 1, "few digits")
    many = np.random.default_rng(17).integers(0, 256, 131_101)
    yield order("sort", DType.UINT8, many, 0, len(many))
    for dtype in (DType.FLOAT64, DType.INT32):
        yield from every(dtype, np.random.default_rng(18).permutation(4099), 0, "all different")
        yield from every(dtype, np.arange(4099), 0, "in order")
        yield from every(dtype, np.arange(4099)[::-1], 0, "in reverse")
        yield from every(dtype, np.zeros(4099), 0, "all equal")
    for dtype in REALS:
        for row in SPECIAL:
            yield from every(dtype, np.array(row), 0, str(row))
        x = numbers((9, 70), dtype, 16)
        x[:, ::7] = nan
        x[4] = np.where(np.arange(70) == 3, 1, nan)
        yield from every(dtype, x, 1, "some NaN")
        for kernel in ("median", "nanmedian"):
            yield order(kernel, dtype, np.full(5, nan), 0, 0, label="only NaN")
        yield order("sort", dtype, np.full(5, nan), 0, 5, label="only NaN")
    for dtype in (DType.FLOAT32, DType.INT16):
        x = np.random.default_rng(17).integers(-9, 9, (9, 70))
        for along in (0, 1):
            for layout in LAYOUTS[1:]:
                yield from every(dtype, x, along, f"in {layout.__name__}", (layout, dense))
                yield from every(dtype, x, along, f"out {layout.__name__}", (dense, layout))
