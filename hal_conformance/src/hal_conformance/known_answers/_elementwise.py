# SPDX-License-Identifier: BSD-3-Clause
"""Tables of elementwise kernels: a row says what is computed, at which points, how exactly.

The reference gets the inputs in wide numbers (Python's integers in object arrays, longdouble or
clongdouble) and so do the parameters. Element types are those of the kernel's contract.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hal_conformance.answering import compare
from hal_conformance.answers import (
    COMPLEXES,
    COMPUTE,
    EPSILON,
    INTEGERS,
    LAYOUTS,
    REALS,
    TINIEST,
    Array,
    Case,
    In,
    Layout,
    Out,
    dense,
    elementwise_args,
    rounded,
    types_of,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import narrow, wide

Points = Callable[[DType], tuple[Array, ...]]

LARGEST = {
    DType.FLOAT16: 65504.0,
    DType.BFLOAT16: 2.0**127 * (2 - 2.0**-7),
    DType.FLOAT32: 2.0**127 * (2 - 2.0**-23),
    DType.FLOAT64: float(np.finfo(np.float64).max),
}
SMALLEST_NORMAL = {
    DType.FLOAT16: 2.0**-14,
    DType.BFLOAT16: 2.0**-126,
    DType.FLOAT32: 2.0**-126,
    DType.FLOAT64: 2.0**-1022,
}
REAL_OF = {
    DType.COMPLEX32: DType.FLOAT16,
    DType.COMPLEX64: DType.FLOAT32,
    DType.COMPLEX128: DType.FLOAT64,
}
COMPLEX_OF = {
    DType.FLOAT16: DType.COMPLEX32,
    DType.BFLOAT16: DType.COMPLEX64,
    DType.FLOAT32: DType.COMPLEX64,
    DType.FLOAT64: DType.COMPLEX128,
}
BITS = {
    DType.BOOL: (0, 1),
    DType.UINT8: (0, 2**8 - 1),
    DType.INT8: (-(2**7), 2**7 - 1),
    DType.INT16: (-(2**15), 2**15 - 1),
    DType.INT32: (-(2**31), 2**31 - 1),
    DType.INT64: (-(2**63), 2**63 - 1),
    DType.UINT16: (0, 2**16 - 1),
    DType.UINT32: (0, 2**32 - 1),
}


# ---- points ----


def special(dtype: DType) -> Array:
    """Of a real type: where functions tend to go wrong. Of an integer type: limits."""
    if dtype in INTEGERS:
        low, high = BITS[dtype]
        return np.array([3, 0, 1, 2, 7, 100, high, high - 1, low, -1 if low else 5], object)
    part = REAL_OF.get(dtype, dtype)
    positive = [1.5, 1, 0.0, TINIEST[part], SMALLEST_NORMAL[part], 3, LARGEST[part], np.inf]
    return np.array([*positive, *(-x for x in positive), np.nan])


def spread(dtype: DType, scale: float = 3, seed: int = 1) -> Array:
    """40 ordinary numbers around 0."""
    random = np.random.default_rng(seed)
    if dtype in INTEGERS:
        low, high = BITS[dtype]
        return random.integers(max(low, -120), min(high, 120), 40, endpoint=True).astype(object)
    real = random.standard_normal(40) * scale
    return real + 1j * random.standard_normal(40) * scale if dtype in COMPLEXES else real


def at(*more: float, scale: float = 3) -> Points:
    """Unary: the numbers named, special ones and ordinary ones."""

    def points(dtype: DType) -> tuple[Array, ...]:
        extra = np.array([int(x) for x in more] if dtype in INTEGERS else more)
        if dtype in COMPLEXES:
            return (spread(dtype, scale),)
        return (np.concatenate([spread(dtype, scale), special(dtype), extra]),)

    return points


def only(*columns: Sequence[complex]) -> Points:
    """Just these, and no NaN or infinity besides."""
    return lambda dtype: tuple(np.array(column) for column in columns)


def crossed(count: int, *more: float, scale: float = 3, finite: bool = False) -> Points:
    """`count` operands: all combinations of special numbers, and ordinary ones."""

    def points(dtype: DType) -> tuple[Array, ...]:
        ordinary = [spread(dtype, scale, seed) for seed in range(count)]
        if dtype in COMPLEXES:
            return tuple(ordinary)
        corners = special(dtype)
        if finite and dtype in REALS:
            corners = np.array([1.5, 1, 0.0, -0.0, -1.5, -3])
        elif count > 2 and dtype in REALS:
            corners = np.array([1.5, 1, 0.0, -0.0, -1.5, np.inf, -np.inf, np.nan])
        elif count > 2:
            corners = corners[[0, 1, 6, 8]]
        extra = np.array([int(x) for x in more] if dtype in INTEGERS else more, corners.dtype)
        combined = np.array(
            list(itertools.product([*corners, *extra], repeat=count)), corners.dtype
        )
        return tuple(np.concatenate([ordinary[i], combined[:, i]]) for i in range(count))

    return points


def held(values: Array, dtype: DType) -> Array:
    """What `dtype` makes of the points; Python's integers wrap."""
    if values.dtype == object:
        values = np.array([int(x) & (1 << 64) - 1 for x in values], np.uint64)
    return rounded(values, dtype)


def without(points: Points, excluded: Callable[..., Array]) -> Points:
    """The points but those for which the result is unspecified."""

    def kept(dtype: DType) -> tuple[Array, ...]:
        found = tuple(held(column, dtype) for column in points(dtype))
        with np.errstate(all="ignore"):
            keep = ~np.asarray(excluded(*found), bool)
        return tuple(column[keep] for column in found)

    return kept


# ---- rows ----


@dataclass(frozen=True)
class Row:
    """What one kernel computes. Errors are in spacings of the type it computes in: `ulps` at the
    result, `absolute` at 1, `terms` at a number that `scale` gives of the inputs (those of a sum
    that may cancel). None of them: exactly. `complex_ulps` is for complex types. `parameters` lists
    sets of parameters, `integers` those of integer types. `result` maps the type to the output's,
    `conditions` counts leading inputs of type bool. `signs`: zeros must have the right sign."""

    kernel: str
    function: Callable[..., Any]
    points: Points
    ulps: float = 0
    complex_ulps: float | None = None
    absolute: float = 0
    parameters: Sequence[Sequence[complex]] = ((),)
    integers: Sequence[Sequence[int]] = ((),)
    result: Callable[[DType], DType] = lambda dtype: dtype
    conditions: int = 0
    signs: bool = False
    types: tuple[DType, ...] | None = None
    label: str = ""


def to_bool(dtype: DType) -> DType:
    return DType.BOOL


def to_real(dtype: DType) -> DType:
    return REAL_OF.get(dtype, dtype)


def to_complex(dtype: DType) -> DType:
    return COMPLEX_OF[dtype]


def tolerance(row: Row, dtype: DType, out: DType) -> tuple[float, float]:
    """Spacings of `out` at the result, and an absolute error."""
    if dtype in INTEGERS or out in INTEGERS:
        return 0, 0
    ulps = row.ulps
    if dtype in COMPLEXES and row.complex_ulps is not None:
        ulps = row.complex_ulps
    if not (ulps or row.absolute):
        return 0, 0
    epsilon = EPSILON[COMPUTE[dtype]]
    if EPSILON[out] > epsilon:  # a last rounding
        ulps = 0.51 + ulps * epsilon / EPSILON[out]
    return ulps, row.absolute * epsilon


def expected_of(
    row: Row, dtype: DType, inputs: Sequence[Array], parameters: Sequence[complex]
) -> tuple[Array, ...]:
    """What the reference says of inputs as `dtype` holds them: one array for each output."""
    exact = [rounded(value, COMPUTE[dtype]) for value in parameters]
    with np.errstate(all="ignore"):
        found = row.function(*(_wide(x, dtype) for x in (*inputs, *exact)))
    found = found if isinstance(found, tuple) else (found,)
    out = row.result(dtype)
    shape = np.broadcast_shapes(*(np.shape(x) for x in inputs))
    with np.errstate(all="ignore"):
        return tuple(np.broadcast_to(_narrow(part, out), shape) for part in found)


def _wide(values: Array, dtype: DType) -> Array:
    # Python's True is not an integer here: its ~ differs.
    return wide(values.astype(np.int8) if values.dtype == bool else values, dtype)


def _narrow(values: Any, out: DType) -> Array:
    if out is DType.BOOL:
        return np.asarray(values).astype(bool)
    return narrow(np.asarray(values), out)


def cases_of(rows: Iterable[Row]) -> Iterator[Case]:
    for row in rows:
        for dtype in row.types or types_of(row.kernel):
            sets = row.integers if dtype in INTEGERS else row.parameters
            for parameters in sets:
                yield from _of_type(row, dtype, parameters, parameters == sets[0])


def _of_type(
    row: Row, dtype: DType, parameters: Sequence[complex], everything: bool
) -> Iterator[Case]:
    points = [
        held(column, DType.BOOL if i < row.conditions else dtype)
        for i, column in enumerate(row.points(dtype))
    ]
    case = partial(_case, row, dtype, parameters)
    yield case("at points", points)
    if row.signs and dtype in REALS:
        yield _with_signs(case("signs of zeros", points))
    if not everything:
        return
    for n in (1, 65, 4099):
        yield case(f"{n} elements", [np.resize(x, n) for x in points])
    matrix = [np.resize(x, (5, 13)) for x in points]
    for layout in LAYOUTS[1:]:
        yield case(layout.__name__, matrix, layout)
    yield case("empty", [x[:0] for x in matrix])
    yield case("without dimensions", [x[0].reshape(()) for x in points])
    yield case("each second of 3 dimensions", [np.resize(x, (3, 1, 8)) for x in points], _second)
    if len(points) > 1:
        yield case("broadcast over rows", [matrix[0], *(x[:1] for x in matrix[1:])])
        yield case("broadcast over columns", [*(x[:, :1] for x in matrix[:-1]), matrix[-1]])
        for i in range(len(points)):
            value = [x[0].reshape(()) if i == j else x for j, x in enumerate(points)]
            yield case(f"input {i} by value", value, immediate=[i])
    yield from _of_other_types(row, dtype, parameters)


def _second(shape: tuple[int, ...], size: int) -> Any:
    """Rows of which the innermost has unused elements between, the outer ones none."""
    return dense(shape, 2 * size)


def _case(
    row: Row,
    dtype: DType,
    parameters: Sequence[complex],
    label: str,
    inputs: Sequence[Array],
    layout: Layout = dense,
    immediate: Sequence[int] = (),
) -> Case:
    out = row.result(dtype)
    ulps, absolute = tolerance(row, dtype, out)
    outputs = [
        Out(values, out, layout, ulps, absolute)
        for values in expected_of(row, dtype, inputs, parameters)
    ]
    operands = [
        In(x, DType.BOOL if i < row.conditions else dtype, layout) for i, x in enumerate(inputs)
    ]
    args = elementwise_args(dtype, outputs, operands, parameters, immediate)
    said = [dtype.name.lower(), row.label, label, *(f"{p:g}" for p in parameters)]
    return Case(row.kernel, " ".join(part for part in said if part), args, (dtype,))


def _of_other_types(row: Row, dtype: DType, parameters: Sequence[complex]) -> Iterator[Case]:
    """Operands that are cast: narrower inputs of float32 and int32, wider ones than uint8."""
    if row.conditions or row.result(dtype) is not dtype:
        return
    if dtype is DType.FLOAT32:
        narrowed, stored, target = DType.FLOAT16, DType.FLOAT16, DType.FLOAT64
    elif dtype is DType.INT32:
        narrowed, stored, target = DType.INT8, DType.INT8, DType.INT64
    elif dtype is DType.UINT8:
        narrowed, stored, target = DType.UINT8, DType.INT16, DType.INT64
    else:
        return
    given = [np.resize(held(x, narrowed), (5, 13)) for x in row.points(narrowed)]
    case = _case(
        row, dtype, parameters, f"of {stored.name.lower()} to {target.name.lower()}", given
    )
    operands = case.args["operands"]
    ulps, absolute = tolerance(row, dtype, dtype)
    if ulps or absolute:  # a spacing of float64 is 2**-29 of one of float32, which the result has
        absolute += (ulps + 0.5) * TINIEST[dtype]
        ulps = (ulps + 0.5) * 2.0**29
    beyond = 256 if dtype is DType.UINT8 else 0  # 300 is 44 when it has become uint8
    changed: list[Any] = []
    for operand in operands:
        if isinstance(operand, Out):
            values = rounded(operand.values, dtype)
            changed.append(Out(values, target, ulps=ulps, absolute=absolute))
        else:
            changed.append(
                In(operand.values.astype(np.int64) + beyond, stored)
                if beyond
                else In(operand.values, stored)
            )
    dtypes = [operand.dtype for operand in changed]
    yield replace(case, args={**case.args, "operands": changed, "dtypes": dtypes})


def _with_signs(case: Case) -> Case:
    """The case, judged also by the signs of zeros, which compare() takes for equal."""
    wanted = [x for x in case.args["operands"] if isinstance(x, Out)]
    unknown = [replace(x, values=None, shape=np.shape(x.values)) for x in wanted]

    def check(found: dict[str, Array]) -> None:
        for elements, out in zip(found.values(), wanted, strict=True):
            compare(elements, out, str(case))
            exact = rounded(out.values, out.dtype)
            for part in (np.real, np.imag):
                ours, theirs = part(elements), part(exact)
                wrong = (ours == 0) & (theirs == 0) & (np.signbit(ours) != np.signbit(theirs))
                assert not wrong.any(), f"{case}: wrong signs of zeros at {np.flatnonzero(wrong)}"

    operands = [*unknown, *case.args["operands"][len(wanted) :]]
    return replace(case, args={**case.args, "operands": operands}, check=check)
