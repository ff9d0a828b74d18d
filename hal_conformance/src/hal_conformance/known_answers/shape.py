# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "cat", "repeat_interleave" and "triangle"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hal_conformance.answers import LAYOUTS, STORAGE, Case, In, InOut, Out, decode, dims
from hal_conformance.kernels import DType
from hal_conformance.known_answers.fill import SIZES

# (rows, bytes of the parts' rows, bytes before and behind them in a row of the output)
JOINED: tuple[tuple[int, tuple[int, ...], int, int], ...] = (
    (1, (5,), 0, 0),
    (0, (3, 4), 0, 0),
    (3, (4, 4), 0, 0),
    (3, (4, 4), 8, 3),
    (3, (48, 16), 16, 32),
    (5, (0, 7, 0, 1, 0), 0, 0),
    (2, (0, 0), 0, 4),
    (2, tuple(range(1, 65)), 5, 0),
    (1, (70_001, 300_001), 0, 0),
    (301, (1000, 1, 3), 2, 2),
)
# (matrices, rows, columns)
TRIANGLES = ((1, 1), (1, 9), (4, 7), (7, 4), (0, 3), (3, 0), (2, 3, 4, 5), (67, 65), (2, 3, 5000))
REPEATED = ((), (0,), (1,), (3,), (0, 2, 0, 1, 0), (1,) * 300, (5, 0, 7) * 3000, (100_000, 1))
REFUSED = "repeat_interleave: repeats can not be negative, and their sum is the output's size"


def joined(rows: int, widths: Sequence[int], before: int, behind: int) -> Case:
    random = np.random.default_rng(3)
    parts = [random.integers(0, 256, (rows, width)).astype(np.uint8) for width in widths]
    offsets = before + np.cumsum([0, *widths])
    out = np.full((rows, int(offsets[-1]) + behind), 0x77, np.uint8)
    after = out.copy()
    after[:, before : offsets[-1]] = np.concatenate(parts, 1)
    args = {
        "out": InOut(out, after, DType.UINT8),
        "rows": rows,
        "out_row_bytes": out.shape[1],
        "count": len(parts),
        "parts": [
            {"data": In(part, DType.UINT8), "offset": int(offset), "row_bytes": part.shape[1]}
            for part, offset in zip(parts, offsets, strict=False)
        ],
    }
    ends = widths if len(widths) < 9 else (widths[0], "...", widths[-1])
    return Case("cat", f"{rows} rows of {ends} at {before}", args)


def repeated(label: str, dtype: DType, repeats: Sequence[int], fails: str | None = None) -> Case:
    counts = np.array(repeats, np.int64)
    expected = np.repeat(np.arange(len(counts)), np.maximum(counts, 0))
    args = {
        "n": len(counts),
        "out_size": len(expected),
        "dtype": dtype,
        "repeats": In(counts, dtype),
        "ends": In(np.cumsum(counts), DType.INT64),
        "out": Out(expected, dtype),
    }
    name = f"{dtype.name.lower()} {label}"
    return Case("repeat_interleave", name, args, (dtype,), fails)


def _repeats() -> Iterator[Case]:
    for dtype in (DType.INT32, DType.INT64):
        for repeats in REPEATED:
            label = f"{len(repeats)}: {repeats[:3]}"
            yield repeated(label, dtype, repeats)
        yield repeated("negative", dtype, (2, -1, 1), REFUSED)
        yield repeated("negative at first", dtype, (-3, 4), REFUSED)
        short = repeated("of a sum that is too large", dtype, (2, 3), REFUSED)
        args = {**short.args, "out_size": 4, "out": Out(np.zeros(4), dtype)}
        yield Case(short.kernel, short.name, args, short.types, REFUSED)


def _triangles() -> Iterator[Case]:
    for size, (dtype, _) in SIZES.items():
        for shape in TRIANGLES:
            raw = np.random.default_rng(4).integers(1, 60, (*shape, size)).astype(np.uint8)
            values = decode(raw.view(STORAGE[dtype])[..., 0], dtype)
            for upper in (0, 1):
                kept = np.triu if upper else np.tril
                for diagonal in (-100, -2, -1, 0, 1, 3, 100):
                    for layout in LAYOUTS if diagonal == 1 else LAYOUTS[:1]:
                        args = {
                            **dims(shape),
                            "element_size": size,
                            "diagonal": diagonal,
                            "upper": upper,
                            "out": Out(kept(values, diagonal), dtype, layout),
                            # Another one than the output's.
                            "in": In(values, dtype, LAYOUTS[3 - LAYOUTS.index(layout)]),
                        }
                        side = "upper" if upper else "lower"
                        name = f"{size} bytes {side} {shape} from {diagonal} {layout.__name__}"
                        yield Case("triangle", name, args)
            if values.size:
                one = values.reshape(-1)[0].reshape(1, 1)
                args = {
                    **dims(shape),
                    "element_size": size,
                    "diagonal": 0,
                    "upper": 1,
                    "out": Out(np.triu(np.broadcast_to(one, shape)), dtype),
                    "in": In(one, dtype),
                }
                yield Case("triangle", f"{size} bytes {shape} of one element", args)


def cases() -> Iterator[Case]:
    for rows, widths, before, behind in JOINED:
        yield joined(rows, widths, before, behind)
    yield from _repeats()
    yield from _triangles()
