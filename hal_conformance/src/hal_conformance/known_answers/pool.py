# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of the pooling kernels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    INTEGERS,
    Array,
    Case,
    In,
    Out,
    rounded,
    types_of,
)
from hal_conformance.kernels import DType


@dataclass(frozen=True)
class Axis:
    source: int
    result: int
    kernel: int = 0  # 0: adaptive
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    def window(self, at: int) -> tuple[list[int], int]:
        """The elements that the result is made of, and how many they and their padding are."""
        if self.kernel == 0:
            begin, end = at * self.source // self.result, -(-(at + 1) * self.source // self.result)
            return list(range(begin, end)), end - begin
        first = at * self.stride - self.padding
        taps = range(first, first + self.kernel * self.dilation, self.dilation)
        padded = [i for i in taps if i < self.source + self.padding]
        return [i for i in padded if 0 <= i < self.source], len(padded)


ONE = Axis(1, 1, 1)
# By a name: the axes, outermost first.
WINDOWS: dict[str, tuple[Axis, ...]] = {
    "1d": (Axis(9, 4, 3, 2),),
    "1d of one": (Axis(5, 5, 1),),
    "1d padded": (Axis(9, 5, 3, 2, 1),),
    "1d overlapping": (Axis(300, 297, 4),),
    "1d with a last window that is cut off": (Axis(5, 3, 2, 2),),
    "1d with cut off padding": (Axis(6, 4, 4, 2, 2),),
    "2d": (Axis(6, 3, 2, 2), Axis(8, 3, 3, 2)),
    "2d padded": (Axis(5, 5, 3, 1, 1), Axis(7, 4, 3, 2, 1)),
    "2d large": (Axis(40, 20, 2, 2), Axis(70, 35, 3, 2, 1)),
    "3d": (Axis(4, 2, 2, 2), Axis(5, 3, 3, 1), Axis(6, 3, 2, 2)),
    "empty result": (Axis(4, 0, 2), Axis(3, 2, 2)),
    "adaptive": (Axis(7, 3), Axis(10, 4)),
    "adaptive to more": (Axis(3, 7), Axis(2, 5)),
    "adaptive to one": (Axis(5, 1), Axis(300, 1)),
    "adaptive 3d": (Axis(3, 2), Axis(5, 5), Axis(4, 3)),
}
DILATED = {
    "dilated": (Axis(9, 5, 3, 1, 0, 2),),
    "dilated and padded": (Axis(9, 4, 3, 2, 1, 2), Axis(8, 4, 2, 2, 1, 3)),
}


def _volume(axes: tuple[Axis, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(axis.source for axis in axes), tuple(axis.result for axis in axes)


def _windows(axes: tuple[Axis, ...]) -> Iterator[tuple[tuple[int, ...], list[list[int]], int]]:
    """Each result place, the source elements along each axis, and how many with the padding."""
    for place in np.ndindex(_volume(axes)[1]):
        found = [axis.window(at) for axis, at in zip(axes, place, strict=True)]
        yield place, [inside for inside, _ in found], math.prod(count for _, count in found)


def _args(dtype: DType, axes: tuple[Axis, ...], **more: Any) -> dict[str, Any]:
    spread = (ONE, ONE, *axes)[-3:]
    return {"dtype": dtype, "axes": [vars(axis) for axis in spread], **more}


def _numbers(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Numbers of which few are alike, and whose sums are exact."""
    return rounded(np.random.default_rng(seed).integers(-99, 100, shape), dtype)


def maxima(
    label: str, dtype: DType, axes: tuple[Axis, ...], source: Array, backward: bool = True
) -> Iterator[Case]:
    """NaN is the greatest; of equal elements the first is taken."""
    planes, (_, shape) = source.shape[0], _volume(axes)
    result = np.zeros((planes, *shape), source.dtype)
    indices = np.zeros((planes, *shape), np.int64)
    gradient, spread = _numbers(result.shape, dtype, 2), np.zeros(source.shape, source.dtype)
    for place, inside, _ in _windows(axes):
        places = list(itertools.product(*inside))
        for plane in range(planes):
            values = [source[plane][at] for at in places]
            best = next(
                (i for i, value in enumerate(values) if value != value),
                max(range(len(values)), key=values.__getitem__),
            )
            at, to = (plane, *places[best]), (plane, *place)
            result[to] = source[at]
            indices[to] = np.ravel_multi_index(places[best], source.shape[1:])
            spread[at] += gradient[to]
    args = _args(
        dtype,
        axes,
        planes=planes,
        source=In(source, dtype),
        result=Out(result, dtype),
        indices=Out(indices, DType.INT64),
    )
    yield Case("max_pool", f"{dtype.name.lower()} {label}", args, (dtype,))
    if backward:
        args = args | {
            "source": Out(spread, dtype),
            "result": In(gradient, dtype),
            "indices": In(indices, DType.INT64),
        }
        yield Case("max_pool_backward", f"{dtype.name.lower()} {label}", args, (dtype,))


def _quotient(value: Any, divisor: int, dtype: DType) -> Any:
    """Integers are cut off."""
    return int(value / divisor) if dtype in INTEGERS else np.longdouble(value) / divisor


def averages(
    label: str,
    dtype: DType,
    axes: tuple[Axis, ...],
    planes: int = 2,
    count_padding: int = 0,
    divisor: int = 0,
    source: Array | None = None,
) -> Iterator[Case]:
    sizes, shape = _volume(axes)
    if source is None:
        source = _numbers((planes, *sizes), dtype, 1)
    gradient = _numbers((planes, *shape), dtype, 2)
    wide = np.int64 if dtype in INTEGERS else np.longdouble
    result, spread = np.zeros((planes, *shape), wide), np.zeros((planes, *sizes), wide)
    for place, inside, padded in _windows(axes):
        count = math.prod(map(len, inside))
        by = divisor or (padded if count_padding else count)
        window = np.ix_(range(planes), *inside)
        totals = source[window].reshape(planes, count).sum(1)
        for plane in range(planes):
            to = (plane, *place)
            result[to] = _quotient(totals[plane], by, dtype) if count else 0
            if count:
                spread[np.ix_([plane], *inside)] += _quotient(gradient[to], by, dtype)
    ulps = 0.0 if dtype in INTEGERS else 2.0
    # Gradients are sums of rounded quotients, and may cancel.
    off = 0.0 if dtype in INTEGERS else EPSILON[COMPUTE[dtype]] * 99 * 16
    narrow = result.astype(np.int64 if dtype in INTEGERS else np.float64)
    args = _args(
        dtype,
        axes,
        planes=planes,
        count_padding=count_padding,
        divisor=divisor,
        source=In(source, dtype),
        result=Out(narrow, dtype, ulps=ulps),
    )
    name = f"{dtype.name.lower()} {label}"
    yield Case("avg_pool", name, args, (dtype,))
    if np.all(np.isfinite(source)):
        narrow = spread.astype(np.int64 if dtype in INTEGERS else np.float64)
        args = args | {
            "source": Out(narrow, dtype, ulps=ulps, absolute=off),
            "result": In(gradient, dtype),
        }
        yield Case("avg_pool_backward", name, args, (dtype,))


def _special(dtype: DType) -> Iterator[Case]:
    axes = (Axis(4, 2, 2, 2), Axis(6, 3, 2, 2))
    sizes = _volume(axes)[0]
    lowest = -(1 << 63) if dtype in INTEGERS else -math.inf
    nothing = np.full((1, *sizes), lowest)
    yield from maxima("all the lowest", dtype, axes, nothing)
    yield from maxima("all equal", dtype, axes, np.full((1, *sizes), 7))
    if dtype not in INTEGERS:
        values = _numbers((1, *sizes), dtype, 1)
        for where, value in (
            ((0, 0), np.nan),
            ((1, 3), np.nan),
            ((3, 4), np.inf),
            ((2, 0), -np.inf),
        ):
            values[0][where] = value
        yield from maxima("not finite", dtype, axes, values)
        yield from averages("not finite", dtype, axes, 1, source=values)


def cases() -> Iterator[Case]:
    for dtype in types_of("avg_pool"):
        for label, axes in WINDOWS.items():
            source = _numbers((2, *_volume(axes)[0]), dtype, 1)
            yield from averages(label, dtype, axes)
            yield from averages(f"{label}, padding counts", dtype, axes, count_padding=1)
            yield from averages(f"{label}, by 5", dtype, axes, divisor=5)
            yield from maxima(label, dtype, axes, source)
        for label, axes in DILATED.items():
            source = _numbers((3, *_volume(axes)[0]), dtype, 1)
            yield from maxima(label, dtype, axes, source)
        for label in ("1d", "2d"):
            axes = WINDOWS[label]
            none = np.zeros((0, *_volume(axes)[0]))
            yield from averages(f"{label} of no plane", dtype, axes, planes=0)
            yield from maxima(f"{label} of no plane", dtype, axes, none)
        yield from _special(dtype)
    for kernel in ("avg_pool", "avg_pool_backward", "max_pool", "max_pool_backward"):
        args = _args(DType.INT32, WINDOWS["1d"], planes=0)
        yield Case(kernel, "int32 is refused", args, fails="pooling has no such dtype")
