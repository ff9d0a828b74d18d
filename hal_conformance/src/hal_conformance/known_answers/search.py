# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "search_sorted"."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import Array, Case, In, Out, rounded, types_of
from hal_conformance.kernels import DType
from hal_conformance.known_answers.reduction import inf, nan

# Values, the length of a sequence, and values for each sequence; 0: one sequence for all.
SIZES = [(5, 7, 0), (6, 7, 3), (4, 1, 1), (9, 0, 0), (6, 0, 2), (0, 5, 0), (1, 2, 0), (1500, 65, 0)]
SIZES += [(60, n, 20) for n in (63, 64, 65, 4096, 4099)] + [(5000, 3, 100)]


def search(
    dtype: DType,
    sequences: Array,
    values: Array,
    row: int,
    right: bool,
    out_dtype: DType,
    sorter: Array | None = None,
    label: str = "",
) -> Case:
    """Sequences of shape [count, length], in order; `sorter` says where their elements are."""
    bisect = bisect_right if right else bisect_left
    length = sequences.shape[1]
    expected = [
        # NaN is behind all.
        bisect(sequences[i // row if row else 0].tolist(), value) if value == value else length
        for i, value in enumerate(values.tolist())
    ]
    stored = sequences
    if sorter is not None:
        stored = np.empty_like(sequences)
        np.put_along_axis(stored, sorter, sequences, axis=1)
    args = {
        "n": len(values),
        "length": length,
        "row": row,
        "right": int(right),
        "dtype": dtype,
        "out_dtype": out_dtype,
        "sequences": In(stored, dtype),
        "sorter": In(sorter, DType.INT64) if sorter is not None else None,
        "values": In(values, dtype),
        "out": Out(np.array(expected, np.int64), out_dtype),
    }
    name = f"{dtype.name.lower()} {len(values)} in {sequences.shape} row {row} right {right}"
    name += f" to {out_dtype.name.lower()} sorter {sorter is not None} {label}"
    return Case("search_sorted", name.strip(), args, (dtype,))


def cases() -> Iterator[Case]:
    random = np.random.default_rng(19)
    for right in (False, True):
        for dtype in types_of("search_sorted"):
            for out_dtype in (DType.INT32, DType.INT64):
                for n, length, row in SIZES:
                    count = n // row if row else 1
                    low = 0 if dtype is DType.UINT8 else -100
                    sequences = np.sort(random.integers(low, 100, (count, length)))
                    values = rounded(random.integers(low, 101, n), dtype)
                    sequences = rounded(sequences, dtype)
                    yield search(dtype, sequences, values, row, right, out_dtype)
                    sorter = random.permuted(np.tile(np.arange(length), (count, 1)), axis=1)
                    yield search(dtype, sequences, values, row, right, out_dtype, sorter)
            if dtype.name.startswith(("FLOAT", "BFLOAT")):
                ends = np.array([[-inf, -1, -0.0, 0, 0, 2, inf]])
                special = np.array([nan, inf, -inf, 0, -0.0, -2, 5, 0.5])
                yield search(dtype, ends, special, 0, right, DType.INT64, label="special")
        ends = np.array([[-(2**63), 2**53, 2**53 + 1, 2**63 - 1]])
        near = np.array([2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**63)])
        yield search(DType.INT64, ends, near, 0, right, DType.INT64, label="near each other")
