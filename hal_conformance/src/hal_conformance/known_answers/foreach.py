# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of elementwise functions of lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hal_conformance.answers import COMPUTE, REALS, Array, Case, In, Out, element, rounded
from hal_conformance.kernels import DType
from hal_conformance.known_answers._elementwise import Row, at, crossed, expected_of, tolerance
from hal_conformance.known_answers.binary import larger, smaller
from hal_conformance.known_answers.ternary import blended

# Elements of the tensors of a list: none, one, around a vector, beyond a thread's share.
LENGTHS = (5, 0, 1, 65, 4099, 64, 3)
MOST = 64  # tensors of a launch


def ordinary(count: int) -> Callable[[DType], tuple[Array, ...]]:
    """Numbers without zeros, for divisors, and NaN in each operand."""

    def points(dtype: DType) -> tuple[Array, ...]:
        random = np.random.default_rng(3)
        columns = random.uniform(0.5, 2, (count, 60)) * random.choice([-1, 1], (count, 60))
        for i in range(count):
            columns[i, 10 + i] = np.nan
        return tuple(columns)

    return points


ROWS = [
    Row("foreach_sqrt", np.sqrt, at(4, 2), ulps=0.5),
    Row("foreach_exp", np.exp, at(10, -10, 80, -80, 88.5, -100, -104), ulps=2.5),
    Row("foreach_abs", np.abs, at()),
    Row("foreach_neg", np.negative, at()),
    Row("foreach_reciprocal", lambda x: 1 / x, at(), ulps=0.5),
    Row("foreach_add", lambda a, b, f: a + f * b, crossed(2, finite=True), ulps=0.5, absolute=16,
        parameters=[(1,), (-2,), (0.5,), (0,)]),
    Row("foreach_sub", lambda a, b, f: a - f * b, crossed(2, finite=True), ulps=0.5, absolute=16,
        parameters=[(1,), (-2,), (0.5,), (0,)]),
    Row("foreach_mul", lambda a, b: a * b, crossed(2), ulps=0.5),
    Row("foreach_div", lambda a, b: a / b, crossed(2), ulps=0.5),
    Row("foreach_pow", np.power, crossed(2, 0.5, 10, -2, scale=2), ulps=1),
    Row("foreach_maximum", larger, crossed(2)),
    Row("foreach_minimum", smaller, crossed(2)),
    Row("foreach_addcmul", lambda x, a, b, v: x + v * a * b, ordinary(4), ulps=1, absolute=16),
    Row("foreach_addcdiv", lambda x, a, b, v: x + v * a / b, ordinary(4), ulps=2, absolute=16),
    Row("foreach_lerp", blended, ordinary(3), ulps=2, absolute=8),
]  # fmt: skip


def launch(
    row: Row,
    dtype: DType,
    parameters: Sequence[complex],
    label: str,
    lengths: Sequence[int],
    one: int | None = None,
    by_value: bool = False,
    stored: DType | None = None,
    into: DType | None = None,
) -> Case:
    """Operands go round the row's points, each tensor starting at another. Input `one` is one
    element, in memory or by value; the last input is of type `stored`, the output `into`."""
    points = [rounded(column, dtype) for column in row.points(dtype)]
    types = [dtype] * len(points)
    if stored is not None:
        types[-1], points[-1] = stored, rounded(points[-1], stored)
    out = dtype if into is None else into
    tensors: list[dict[str, Any]] = []
    for t, n in enumerate(lengths):
        given = [np.resize(np.roll(column, -t), n) for column in points]
        if one is not None:
            given[one] = np.roll(points[one], -t)[:1]
        expected = expected_of(row, dtype, given, parameters)[0]
        ulps, absolute = tolerance(row, dtype, out)
        data: list[Any] = [Out(np.resize(expected, n), out, ulps=ulps, absolute=absolute)]
        data += [In(x, of) for x, of in zip(given, types, strict=True)]
        tensor: dict[str, Any] = {"n": n, "data": data}
        if one is not None and by_value:
            tensor["immediate"] = element(given[one][0], types[one])
            data[1 + one] = None
        tensors.append(tensor)
    bit = 0 if one is None else 1 << (1 + one)
    args = {
        "count": len(lengths),
        "compute": COMPUTE[dtype],
        "dtypes": [out, *types],
        "broadcast": 0 if by_value else bit,
        "immediate": bit if by_value else 0,
        "parameters": [element(value, COMPUTE[dtype]) for value in parameters],
        "tensors": tensors,
    }
    said = [dtype.name.lower(), label, *(f"{p:g}" for p in parameters)]
    return Case(row.kernel, " ".join(said), args, (dtype,))


def cases() -> Iterator[Case]:
    for row in ROWS:
        for dtype in REALS:
            everything = [len(row.points(dtype)[0])] * 2
            for parameters in row.parameters:
                yield launch(row, dtype, parameters, "at points", everything)
            first = row.parameters[0]
            yield launch(row, dtype, first, "lengths", LENGTHS)
            yield launch(row, dtype, first, "most tensors", [3] * MOST)
            yield launch(row, dtype, first, "no tensors", [])
            for one in range(len(row.points(dtype))):
                yield launch(row, dtype, first, f"input {one} is one element", LENGTHS, one)
                yield launch(row, dtype, first, f"input {one} by value", LENGTHS, one, True)
        yield from _mixed(row)


def _mixed(row: Row) -> Iterator[Case]:
    """Operands of other types than that of the launch."""
    first, last = row.parameters[0], len(row.points(DType.FLOAT32)) - 1
    for dtype, other in (
        (DType.FLOAT32, DType.FLOAT16),
        (DType.FLOAT32, DType.BFLOAT16),
        (DType.FLOAT16, DType.BFLOAT16),
        (DType.FLOAT64, DType.FLOAT32),
    ):
        said = other.name.lower()
        yield launch(row, dtype, first, f"of {said}", LENGTHS, stored=other)
        yield launch(row, dtype, first, f"into {said}", LENGTHS, into=other)
        for by_value in (False, True):
            how = "by value" if by_value else "in memory"
            label = f"of one {said} {how}"
            yield launch(row, dtype, first, label, LENGTHS, last, by_value, stored=other)
    if not (row.ulps or row.absolute):  # rounding to the type computed in does not show
        yield launch(row, DType.FLOAT32, first, "into float64", LENGTHS, into=DType.FLOAT64)
