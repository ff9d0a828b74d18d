# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "convolution" and "convolution_weight"."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    INTEGERS,
    REALS,
    STORAGE,
    Array,
    Case,
    In,
    Layout,
    Out,
    Placement,
    dense,
    transposed,
    types_of,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import narrow, numbers


@dataclass(frozen=True)
class Axis:
    """Tap t at position p meets source element p * step + offset + t * tap_step."""

    positions: int
    source: int
    taps: int
    step: int = 1
    offset: int = 0
    tap_step: int = 1

    def met(self) -> Array:
        """The source elements, [position, tap]; some lie outside of the source."""
        p, t = np.arange(self.positions)[:, None], np.arange(self.taps)
        return p * self.step + self.offset + t * self.tap_step


@dataclass(frozen=True)
class Shape:
    axes: tuple[Axis, ...]  # outermost first
    batch: int = 2
    groups: int = 1
    rows: int = 3
    channels: int = 2

    def all_axes(self) -> tuple[Axis, ...]:
        return (*(Axis(1, 1, 1) for _ in range(3 - len(self.axes))), *self.axes)

    def sizes(self, of: str) -> tuple[int, ...]:
        return tuple(getattr(axis, of) for axis in self.all_axes())

    def args(self, dtype: DType) -> dict[str, Any]:
        window = {
            "positions": self.sizes("positions"),
            "source": self.sizes("source"),
            "taps": self.sizes("taps"),
            "position_step": self.sizes("step"),
            "offset": self.sizes("offset"),
            "tap_step": self.sizes("tap_step"),
        }
        return {
            "dtype": dtype,
            "batch": self.batch,
            "groups": self.groups,
            "rows": self.rows,
            "channels": self.channels,
            "window": window,
        }


# Enough products that a library is worth the copies.
MANY = Shape((Axis(16, 16, 3, 1, -1), Axis(16, 16, 3, 1, -1)), 1, 1, 256, 29)
PLAIN = (Axis(7, 9, 3),)
PADDED = (Axis(5, 5, 3, 1, -1),)
FLAT = (Axis(6, 6, 3, 1, -1), Axis(4, 7, 2, 2, -1))
SHAPES: dict[str, Shape] = {
    "1d": Shape(PLAIN),
    "1d padded": Shape(PADDED),
    "1d strided": Shape((Axis(5, 11, 3, 2),)),
    "1d padded by more than a tap": Shape((Axis(9, 3, 2, 1, -4),)),
    "1d padded and strided": Shape((Axis(6, 9, 2, 3, -5),)),
    "1d dilated": Shape((Axis(5, 11, 3, 1, 0, 3),)),
    "1d backwards": Shape((Axis(9, 7, 3, 1, 0, -1),)),
    "1d backwards in steps": Shape((Axis(8, 7, 3, 1, 2, -2),)),
    "1d without taps": Shape((Axis(4, 5, 0),)),
    "1d without positions": Shape((Axis(0, 5, 2),)),
    "1d without source": Shape((Axis(4, 0, 3, 1, -2),)),
    "no batch": Shape(PLAIN, batch=0),
    "1d long": Shape((Axis(1500, 1501, 4, 1, -1),), rows=5, channels=3),
    "2d": Shape(FLAT),
    "2d in groups": Shape(FLAT, groups=3, rows=2, channels=4),
    "2d depthwise": Shape(FLAT, groups=5, rows=1, channels=1),
    "2d depthwise, most rows": Shape(FLAT, groups=3, rows=4, channels=1),
    "2d depthwise, too many rows": Shape(FLAT, groups=3, rows=5, channels=1),
    "2d depthwise, dilated": Shape(
        (Axis(5, 9, 3, 1, 0, 2), Axis(40, 41, 3, 1, -2, 2)), groups=2, rows=2, channels=1
    ),
    "2d pointwise": Shape((Axis(6, 6, 1), Axis(5, 5, 1)), channels=7),
    "2d pointwise, strided": Shape((Axis(3, 6, 1, 2), Axis(5, 5, 1)), channels=7),
    "2d deep": Shape((Axis(9, 9, 3, 1, -1), Axis(11, 11, 3, 1, -1)), 1, 1, 70, 45),
    "2d deep, few positions": Shape((Axis(3, 3, 3, 1, -1), Axis(4, 4, 3, 1, -1)), 1, 1, 3, 125),
    "2d wide": Shape((Axis(30, 61, 3, 2, -1), Axis(33, 33, 3, 1, -1)), 1, 2, 9, 5),
    "3d": Shape((Axis(3, 4, 2), Axis(4, 4, 3, 1, -1), Axis(3, 7, 3, 2)), groups=2),
}


def _exact(dtype: DType) -> type[Any]:
    """int64 wraps, and narrower integers afterwards."""
    return (
        np.int64
        if dtype in INTEGERS
        else np.float64
        if dtype is not DType.FLOAT64
        else np.longdouble
    )


def _windows(shape: Shape, source: Array) -> Array:
    """What the taps meet: [batch, group, channel, position, tap], both of three dimensions."""
    windows = source
    for d, axis in enumerate(shape.all_axes()):
        met = axis.met()
        inside = (met >= 0) & (met < axis.source)
        # One zero behind the source is used for every position outside.
        behind = np.zeros_like(np.take(windows, [], 3 + 2 * d))
        padded = np.concatenate(
            [
                windows,
                np.zeros(
                    (*behind.shape[: 3 + 2 * d], 1, *behind.shape[4 + 2 * d :]), windows.dtype
                ),
            ],
            3 + 2 * d,
        )
        windows = np.take(padded, np.where(inside, met, axis.source), 3 + 2 * d)
    # positions and taps alternate
    return windows.transpose(0, 1, 2, 3, 5, 7, 4, 6, 8)


def _off(dtype: DType, terms: Array) -> dict[str, Any]:
    if dtype in INTEGERS:
        return {}
    largest = float(np.max(terms, initial=0))
    absolute = 4 * EPSILON[COMPUTE[dtype]] * largest
    return {"ulps": 4 if COMPUTE[dtype] is dtype else 1, "absolute": absolute}


def _sums(equation: str, left: Array, right: Array, dtype: DType) -> Array:
    wide = _exact(dtype)
    return np.einsum(equation, left.astype(wide), right.astype(wide), optimize=wide is np.float64)


def _operands(shape: Shape, dtype: DType) -> tuple[Array, Array, Array, Array]:
    """The source, what the taps meet of it, a weight and a gradient of the result."""
    b, g, r, c = shape.batch, shape.groups, shape.rows, shape.channels
    source = numbers((b, g, c, *shape.sizes("source")), dtype, 1)
    weight = numbers((g, r, c, *shape.sizes("taps")), dtype, 2)
    left = numbers((b, g, r, *shape.sizes("positions")), dtype, 3)
    return source, _windows(shape, source), weight, left


def convolved(
    label: str,
    dtype: DType,
    shape: Shape,
    bias: bool = True,
    weight_layout: Layout = dense,
    out_layout: Layout = dense,
) -> Case:
    source, met, weight, _ = _operands(shape, dtype)
    added = numbers((shape.groups, shape.rows), dtype, 4)
    equation = "grcijk,bgcxyzijk->bgrxyz"
    result = _sums(equation, weight, met, dtype)
    terms = _sums(equation, np.abs(weight), np.abs(met), dtype)
    if bias:
        shift = added.astype(result.dtype)[..., None, None, None]
        result, terms = result + shift, terms + np.abs(shift)
    size = STORAGE[dtype].itemsize
    steps = [step // size for step in weight_layout(weight.shape, size).strides]
    out_steps = [step // size for step in out_layout(result.shape, size).strides]
    args = shape.args(dtype) | {
        "weight_group_stride": steps[0],
        "weight_row_stride": steps[1],
        "weight_channel_stride": steps[2],
        "weight_tap_strides": steps[3:],
        "out_row_stride": out_steps[2],
        "out_position_strides": out_steps[3:],
        "out": Out(_narrow(result, dtype), dtype, out_layout, **_off(dtype, terms)),
        "source": In(source, dtype),
        "weight": In(weight, dtype, weight_layout),
        "bias": In(added, dtype) if bias else None,
    }
    return Case("convolution", f"{dtype.name.lower()} {label}", args, (dtype,))


def weight_gradient(label: str, dtype: DType, shape: Shape) -> Case:
    source, met, _, left = _operands(shape, dtype)
    equation = "bgrxyz,bgcxyzijk->grcijk"
    result = _sums(equation, left, met, dtype)
    terms = _sums(equation, np.abs(left), np.abs(met), dtype)
    args = shape.args(dtype) | {
        "out": Out(_narrow(result, dtype), dtype, **_off(dtype, terms)),
        "left": In(left, dtype),
        "source": In(source, dtype),
    }
    return Case("convolution_weight", f"{dtype.name.lower()} {label}", args, (dtype,))


def _narrow(values: Array, dtype: DType) -> Array:
    return values if dtype in INTEGERS else narrow(values, dtype)


def every_second(shape: tuple[int, ...], size: int) -> Placement:
    """Images follow each other; of the positions along x and y every second one is used, as by a
    transposed convolution with a stride."""
    *images, z, y, x = shape
    row = z * 2 * y * 2 * x
    outer = [size * row * math.prod(images[d + 1 :]) for d in range(len(images))]
    steps = (*outer, size * 4 * y * x, size * 4 * x, size * 2)
    return Placement(size * row * math.prod(images), 0, steps)


def _not_finite(dtype: DType) -> Iterator[Case]:
    """An infinity in the source reaches what it meets, and padding is never multiplied with it."""
    shape = Shape((Axis(5, 5, 3, 1, -1),), 1, 1, 1, 1)
    for channels in (1, 2):  # with and without a matrix product
        of = replace(shape, channels=channels)
        case = convolved(f"not finite {channels}", dtype, of, bias=False)
        source = np.zeros((1, 1, channels, 1, 1, 5))
        source[0, 0, 0, 0, 0] = [1, 2, 3, 4, np.inf]
        weight = np.ones((1, 1, channels, 1, 1, 3))
        args = case.args | {
            "source": In(source, dtype),
            "weight": In(weight, dtype),
            "out": Out(np.array([3, 6, 9, np.inf, np.inf]).reshape(1, 1, 1, 1, 1, 5), dtype),
        }
        yield replace(case, args=args)


def cases() -> Iterator[Case]:
    for dtype in types_of("convolution"):
        for label, shape in SHAPES.items():
            yield convolved(label, dtype, shape)
            yield weight_gradient(label, dtype, shape)
        for label in ("1d", "2d", "2d depthwise", "3d"):
            shape = SHAPES[label]
            yield convolved(f"{label} without bias", dtype, shape, bias=False)
            yield convolved(f"{label}, weight transposed", dtype, shape, weight_layout=transposed)
            yield convolved(f"{label}, out spread", dtype, shape, out_layout=every_second)
        if dtype in REALS:
            yield from _not_finite(dtype)
    for dtype in (DType.FLOAT16, DType.BFLOAT16):
        yield convolved("many products", dtype, MANY)
        yield weight_gradient("many products", dtype, MANY)
    args = Shape(PLAIN, batch=0).args(DType.COMPLEX64)
    for kernel in ("convolution", "convolution_weight"):
        yield Case(kernel, "complex64 is refused", args, fails="convolution has no such dtype")
