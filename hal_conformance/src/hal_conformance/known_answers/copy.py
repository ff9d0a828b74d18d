# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "copy", which casts, and "copy_bits", which does not."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import (
    COMPLEXES,
    INTEGERS,
    LAYOUTS,
    REALS,
    STORAGE,
    Array,
    Case,
    In,
    Out,
    decode,
    dense,
    dims,
    encode,
    padded,
    rounded,
    transposed,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.fill import SHAPES, SIZES


def cases() -> Iterator[Case]:
    for source in DType:
        for target in DType:
            yield _cast("", source, target, _values(source, target))
    for dtype in (*REALS, *COMPLEXES):
        yield _cast("not finite", dtype, dtype, _extremes(dtype))
        yield _cast("not finite to bool", dtype, DType.BOOL, _extremes(dtype))
    yield _cast("overflow", DType.FLOAT64, DType.FLOAT32, rounded([1e300, -1e300], DType.FLOAT64))
    for narrow in (DType.FLOAT16, DType.BFLOAT16):
        yield _cast("ties to even", DType.FLOAT32, narrow, _ties(narrow))
    yield from _conjugated_and_negated()
    yield from _shapes()
    yield from _bits()
    yield from _transposed()


def _values(source: DType, target: DType) -> Array:
    """Numbers of `source` whose cast to `target` is defined."""
    numbers: list[complex] = [0, 1, 2, 3, 100, 127]
    signed = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)
    if source not in INTEGERS:
        numbers += [0.5, 1.5, 99.75]
    wraps = source in INTEGERS  # an integer that does not fit wraps, a float's cast is undefined
    holds = target in (*signed, *REALS, *COMPLEXES) or wraps
    if source in (*signed, *REALS, *COMPLEXES) and holds:
        numbers += [-1, -100]
    if source is DType.UINT8 or (wraps and STORAGE[source].itemsize > 1):
        numbers += [200, 255]
    if source in COMPLEXES:
        numbers += [2 + 3j, 1j]
    if source is DType.BOOL:
        numbers = [0, 1, 1, 0]
    return rounded(np.array(numbers if source in COMPLEXES else np.real(numbers)), source)


def _extremes(dtype: DType) -> Array:
    nan, inf = math.nan, math.inf
    if dtype in COMPLEXES:
        return np.array([complex(nan, 1), complex(inf, 0), complex(0, -inf), complex(0, -0.0)])
    return np.array([nan, inf, -inf, -0.0])


def _ties(dtype: DType) -> Array:
    """Numbers half way between two of `dtype`, and just beside."""
    step = 2.0**-10 if dtype is DType.FLOAT16 else 2.0**-7
    return np.array([1 + step / 2, 1 + 3 * step / 2, 1 + step / 2 + 2.0**-20, -1 - step / 2])


def _converted(values: Array, target: DType) -> Array:
    if target is DType.BOOL:
        return values != 0
    if target in COMPLEXES:
        return values
    real = np.real(values)
    if target in REALS:
        return real
    with np.errstate(all="ignore"):
        return np.trunc(real).astype(np.int64) if real.dtype.kind == "f" else real


def _cast(label: str, source: DType, target: DType, values: Array) -> Case:
    args = {
        **dims(values.shape),
        "in_dtype": source,
        "out_dtype": target,
        "in": In(values, source),
        # Numbers that are rounded twice, by way of float, are not in these cases.
        "out": Out(_converted(values, target), target),
    }
    name = f"{source.name.lower()} to {target.name.lower()} {label}".strip()
    return Case("copy", name, args, (source, target))


def _conjugated_and_negated() -> Iterator[Case]:
    for dtype in (*COMPLEXES, *REALS, DType.INT8, DType.INT64):
        values = (
            rounded(np.array([1 + 2j, -3 + 4j, 5 - 6j]), dtype)
            if dtype in COMPLEXES
            else (rounded([1, -2, 0], dtype))
        )
        for conj in (0, 1):
            for neg in (0, 1):
                expected = np.conj(values) if conj else values
                args = {
                    **dims(values.shape),
                    "in_dtype": dtype,
                    "out_dtype": dtype,
                    "conj": conj,
                    "neg": neg,
                    "in": In(values, dtype),
                    "out": Out(-expected if neg else expected, dtype),
                }
                name = f"{dtype.name.lower()} conj {conj} neg {neg}"
                yield Case("copy", name, args, (dtype,))


def _shapes() -> Iterator[Case]:
    for shape in SHAPES:
        values = np.arange(math.prod(shape)).reshape(shape) % 100
        for read in LAYOUTS if len(shape) == 2 else LAYOUTS[:1]:
            for written in LAYOUTS if len(shape) == 2 else LAYOUTS[:1]:
                args = {
                    **dims(shape),
                    "in_dtype": DType.INT32,
                    "out_dtype": DType.FLOAT32,
                    "in": In(values, DType.INT32, read),
                    "out": Out(values, DType.FLOAT32, written),
                }
                name = f"{shape} {read.__name__} to {written.__name__}"
                yield Case("copy", name, args, (DType.INT32, DType.FLOAT32))


#: Transposed, they are more than a square of elements that a block may take, less, and a stack.
TRANSPOSED = [(40, 70), (33, 16), (20, 15), (17, 3, 65), (2, 16, 3, 31)]


def _transposed() -> Iterator[Case]:
    for size, (dtype, _) in SIZES.items():
        for shape in TRANSPOSED:
            raw = (np.arange(math.prod(shape) * size) * 11 + 1).astype(np.uint8) & 0x3F
            values = decode(raw.view(STORAGE[dtype]).reshape(shape), dtype)
            for read, written in ((transposed, dense), (dense, transposed), (transposed, padded)):
                args = {
                    **dims(shape),
                    "element_size": size,
                    "in": In(values, dtype, read),
                    "out": Out(values, dtype, written),
                }
                name = f"{size} bytes {shape} {read.__name__} to {written.__name__}"
                yield Case("copy_bits", name, args)


def _bits() -> Iterator[Case]:
    for size, (dtype, _) in SIZES.items():
        for shape in SHAPES:
            raw = (np.arange(math.prod(shape) * size) * 7 + 1).astype(np.uint8) & 0x3F
            values = decode(raw.view(STORAGE[dtype]).reshape(shape), dtype)
            for layout in LAYOUTS if len(shape) == 2 else LAYOUTS[:1]:
                args = {
                    **dims(shape),
                    "element_size": size,
                    "in": In(values, dtype, layout),
                    "out": Out(values, dtype),
                }
                yield Case("copy_bits", f"{size} bytes {shape} {layout.__name__}", args)
        row = encode(np.arange(4), dtype)
        args = {
            **dims((3, 4)),
            "element_size": size,
            "in": In(decode(row, dtype)[None], dtype),
            "out": Out(np.broadcast_to(decode(row, dtype), (3, 4)), dtype),
        }
        yield Case("copy_bits", f"{size} bytes broadcast", args)
