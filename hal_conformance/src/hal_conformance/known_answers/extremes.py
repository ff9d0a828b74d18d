# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of the largest and smallest elements and of their positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    LAYOUTS,
    REALS,
    Array,
    Case,
    In,
    Layout,
    Out,
    dense,
    rounded,
    types_of,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import numbers
from hal_conformance.known_answers.reduction import LARGE, SMALL, Place, few, inf, nan, reduce_case

# A row, its largest element with its position, its smallest.
SPECIAL: list[tuple[list[float], float, int, float, int]] = [
    ([3, 7, 7, 3], 7, 1, 3, 0),
    ([0, -0.0, 0], 0, 0, 0, 0),
    ([1, nan, 9, nan], nan, 1, nan, 1),
    ([nan, inf, -inf], nan, 0, nan, 0),
    ([-inf, -inf], -inf, 0, -inf, 0),
    ([inf, inf], inf, 0, inf, 0),
    ([1, inf, -inf, inf], inf, 1, -inf, 2),
    ([-5], -5, 0, -5, 0),
    *(([float(i == n - 1) for i in range(n)], 1, n - 1, 0, 0) for n in (63, 64, 65, 4099)),
    *(([1.0] * n, 1, 0, 1, 0) for n in (33, 1025, 70001)),
    ([1.0] * 2000 + [nan] + [2.0] * 2099, nan, 2000, nan, 2000),
]


def extremes(x: Array, over: tuple[int, ...], largest: bool) -> tuple[Array, Array]:
    """By a look at each element in order: values and positions, with the dimensions kept."""
    kept = [d for d in range(x.ndim) if d not in over]
    shape = tuple(1 if d in over else n for d, n in enumerate(x.shape))
    lines = np.transpose(x, (*kept, *over)).reshape(-1, int(np.prod([x.shape[d] for d in over])))
    # NumPy gives the first of equal ones, and NaN before all.
    positions = np.argmax(lines, axis=1) if largest else np.argmin(lines, axis=1)
    values = np.take_along_axis(lines, positions[:, None], axis=1)
    return values.reshape(shape), positions.reshape(shape)


def both(
    dtype: DType,
    place: Place,
    label: str = "",
    layouts: tuple[Layout, Layout] = (dense, dense),
    values: Array | None = None,
    broadcast: bool = False,
) -> Iterator[Case]:
    """The four kernels."""
    shape, over = place
    given = tuple(1 if d in over else n for d, n in enumerate(shape)) if broadcast else shape
    x = rounded(numbers(given, dtype, 6) if values is None else values, dtype)
    for largest in (True, False):
        value, position = extremes(np.broadcast_to(x, shape), over, largest)
        outs = [Out(value, dtype, layouts[1]), Out(position, DType.INT64, layouts[1])]
        names = ("amax", "largest") if largest else ("amin", "smallest")
        for name, wanted in zip(names, (outs[:1], outs), strict=True):
            said = f"{shape} over {over} {label}".strip()
            x_in = In(x, dtype, layouts[0])
            yield reduce_case(name, said, x_in, over, wanted, COMPUTE[dtype], shape=shape)


def cases() -> Iterator[Case]:
    for dtype in types_of("largest"):
        for place in SMALL:
            yield from both(dtype, place)
        ties = np.random.default_rng(7).integers(0, 3, (65, 70))
        for over in ((0,), (1,), (0, 1)):
            yield from both(dtype, (ties.shape, over), "ties", values=ties)
    for dtype in (DType.FLOAT32, DType.FLOAT16, DType.INT64):
        for place in LARGE:
            yield from both(dtype, place)
    for dtype in (DType.FLOAT32, DType.INT16):
        for layout in LAYOUTS[1:]:
            label = layout.__name__
            for over in ((0,), (1,), (0, 1)):
                yield from both(dtype, ((9, 70), over), f"in {label}", (layout, dense))
            for over in ((0,), (1,), (0, 2)):
                yield from both(dtype, ((3, 4, 5), over), f"out {label}", (dense, layout))
        for over in ((0,), (1,)):
            yield from both(dtype, ((5, 7), over), "broadcast", broadcast=True)
    for dtype in REALS:
        for over in ((0,), (1,), (0, 1)):
            x = np.where(few((40, 70), dtype), nan, numbers((40, 70), dtype, 6))
            yield from both(dtype, (x.shape, over), "some NaN", values=x)
        for i, (row, top, top_at, low, low_at) in enumerate(SPECIAL):
            for names, value, at in (
                (("amax", "largest"), top, top_at),
                (("amin", "smallest"), low, low_at),
            ):
                outs = [Out([value], dtype), Out([at], DType.INT64)]
                for name, wanted in zip(names, (outs[:1], outs), strict=True):
                    label = f"special {i}: {str(row)[:40]}"
                    x_in = In(rounded(row, dtype), dtype)
                    yield reduce_case(name, label, x_in, (0,), wanted, COMPUTE[dtype])
    for name in ("largest", "smallest"):
        value, position = extremes(numbers((5, 7), DType.INT32, 6), (1,), name == "largest")
        found = [Out(value, DType.INT32), Out(position, DType.INT64)]
        for kept in (0, 1):
            only = [out if i == kept else None for i, out in enumerate(found)]
            x_in = In(numbers((5, 7), DType.INT32, 6), DType.INT32)
            yield reduce_case(name, f"only output {kept}", x_in, (1,), only, DType.INT32)
