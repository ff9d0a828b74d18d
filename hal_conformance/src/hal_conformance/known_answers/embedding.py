# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "embedding_bag"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hal_conformance import contract
from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    LAYOUTS,
    REALS,
    STORAGE,
    Array,
    Case,
    In,
    Layout,
    Out,
    dense,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import numbers
from hal_conformance.known_answers.reduction import inf, nan

MODES = contract.enums()["puone_bag_mode"]
# The sizes of the bags; the first three are of bags at both ends and in the middle without indices.
BAGS = [[0, 3, 0, 0, 2, 0], [1], [0], [], [7, 1, 4], [64, 65, 0, 63], [4096, 4099], [1] * 300]
COLUMNS = (1, 5, 65)


def bags(
    dtype: DType,
    index_dtype: DType,
    mode: str,
    sizes: Sequence[int],
    weight: Array,
    label: str = "",
    indices: Array | None = None,
    padding: int = -1,
    scaled: bool = False,
    last_offset: bool = False,
    layout: Layout = dense,
) -> Case:
    """Bags of `sizes`, of any rows where no indices are given."""
    rows, columns = weight.shape
    count = sum(sizes)
    random = np.random.default_rng(20)
    indices = random.integers(0, rows, count) if indices is None else np.asarray(indices)
    scales = numbers((count,), dtype, 21)
    offsets = np.cumsum([0, *sizes])
    bag_of = np.repeat(np.arange(len(sizes)), sizes)
    out = np.zeros((len(sizes), columns), np.longdouble)
    found = np.zeros((len(sizes),), np.int64)
    largest = np.zeros((len(sizes), columns), np.int64)
    terms = 0.0
    for bag in range(len(sizes)):
        inside = range(offsets[bag], offsets[bag + 1])
        counted = [j for j in inside if indices[j] != padding and 0 <= indices[j] < rows]
        found[bag] = len(counted)
        if not counted:
            continue
        taken = weight[indices[counted]].astype(np.longdouble)
        if mode == "PUONE_BAG_MAX":
            first = np.argmax(taken, axis=0)
            largest[bag] = indices[counted][first]
            out[bag] = np.max(taken, axis=0)
            continue
        taken = taken * scales[counted][:, None] if scaled else taken
        with np.errstate(invalid="ignore"):
            out[bag] = np.sum(taken, axis=0)
        finite = np.where(np.isfinite(taken), np.abs(taken), 0)
        share = len(counted) if mode == "PUONE_BAG_MEAN" else 1
        out[bag] /= share
        terms = max(terms, float(np.max(np.sum(finite, axis=0), initial=0)) / share)
    size = max(sizes, default=0)
    exact = mode == "PUONE_BAG_MAX"
    # Rows are added one by one: the error grows with the size of a bag.
    off = 0.0 if exact else EPSILON[COMPUTE[dtype]] * terms * max(4, size / 32)
    args = {
        "bags": len(sizes),
        "columns": columns,
        "rows": rows,
        "index_count": count,
        "offset_count": len(sizes) + last_offset,
        "padding": padding,
        "mode": contract.constants()[mode],
        "dtype": dtype,
        "index_dtype": index_dtype,
        "weight_strides": layout(weight.shape, STORAGE[dtype].itemsize).strides,
        "weight": In(weight, dtype, layout),
        "indices": In(indices, index_dtype),
        "offsets": In(offsets if last_offset else offsets[:-1], index_dtype),
        "scales": In(scales, dtype) if scaled else None,
        "out": Out(out, dtype, ulps=0 if exact else 2, absolute=off),
        "offset2bag": Out(bag_of, index_dtype),
        "bag_size": Out(found, index_dtype),
        "max_indices": Out(largest, index_dtype) if exact else None,
    }
    name = f"{dtype.name.lower()} {index_dtype.name.lower()} {mode[10:].lower()} "
    name += f"{str(sizes)[:40]} of {weight.shape} {layout.__name__} padding {padding} "
    name += f"scaled {scaled} last offset {last_offset} {label}"
    return Case("embedding_bag", name.strip(), args, (dtype,))


def cases() -> Iterator[Case]:
    for mode in MODES:
        plain = mode == "PUONE_BAG_SUM"
        for dtype in REALS:
            for index_dtype in (DType.INT32, DType.INT64):
                table = numbers((9, 5), dtype, 22)
                for padding in (-1, 3):
                    for last_offset in (False, True):
                        options: dict[str, Any] = {"padding": padding, "last_offset": last_offset}
                        yield bags(dtype, index_dtype, mode, BAGS[0], table, **options)
                        yield bags(dtype, index_dtype, mode, BAGS[4], table, **options)
                if plain:
                    yield bags(dtype, index_dtype, mode, BAGS[4], table, scaled=True)
                only: dict[str, Any] = {"indices": [3, 3], "padding": 3}
                yield bags(dtype, index_dtype, mode, [2], table, "only padding", **only)
        for sizes in BAGS:
            for columns in COLUMNS:
                table = numbers((9, columns), DType.FLOAT32, 22)
                yield bags(DType.FLOAT32, DType.INT64, mode, sizes, table, "sizes")
        for layout in LAYOUTS[1:]:
            table = numbers((9, 5), DType.FLOAT32, 22)
            yield bags(DType.FLOAT32, DType.INT64, mode, BAGS[4], table, layout=layout)
        for dtype in REALS:
            table = np.array([[1, 2, -inf], [inf, 2, -inf], [-inf, 2, -inf]])
            for indices in ([0, 1, 0], [2, 0, 2], [2, 1, 0]):
                # Of equal ones the first is the largest.
                label = f"not finite {indices}"
                yield bags(dtype, DType.INT64, mode, [3], table, label, indices)
        if not plain:
            continue
        table = np.array([[nan, 1.0], [2, nan]])
        yield bags(DType.FLOAT32, DType.INT64, mode, [1, 1], table, "NaN", [0, 1])
    yield from _wrong()


def _wrong() -> Iterator[Case]:
    """Indices and offsets that are refused."""
    table = numbers((9, 5), DType.FLOAT32, 22)
    for mode in MODES:
        for index_dtype in (DType.INT32, DType.INT64):
            for index in (9, -1, 2**31 - 1):
                indices = [1, 2, index, 0]
                # Nothing but the padding may be outside: that is -2 here.
                case = bags(
                    DType.FLOAT32, index_dtype, mode, [1, 3], table, str(index), indices, -2
                )
                said = f"embedding_bag: index {index} is out of bounds for dimension with size 9"
                yield Case(case.kernel, case.name, case.args, case.types, fails=said)
    # An offset behind all indices, one before them, and one before the offset that it follows.
    for offsets, said in (
        ([0, 5], "embedding_bag: index 5 is out of bounds for dimension with size 5"),
        ([-1, 2], "embedding_bag: index -1 is out of bounds for dimension with size 3"),
        ([3, 1], "embedding_bag: index 3 is out of bounds for dimension with size 2"),
    ):
        case = bags(DType.FLOAT32, DType.INT64, MODES[0], [1, 3], table, f"offsets {offsets}")
        args = {**case.args, "offsets": In(np.array(offsets), DType.INT64)}
        yield Case(case.kernel, case.name, args, case.types, fails=said)
