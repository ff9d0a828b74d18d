# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of what is found by a mask, or by not being zero."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hal_conformance import contract
from hal_conformance.answers import (
    COMPLEXES,
    INTEGERS,
    LAYOUTS,
    STORAGE,
    Array,
    Case,
    In,
    InOut,
    Layout,
    Out,
    dense,
    dims,
    element,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.fill import SHAPES, SIZES
from hal_conformance.known_answers.reduction import few, inf, nan

CHUNK = contract.constants()["PUONE_OFFSETS_CHUNK"]
# Around chunks.
COUNTS = (0, 1, 63, 64, 65, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 3, 3 * CHUNK + 5, 20 * CHUNK)


def _mask(shape: tuple[int, ...]) -> Array:
    return np.asarray(few(shape, DType.BOOL), bool)


def _offsets(found: Array) -> Array:
    """How many there are before each chunk, and altogether."""
    found = np.asarray(found).reshape(-1)
    chunks = [int(np.sum(found[i : i + CHUNK])) for i in range(0, len(found), CHUNK)]
    return np.cumsum([0, *chunks])


def _elements(shape: tuple[int, ...], size: int, seed: int) -> Array:
    """Elements of `size` bytes that differ."""
    dtype, _ = SIZES[size]
    values = (np.arange(math.prod(shape)).reshape(shape) * 7 + seed) % 251
    return values.astype(STORAGE[dtype])


# ---- masked_fill ----


def _fill(
    size: int,
    shape: tuple[int, ...],
    label: str = "",
    mask_shape: tuple[int, ...] | None = None,
    value_shape: tuple[int, ...] | None = None,
    layouts: Sequence[Layout] = (dense, dense, dense),
    immediate: bool = False,
) -> Case:
    dtype, fixed = SIZES[size]
    mask = _mask(shape if mask_shape is None else mask_shape)
    before = _elements(shape, size, 1)
    value = _elements(shape if value_shape is None else value_shape, size, 100)
    expected = np.where(mask, fixed if immediate else value, before)
    args: dict[str, Any] = {
        **dims(shape),
        "element_size": size,
        "immediate": int(immediate),
        "out": InOut(before, expected, dtype, layouts[0]),
        "mask": In(mask, DType.BOOL, layouts[1]),
    }
    if immediate:
        args["immediate_value"] = element(fixed, dtype)
    else:
        args["value"] = In(value, dtype, layouts[2])
    name = f"{size} bytes {shape} immediate {immediate} {label}".strip()
    return Case("masked_fill", name, args)


def _fills() -> Iterator[Case]:
    for size in SIZES:
        for immediate in (False, True):
            for shape in SHAPES:
                yield _fill(size, shape, immediate=immediate)
            for layout in LAYOUTS[1:]:
                for i, operand in enumerate(("out", "mask", "value")):
                    layouts: list[Layout] = [dense] * 3
                    layouts[i] = layout
                    label = f"{operand} {layout.__name__}"
                    yield _fill(size, (5, 7), label, layouts=layouts, immediate=immediate)
            for given in ((1, 70), (9, 1), (1, 1)):
                label = f"mask {given}"
                yield _fill(size, (9, 70), label, mask_shape=given, immediate=immediate)
        for given in ((1, 70), (9, 1), (1, 1)):
            yield _fill(size, (9, 70), f"value {given}", value_shape=given)
            yield _fill(size, (9, 70), f"both {given}", given, given)
        for n in COUNTS:
            yield _fill(size, (n,), "one value", value_shape=(1,))


# ---- masked_pack and masked_unpack ----


def _packing(size: int, mask: Array, spare: int = 0, label: str = "") -> Iterator[Case]:
    """Both kernels; `spare` elements of the packed array have no place in the other."""
    dtype, _ = SIZES[size]
    found = np.flatnonzero(mask)
    spread, packed = _elements(mask.shape, size, 1), _elements((len(found) + spare,), size, 100)
    # Those that fit.
    found = found[: len(packed)]
    taken, put = packed.copy(), spread.copy()
    taken[: len(found)], put[found] = spread[found], packed[: len(found)]
    args = {
        "n": len(mask),
        "packed_size": len(packed),
        "element_size": size,
        "mask": In(mask, DType.BOOL),
        "offsets": In(_offsets(mask), DType.INT64),
    }
    name = f"{size} bytes {len(mask)} spare {spare} {label}".strip()
    fails = f"index {len(packed)} is out of bounds for dimension with size {len(packed)}"
    fails = f"the mask is true more often than there are elements to take: {fails}"
    pack = {"spread": In(spread, dtype), "packed": InOut(packed, taken, dtype)}
    unpack = {"spread": InOut(spread, put, dtype), "packed": In(packed, dtype)}
    for kernel, operands in (("masked_pack", pack), ("masked_unpack", unpack)):
        yield Case(kernel, name, {**args, **operands}, fails=fails if spare < 0 else None)


def _packings() -> Iterator[Case]:
    for size in SIZES:
        for n in COUNTS:
            yield from _packing(size, _mask((n,)))
        for value in (False, True):
            yield from _packing(size, np.full(CHUNK + 3, value), label=f"all {value}")
        yield from _packing(size, np.arange(CHUNK + 3) == CHUNK + 2, label="only the last")
        yield from _packing(size, _mask((100,)), spare=5)
        yield from _packing(size, np.full(3, True), spare=-1)
        yield from _packing(size, np.full(1, True), spare=-1)


# ---- nonzero and nonzero_offsets ----


def _nonzero(
    dtype: DType, values: Array, label: str = "", rows: int | None = None
) -> Iterator[Case]:
    """Both kernels; `rows` of the coordinates are wanted, or all."""
    values = np.asarray(values)
    found = values != 0
    coordinates = np.argwhere(found)[:rows]
    args = {"n": values.size, "dtype": dtype, "in": In(values, dtype)}
    places = {
        "out_rows": len(coordinates),
        "ndim": values.ndim,
        "sizes": values.shape,
        "offsets": In(_offsets(found), DType.INT64),
        "out": Out(coordinates, DType.INT64),
    }
    name = f"{dtype.name.lower()} {values.shape} rows {rows} {label}".strip()
    yield Case("nonzero", name, {**args, **places}, (dtype,))
    if rows is None:
        offsets = {"offsets": Out(_offsets(found), DType.INT64)}
        yield Case("nonzero_offsets", name, {**args, **offsets}, (dtype,))


# What is zero, and what is not, of the types that have it.
ZERO: list[Any] = [0, -0.0, complex(-0.0, -0.0)]
NOT_ZERO: list[Any] = [1, nan, inf, 1j, complex(0, nan), complex(-0.0, -inf)]


def _held(values: list[Any], dtype: DType) -> list[Any]:
    if dtype in COMPLEXES:
        return values
    reals = [x for x in values if not isinstance(x, complex)]
    return reals if dtype not in INTEGERS else [x for x in reals if math.isfinite(x)]


def _nonzeros() -> Iterator[Case]:
    for dtype in DType:
        for shape in ((), (1,), (5, 7), (3, 1, 4), (0,), (3, 0), (2,) * 10):
            yield from _nonzero(dtype, few(shape, dtype))
        yield from _nonzero(dtype, np.zeros((5, 7)), "all zero")
        special = [*_held(ZERO, dtype), *_held(NOT_ZERO, dtype)]
        yield from _nonzero(dtype, np.array(special), "special")
    for dtype in (DType.BOOL, DType.INT16, DType.FLOAT32, DType.COMPLEX128):
        for n in COUNTS[2:]:
            yield from _nonzero(dtype, few((n,), dtype))
        yield from _nonzero(dtype, few((3, 50, 70), dtype))
        yield from _nonzero(dtype, np.ones(CHUNK + 1), "none zero")
        yield from _nonzero(dtype, np.arange(CHUNK + 3) == CHUNK + 2, "only the last")
        for rows in (0, 1, 100, 1000):
            yield from _nonzero(dtype, few((3 * CHUNK + 5,), dtype), rows=rows)


def _asserts() -> Iterator[Case]:
    message = "the sum of probabilities is not positive"
    for dtype in DType:
        for values, fails in ((ZERO, message), (NOT_ZERO, None)):
            for value in _held(values, dtype):
                args = {
                    "in": In(np.array([value]), dtype),
                    "dtype": dtype,
                    "message": message,
                }
                name = f"{dtype.name.lower()} {value!r}"
                yield Case("assert_nonzero", name, args, (dtype,), fails=fails)


def cases() -> Iterator[Case]:
    yield from _fills()
    yield from _packings()
    yield from _nonzeros()
    yield from _asserts()
