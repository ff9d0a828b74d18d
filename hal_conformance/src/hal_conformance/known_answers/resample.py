# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "resample" and "resample_backward": every mode is a matrix for each axis, and
the gradient is the same with the matrices transposed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPLEXES,
    COMPUTE,
    EPSILON,
    REALS,
    Array,
    Case,
    In,
    Out,
    rounded,
    types_of,
)
from hal_conformance.contract import constants
from hal_conformance.kernels import DType

UPSAMPLING = ("NEAREST", "NEAREST_EXACT", "LINEAR", "LINEAR_CORNERS", "CUBIC", "CUBIC_CORNERS")
PADDING = ("REFLECT", "REPLICATE")


@dataclass(frozen=True)
class Axis:
    source: int
    result: int
    before: int = 0
    scale: float = 0  # 0: that of the sizes

    def factor(self, mode: str) -> float:
        if self.scale:
            return self.scale
        if "CORNERS" in mode:
            return (self.source - 1) / (self.result - 1) if self.result > 1 else 0.0
        return self.source / self.result if self.result else 0.0


# Axes outermost first; of size 1 where there are fewer than three.
ONE = Axis(1, 1)
RESIZED: dict[str, tuple[Axis, ...]] = {
    "1d": (Axis(5, 11),),
    "1d to less": (Axis(11, 4),),
    "1d by 2": (Axis(4, 8),),
    "1d of one": (Axis(1, 7),),
    "1d to one": (Axis(7, 1),),
    "1d of equal size": (Axis(6, 6),),
    "1d by a scale of its own": (Axis(7, 9, 0, 0.75),),
    "1d long": (Axis(300, 701),),
    "2d": (Axis(5, 8), Axis(6, 4)),
    "2d to nothing": (Axis(5, 0), Axis(6, 4)),
    "2d large": (Axis(33, 70), Axis(40, 130)),
    "3d": (Axis(3, 4), Axis(4, 7), Axis(5, 3)),
}
# The result is source + before + behind.
PADDED: dict[str, tuple[Axis, ...]] = {
    "1d": (Axis(5, 11, 2),),
    "1d by most": (Axis(5, 13, 4),),
    "1d cropped": (Axis(9, 5, -2),),
    "1d cropped before": (Axis(9, 9, -3),),
    "1d cropped behind": (Axis(9, 8, 3),),
    "1d as it is": (Axis(300, 300),),
    "2d": (Axis(4, 8, 1), Axis(5, 6, 0)),
    "2d large": (Axis(60, 70, 5), Axis(70, 75, 2)),
    "3d": (Axis(3, 6, 1), Axis(3, 5, 2), Axis(4, 5, 1)),
}
FAR = {"1d far": (Axis(2, 12, 5),), "1d of one": (Axis(1, 6, 2),)}  # REPLICATE only


def _nearest(axis: Axis, mode: str) -> Iterator[tuple[int, int, float]]:
    """Positions are float32 for every element type, as torch's."""
    shift = np.float32(0.5 if mode == "NEAREST_EXACT" else 0)
    scale = np.float32(axis.factor(mode))
    for at in range(axis.result):
        i = math.floor((np.float32(at) + shift) * scale)
        yield at, min(i, axis.source - 1), 1


def _place(axis: Axis, mode: str, at: int) -> float:
    scale = axis.factor(mode)
    return scale * at if "CORNERS" in mode else scale * (at + 0.5) - 0.5


def _linear(axis: Axis, mode: str) -> Iterator[tuple[int, int, float]]:
    for at in range(axis.result):
        if axis.source == axis.result:
            yield at, at, 1
            continue
        place = min(max(_place(axis, mode, at), 0), axis.source - 1)
        first = math.floor(place)
        yield at, first, 1 - (place - first)
        yield at, min(first + 1, axis.source - 1), place - first


def _keys(x: float) -> float:
    """Keys' kernel of cubic convolution with a = -3/4, 0 beyond 2."""
    a, x = -0.75, abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a


def _cubic(axis: Axis, mode: str) -> Iterator[tuple[int, int, float]]:
    for at in range(axis.result):
        if axis.source == axis.result:
            yield at, at, 1
            continue
        place = _place(axis, mode, at)
        for i in range(math.floor(place) - 1, math.floor(place) + 3):
            yield at, min(max(i, 0), axis.source - 1), _keys(place - i)


def _reflect(axis: Axis, mode: str) -> Iterator[tuple[int, int, float]]:
    mirrored = [*range(axis.source), *range(axis.source - 2, 0, -1)]
    for at in range(axis.result):
        yield at, mirrored[(at - axis.before) % len(mirrored)], 1


def _replicate(axis: Axis, mode: str) -> Iterator[tuple[int, int, float]]:
    for at in range(axis.result):
        yield at, min(max(at - axis.before, 0), axis.source - 1), 1


METHODS = {
    "NEAREST": _nearest,
    "NEAREST_EXACT": _nearest,
    "LINEAR": _linear,
    "LINEAR_CORNERS": _linear,
    "CUBIC": _cubic,
    "CUBIC_CORNERS": _cubic,
    "REFLECT": _reflect,
    "REPLICATE": _replicate,
}


def matrix(axis: Axis, mode: str) -> Array:
    """The weights of source elements (columns) in result elements (rows)."""
    weights = np.zeros((axis.result, axis.source))
    for at, i, weight in METHODS[mode](axis, mode):
        weights[at, i] += weight
    return weights


def _applied(values: Array, matrices: list[Array]) -> Array:
    for d, weights in enumerate(matrices):
        values = np.moveaxis(np.tensordot(weights, values, (1, d + 1)), 0, d + 1)
    return values


def _numbers(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    random = np.random.default_rng(seed)
    if dtype is DType.UINT8:
        return random.integers(0, 256, shape)
    values = random.integers(-99, 100, shape) / 4
    return values + 1j * random.integers(-99, 100, shape) if dtype in COMPLEXES else values


def _args(dtype: DType, mode: str, axes: tuple[Axis, ...], planes: int) -> dict[str, Any]:
    rows = [
        {
            "source": axis.source,
            "result": axis.result,
            "before": axis.before,
            "scale": axis.factor(mode) if mode in UPSAMPLING else 0,
        }
        for axis in (ONE, ONE, *axes)[-3:]
    ]
    return {
        "dtype": dtype,
        "mode": constants()[f"PUONE_RESAMPLE_{mode}"],
        "planes": planes,
        "axes": rows,
    }


def resampled(
    label: str, dtype: DType, mode: str, axes: tuple[Axis, ...], planes: int = 2
) -> Iterator[Case]:
    source = _numbers((planes, *(axis.source for axis in axes)), dtype, 1)
    gradient = _numbers((planes, *(axis.result for axis in axes)), dtype, 2)
    matrices = [matrix(axis, mode) for axis in axes]
    result = _applied(source, matrices)
    spread = _applied(gradient, [weights.T for weights in matrices])
    # Weights that are not 1 have the error of the positions that they come from.
    exact = dtype is DType.UINT8 or mode not in ("LINEAR", "LINEAR_CORNERS", *UPSAMPLING[4:])
    ulps = 0.0 if exact else 2.0
    largest = max((axis.source for axis in axes), default=1)
    most = float(np.max(np.abs(spread), initial=1))
    off = 0.0 if exact else 8 * EPSILON[COMPUTE[dtype]] * (largest + 8) * (most + 64)
    name = f"{dtype.name.lower()} {mode.lower()} {label}"
    if exact and dtype is DType.UINT8:
        result, spread = result.astype(np.int64), spread.astype(np.int64)
    common = _args(dtype, mode, axes, planes)
    forward = {"source": In(source, dtype), "result": Out(result, dtype, ulps=ulps, absolute=off)}
    backward = {
        "source": Out(spread, dtype, ulps=ulps, absolute=off),
        "result": In(gradient, dtype),
    }
    yield Case("resample", name, common | forward, (dtype,))
    yield Case("resample_backward", name, common | backward, (dtype,))


def _modes(dtype: DType) -> tuple[str, ...]:
    if dtype is DType.UINT8:
        return UPSAMPLING[:2]
    return PADDING if dtype in COMPLEXES else (*UPSAMPLING, *PADDING)


def _not_finite(dtype: DType) -> Iterator[Case]:
    """What is not finite stays in its place, where weights are 1."""
    source = rounded([[np.nan, np.inf, -np.inf, -0.0, 1]], dtype)
    for mode, axis in (
        ("NEAREST", Axis(5, 10)),
        ("REPLICATE", Axis(5, 9, 2)),
        ("REFLECT", Axis(5, 9, 2)),
    ):
        places = [i for _, i, _ in METHODS[mode](axis, mode)]
        args = _args(dtype, mode, (axis,), 1)
        args |= {"source": In(source, dtype), "result": Out(source[:, places], dtype)}
        yield Case("resample", f"{dtype.name.lower()} {mode.lower()} not finite", args, (dtype,))


def _refused() -> Iterator[Case]:
    for dtype, modes, fails in (
        (DType.UINT8, (*UPSAMPLING[2:], *PADDING), "no such mode of resampling for this dtype"),
        (DType.COMPLEX64, UPSAMPLING, "no such mode of resampling for this dtype"),
        (DType.INT32, UPSAMPLING[:1], "no resampling of this dtype"),
    ):
        for mode in modes:
            for kernel in ("resample", "resample_backward"):
                args = _args(dtype, mode, (Axis(4, 4),), 0)
                name = f"{dtype.name.lower()} {mode.lower()} is refused"
                yield Case(kernel, name, args, fails=fails)


def cases() -> Iterator[Case]:
    for dtype in types_of("resample"):
        for mode in _modes(dtype):
            sizes = RESIZED if mode in UPSAMPLING else PADDED
            for label, axes in (sizes | FAR if mode == "REPLICATE" else sizes).items():
                yield from resampled(label, dtype, mode, axes)
            yield from resampled("of no plane", dtype, mode, sizes["2d"], 0)
        if dtype in REALS:
            yield from _not_finite(dtype)
    yield from _refused()
