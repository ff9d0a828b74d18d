# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a known answer: a kernel, its arguments with arrays instead of pointers, and what
the arrays must contain afterwards. hal_conformance.known_answers says how to write one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hal_conformance import contract
from hal_conformance.kernels import DType

# Of any shape and element type.
Array = Any

# How an element lies in memory. NumPy has no bfloat16 (its bits stand for it) and no complex32.
STORAGE: dict[DType, np.dtype[Any]] = {
    DType.BOOL: np.dtype("?"),
    DType.UINT8: np.dtype("u1"),
    DType.INT8: np.dtype("i1"),
    DType.INT16: np.dtype("<i2"),
    DType.INT32: np.dtype("<i4"),
    DType.INT64: np.dtype("<i8"),
    DType.UINT16: np.dtype("<u2"),
    DType.UINT32: np.dtype("<u4"),
    DType.UINT64: np.dtype("<u8"),
    DType.FLOAT16: np.dtype("<f2"),
    DType.BFLOAT16: np.dtype("<u2"),
    DType.FLOAT32: np.dtype("<f4"),
    DType.FLOAT64: np.dtype("<f8"),
    DType.COMPLEX32: np.dtype([("real", "<f2"), ("imaginary", "<f2")]),
    DType.COMPLEX64: np.dtype("<c8"),
    DType.COMPLEX128: np.dtype("<c16"),
}
INTEGERS = (
    DType.BOOL,
    DType.UINT8,
    DType.INT8,
    DType.INT16,
    DType.INT32,
    DType.INT64,
    DType.UINT16,
    DType.UINT32,
    DType.UINT64,
)
REALS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)
COMPLEXES = (DType.COMPLEX32, DType.COMPLEX64, DType.COMPLEX128)
# The spacing of numbers just above 1, and the smallest positive number, of a type or its parts.
EPSILON = {
    DType.FLOAT16: 2.0**-10,
    DType.BFLOAT16: 2.0**-7,
    DType.FLOAT32: 2.0**-23,
    DType.FLOAT64: 2.0**-52,
    DType.COMPLEX32: 2.0**-10,
    DType.COMPLEX64: 2.0**-23,
    DType.COMPLEX128: 2.0**-52,
}
TINIEST = {
    DType.FLOAT16: 2.0**-24,
    DType.BFLOAT16: 2.0**-133,
    DType.FLOAT32: 2.0**-149,
    DType.FLOAT64: 5e-324,
    DType.COMPLEX32: 2.0**-24,
    DType.COMPLEX64: 2.0**-149,
    DType.COMPLEX128: 5e-324,
}
# What elementwise, random and foreach kernels compute in for operands of a type.
COMPUTE = {
    **dict.fromkeys(INTEGERS, DType.INT32),
    DType.INT64: DType.INT64,
    DType.UINT32: DType.INT64,
    DType.FLOAT16: DType.FLOAT32,
    DType.BFLOAT16: DType.FLOAT32,
    DType.FLOAT32: DType.FLOAT32,
    DType.FLOAT64: DType.FLOAT64,
    DType.COMPLEX32: DType.COMPLEX64,
    DType.COMPLEX64: DType.COMPLEX64,
    DType.COMPLEX128: DType.COMPLEX128,
}


def types_of(kernel: str) -> tuple[DType, ...]:
    """The element types of a kernel, as the contract says."""
    bits = contract.kernels()[kernel].element_types
    return tuple(dtype for dtype in DType if bits >> dtype & 1)


def encode(values: Any, dtype: DType) -> Array:
    """The values as elements of `dtype`, rounded to nearest even; integers wrap."""
    given = np.asarray(values)
    with np.errstate(all="ignore"):
        if dtype is DType.BFLOAT16:
            bits = np.asarray(given, np.float32).view(np.uint32).astype(np.uint64)
            rounded = (bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
            nan = np.isnan(np.asarray(given, np.float32))
            return np.where(nan, 0x7FC0, rounded).astype("<u2")
        if dtype is DType.COMPLEX32:
            result = np.empty(given.shape, STORAGE[dtype])
            result["real"], result["imaginary"] = given.real, given.imag
            return result
        return given.astype(STORAGE[dtype])


def decode(elements: Array, dtype: DType) -> Array:
    """The numbers that elements of `dtype` stand for: integers, float64 or complex128."""
    if dtype is DType.BFLOAT16:
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if dtype is DType.COMPLEX32:
        parts = elements["real"].astype(np.float64), elements["imaginary"].astype(np.float64)
        result = np.empty(elements.shape, np.complex128)
        result.real, result.imag = parts
        return result
    if dtype in COMPLEXES:
        return elements.astype(np.complex128)
    return elements.astype(np.float64) if dtype in REALS else elements


def rounded(values: Any, dtype: DType) -> Array:
    """The values as `dtype` can hold them: inputs from which the expected result is computed."""
    return decode(encode(values, dtype), dtype)


def element(value: Any, dtype: DType) -> bytes:
    """One element in the 16 bytes of an argument that is passed by value."""
    return bytes(encode(value, dtype).tobytes().ljust(16, b"\0"))


# ---- how an array lies in its block of memory ----


@dataclass(frozen=True)
class Placement:
    """`bytes` of memory; element 0 is at `offset`; strides are bytes, outermost dimension first."""

    bytes: int
    offset: int
    strides: tuple[int, ...]


Layout = Callable[[tuple[int, ...], int], Placement]


def dense(shape: tuple[int, ...], size: int) -> Placement:
    """Row-major without gaps, as "contiguous" means."""
    steps = [size * math.prod(shape[d + 1 :]) for d in range(len(shape))]
    return Placement(size * math.prod(shape), 0, tuple(steps))


def transposed(shape: tuple[int, ...], size: int) -> Placement:
    """Column-major without gaps."""
    steps = [size * math.prod(shape[:d]) for d in range(len(shape))]
    return Placement(size * math.prod(shape), 0, tuple(steps))


def gaps(shape: tuple[int, ...], size: int) -> Placement:
    """Row-major with an unused element behind each element."""
    within = dense(shape, size)
    return Placement(2 * within.bytes, 0, tuple(2 * step for step in within.strides))


def flipped(shape: tuple[int, ...], size: int) -> Placement:
    """Row-major, backwards: negative strides."""
    within = dense(shape, size)
    return Placement(
        within.bytes, max(0, within.bytes - size), tuple(-step for step in within.strides)
    )


def padded(shape: tuple[int, ...], size: int) -> Placement:
    """Row-major, each row beginning at a multiple of 16 bytes."""
    row = -(-shape[-1] * size // 16) * 16
    lines = dense(shape[:-1], row)
    return Placement(lines.bytes, 0, (*lines.strides, size))


def padded_columns(shape: tuple[int, ...], size: int) -> Placement:
    """The same of matrices that are column-major."""
    *batch, rows, columns = shape
    lines = padded((*batch, columns, rows), size)
    *outer, column, row = lines.strides
    return Placement(lines.bytes, 0, (*outer, row, column))


# Layouts that any strided operand may have.
LAYOUTS: tuple[Layout, ...] = (dense, transposed, gaps, flipped)


# ---- what stands in the arguments where the struct has a pointer ----


@dataclass(frozen=True)
class In:
    """Memory that the kernel reads. A dimension of size 1, or one that is missing at the front, is
    broadcast: its stride is 0. `conj` is for a puone_matrix."""

    values: Any
    dtype: DType
    layout: Layout = dense
    conj: bool = False


@dataclass(frozen=True)
class Out:
    """Memory that the kernel writes, and what it then holds. Numbers may be off by `ulps` spacings
    of the dtype at the expected number, plus `absolute`; neither: exactly. NaN equals NaN. With
    `shape` and without values, the case's check() judges them."""

    values: Any
    dtype: DType
    layout: Layout = dense
    ulps: float = 0
    absolute: float = 0
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class InOut:
    """Memory that the kernel reads and writes: what it holds before and afterwards."""

    before: Any
    values: Any
    dtype: DType
    layout: Layout = dense
    ulps: float = 0
    absolute: float = 0


@dataclass(frozen=True)
class Workspace:
    """Memory that the kernel writes. Its contents afterwards have no meaning."""

    bytes: int


Operand = In | Out | InOut | Workspace


@dataclass(frozen=True)
class Case:
    """One launch. `args` has the fields of the struct by name: numbers, bytes, operands, None for a
    null pointer, lists for arrays, mappings for structs; what is not named is 0.

    `types` are the element types that the driver's kernel must take for the case to apply. `fails`
    is a part of the message with which the launch must fail: at once, with INVALID_ARGUMENT, or
    later, as an asynchronous error. `check` gets what the outputs without
    expected values hold, by the path of their field ("out", "tensors[0].data[1]"), and asserts."""

    kernel: str
    name: str
    args: dict[str, Any]
    types: tuple[DType, ...] = ()
    fails: str | None = None
    lasts: float = 0  # seconds that the launch takes at least
    check: Callable[[dict[str, Array]], None] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.kernel}: {self.name}"


# ---- arguments ----


def dims(shape: Sequence[int]) -> dict[str, Any]:
    """The fields ndim and sizes, in which dimension 0 is the innermost."""
    return {"ndim": len(shape), "sizes": list(reversed(shape))}


def elementwise_args(
    type: DType,
    outputs: Sequence[Out | InOut],
    inputs: Sequence[In],
    parameters: Sequence[Any] = (),
    immediate: Sequence[int] = (),
) -> dict[str, Any]:
    """puone_elementwise_args for operands whose common type is `type`. `immediate` lists the inputs
    (0 is the first) that are passed by value. The outputs have the shape of the launch."""
    compute = COMPUTE[type]
    operands: list[Any] = [*outputs, *inputs]
    immediates = [b""] * len(operands)
    bits = 0
    for i in immediate:
        place = len(outputs) + i
        bits |= 1 << place
        immediates[place] = element(inputs[i].values, inputs[i].dtype)
        operands[place] = None
    first = outputs[0]
    shape = first.shape if isinstance(first, Out) and first.shape is not None else None
    return {
        **dims(np.shape(first.values) if shape is None else shape),
        "compute": compute,
        "common": type,
        "dtypes": [operand.dtype for operand in (*outputs, *inputs)],
        "immediate": bits,
        "immediates": immediates,
        "parameters": [element(value, compute) for value in parameters],
        "operands": operands,
    }


def elementwise(
    kernel: str,
    function: Callable[..., Any],
    type: DType,
    *inputs: Any,
    parameters: Sequence[Any] = (),
    out_type: DType | None = None,
    ulps: float = 0,
    absolute: float = 0,
) -> Iterator[Case]:
    """Cases of an elementwise kernel with one output: dense, strided, broadcast, by value, empty
    and without dimensions. `function` of the inputs, as `type` holds them, is what is expected."""
    given = [rounded(values, type) for values in inputs]
    out_type = type if out_type is None else out_type
    name = type.name.lower()

    def case(label: str, values: list[Array], layout: Layout = dense, **options: Any) -> Case:
        with np.errstate(all="ignore"):
            expected = np.asarray(function(*values, *parameters))
        out = Out(expected, out_type, layout, ulps, absolute)
        operands = [In(value, type, layout) for value in values]
        args = elementwise_args(type, [out], operands, parameters, **options)
        return Case(kernel, f"{name} {label}", args, (type,))

    matrix = [np.resize(values, (5, 7)) for values in given]
    yield case("dense", given)
    yield case("4099 elements", [np.resize(values, 4099) for values in given])
    for layout in LAYOUTS[1:]:
        yield case(layout.__name__, matrix, layout)
    yield case("empty", [values[:0, :] for values in matrix])
    yield case("one element", [values.reshape(-1)[0].reshape(()) for values in given])
    if len(given) > 1:
        row = [matrix[0], *(values[:1, :] for values in matrix[1:])]
        column = [values[:, :1] for values in matrix]
        yield case("broadcast over rows", row)
        yield case("broadcast over columns", [*column[:1], *matrix[1:]])
        # Rows that fill vectors, and enough of them; inputs have a row, a number for each row, ...
        shapes = [(65, 64), (1, 64), (65, 1)]
        for begin in (0, 1):
            rows = [np.resize(x, shapes[(begin + i) % 3]) for i, x in enumerate(given)]
            yield case(f"rows of vectors, the first {rows[0].shape}", rows)
        by_value = [*given[:-1], given[-1].reshape(-1)[0].reshape(())]
        yield case("last input by value", by_value, immediate=[len(given) - 1])
