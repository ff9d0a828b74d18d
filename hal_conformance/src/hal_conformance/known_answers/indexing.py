# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "index_get", "index_put" and "index_reduce"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    InOut,
    Layout,
    Out,
    dense,
    dims,
    element,
    rounded,
    types_of,
)
from hal_conformance.contract import constants
from hal_conformance.kernels import DType
from hal_conformance.known_answers.fill import SIZES

NAME = "index_of_a_test"
INDICES = (DType.INT32, DType.INT64)


@dataclass(frozen=True)
class Lookup:
    """A table of shape `chosen` + `rest`; the indices choose from the dimensions `chosen`. Launches
    have the shape `places` + `rest`; index k has the shape shapes[k], broadcast to `places`."""

    chosen: tuple[int, ...]
    places: tuple[int, ...]
    rest: tuple[int, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    wraps: bool = False
    index_dtype: DType = DType.INT64
    table_layout: Layout = dense
    layout: Layout = dense  # of elements and indices
    seed: int = 5

    def indices(self) -> list[Array]:
        random = np.random.default_rng(self.seed)
        shapes = self.shapes or (self.places,) * len(self.chosen)
        return [
            random.integers(-size if self.wraps else 0, size, shape)
            for size, shape in zip(self.chosen, shapes, strict=True)
        ]

    def __str__(self) -> str:
        words = [f"{self.places} of {self.chosen} by {self.index_dtype.name.lower()}"]
        words += [f"rows {self.rest}"] if self.rest else []
        words += ["wraps"] if self.wraps else []
        words += [f"indices {self.shapes}"] if self.shapes else []
        words += [f"{self.table_layout.__name__} table, {self.layout.__name__}"]
        return " ".join(words)


LOOKUPS = (
    Lookup((5,), (7,)),
    Lookup((5,), (7,), wraps=True),
    Lookup((5,), (7,), (3,)),  # rows
    Lookup((5,), (7,), (3,), wraps=True),
    Lookup((1,), (), (4,)),
    Lookup((5,), ()),
    Lookup((5,), (0,), (3,)),
    Lookup((5,), (3,), (0,)),
    Lookup((5,), (4, 3), (2, 2)),
    Lookup((4, 3), (6,)),
    Lookup((4, 3), (6,), (5,), wraps=True),
    Lookup((4, 3), (2, 6), (), ((2, 1), (1, 6))),  # an outer product of indices
    Lookup((2, 3, 2, 3, 2, 3, 2, 3), (40,), wraps=True),
    Lookup((9,), (255,)),
    Lookup((9,), (257,)),
    Lookup((9, 7), (600,)),
    Lookup((11,), (30_001,)),  # nearly every write collides, over shares of all cores
    Lookup((40_000,), (30_001,), wraps=True),
    Lookup((300,), (2000,), (33,)),
)


def table_of(lookup: Lookup, dtype: DType, seed: int = 1) -> Array:
    return _values((*lookup.chosen, *lookup.rest), dtype, seed)


def _values(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Numbers whose sums and products in any order and type are exact or wrap."""
    random = np.random.default_rng(seed)
    if dtype is DType.BOOL:
        return random.integers(0, 2, shape) != 0
    signed = -3 if dtype not in INTEGERS or STORAGE[dtype].kind == "i" else 0
    values = random.integers(signed, 4, shape)
    return values + 1j * random.integers(-1, 2, shape) if dtype in COMPLEXES else values


def arguments(lookup: Lookup, dtype: DType, table: Any, elements: Any) -> dict[str, Any]:
    """The arguments for operands of the element type; their values have the shape of the launch."""
    shape, size = (*lookup.places, *lookup.rest), STORAGE[dtype].itemsize
    count = len(lookup.chosen)
    # The table's chosen dimensions are beyond those of the launch, where only index_strides looks.
    spread = (*lookup.chosen, *(1 for _ in lookup.places), *lookup.rest)

    def placed(values: Any) -> Any:
        return np.reshape(values, spread)

    if isinstance(table, InOut):
        table = replace(table, before=placed(table.before), values=placed(table.values))
    else:
        table = replace(table, values=placed(table.values))
    along = [index.reshape((*index.shape, *(1 for _ in lookup.rest))) for index in lookup.indices()]
    return {
        "name": NAME,
        **dims(shape),
        "element_size": size,
        "dtype": dtype,
        "index_count": count,
        "index_dtype": lookup.index_dtype,
        "wraps": int(lookup.wraps),
        "table": table,
        "elements": elements,
        "index": [In(index, lookup.index_dtype, lookup.layout) for index in along],
        "index_sizes": list(lookup.chosen),
        "index_strides": list(lookup.table_layout(spread, size).strides[:count]),
    }


def _at(lookup: Lookup) -> tuple[Array, ...]:
    return tuple(np.broadcast_to(index, lookup.places) for index in lookup.indices())


def got(lookup: Lookup, dtype: DType) -> Case:
    table = table_of(lookup, dtype)
    out = Out(table[_at(lookup)], dtype, lookup.layout)
    args = arguments(lookup, dtype, In(table, dtype, lookup.table_layout), out)
    return Case("index_get", f"{STORAGE[dtype].itemsize} bytes {lookup}", args)


def written(lookup: Lookup, dtype: DType, immediate: bool = False) -> Case:
    """Of writes that meet, the last one in the order of the launch is seen."""
    table, shape = table_of(lookup, dtype), (*lookup.places, *lookup.rest)
    elements = _values(shape, dtype, 2)
    value = _values((1,), dtype, 9)[0]
    after = table.copy()
    after[_at(lookup)] = value if immediate else elements
    args = arguments(
        lookup,
        dtype,
        InOut(table, after, dtype, lookup.table_layout),
        None if immediate else In(elements, dtype, lookup.layout),
    )
    if immediate:
        args |= {"immediate": 1, "value": element(value, dtype)}
    label = "one value " if immediate else ""
    return Case("index_put", f"{STORAGE[dtype].itemsize} bytes {label}{lookup}", args)


REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "PUONE_REDUCE_SUM": np.add,
    "PUONE_REDUCE_PRODUCT": np.multiply,
    "PUONE_REDUCE_MINIMUM": np.minimum,
    "PUONE_REDUCE_MAXIMUM": np.maximum,
}


def _stored(values: Any, dtype: DType) -> Any:
    """The numbers as elements, integers as wide as sums of them."""
    stored = rounded(values, dtype)
    return stored.astype(np.int64) if dtype in INTEGERS else stored


def _rounds(lookup: Lookup) -> Iterator[tuple[Array, Array]]:
    """Places of the table and the elements for them: first the first element of each place, then
    the second of each that has one, and so on."""
    places = np.ravel_multi_index(_at(lookup), lookup.chosen, mode="wrap").reshape(-1)
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    turn = np.arange(len(places)) - np.searchsorted(sorted_places, sorted_places)
    for i in range(int(turn.max(initial=-1)) + 1):
        yield sorted_places[turn == i], order[turn == i]


def reduced(
    lookup: Lookup,
    dtype: DType,
    reduction: str,
    table: Array | None = None,
    elements: Array | None = None,
    label: str = "",
) -> Case:
    """Elements are combined in their order, and each result is stored before the next."""
    if table is None:
        table = table_of(lookup, dtype)
    if elements is None:
        elements = _values((*lookup.places, *lookup.rest), dtype, 2)
    before, after = table, _stored(table, dtype)
    terms = _stored(elements, dtype)
    flat = after.reshape((math.prod(lookup.chosen), *lookup.rest))
    terms = terms.reshape((math.prod(lookup.places), *lookup.rest))
    with np.errstate(all="ignore"):
        for places, i in _rounds(lookup):
            flat[places] = _stored(REDUCTIONS[reduction](flat[places], terms[i]), dtype)
    args = arguments(
        lookup,
        dtype,
        InOut(before, after, dtype, lookup.table_layout),
        In(elements, dtype, lookup.layout),
    )
    args["reduction"] = constants()[reduction]
    name = f"{dtype.name.lower()} {reduction[13:].lower()} {label}{lookup}"
    return Case("index_reduce", name, args, (dtype,))


def _reductions(dtype: DType) -> Iterator[str]:
    yield from list(REDUCTIONS)[: 2 if dtype in COMPLEXES else 4]


def _layouts() -> Iterator[Lookup]:
    for table_layout in LAYOUTS:
        for layout in LAYOUTS[table_layout is dense :]:
            for rest in ((), (3,)):
                yield Lookup((5,), (7,), rest, wraps=True, table_layout=table_layout, layout=layout)
            yield Lookup((4, 3), (6,), (2,), table_layout=table_layout, layout=layout)


def _special() -> Iterator[Case]:
    """NaN wins over everything, on either side; sums of infinities; integers that wrap."""
    nan, inf = math.nan, math.inf
    lookup = Lookup((5,), (40,))
    some: Sequence[float] = (nan, inf, -inf, -0.0, 2)
    # bool has no limits
    for dtype in [d for d in types_of("index_reduce") if d is not DType.BOOL]:
        if dtype in INTEGERS:
            limits = np.iinfo(STORAGE[dtype])
            extremes = np.array([limits.max, limits.min, limits.max - 1, limits.min, 1])
            elements = np.resize(extremes[::-1], (40,))
            for reduction in _reductions(dtype):
                yield reduced(lookup, dtype, reduction, extremes, elements, "extremes ")
        elif dtype not in COMPLEXES:
            for reduction in _reductions(dtype):
                for table, elements in (
                    (np.array(some), np.resize([1.0, -2.0, 0.5], 40)),
                    (np.ones(5), np.resize(some, 40)),
                ):
                    label = f"{table[0]} "
                    yield reduced(lookup, dtype, reduction, table, elements, label)


def _ordered_sums() -> Iterator[Case]:
    """Sums that are rounded, and so tell in which order they were made."""
    random = np.random.default_rng(8)
    lookup = Lookup((3,), (500,), (2,))
    for dtype in REALS:
        table, elements = random.standard_normal((3, 2)), random.standard_normal((500, 2))
        if dtype is DType.FLOAT32:  # sums of two float32 in float64 are rounded once here, too
            table, elements = rounded(table, dtype), rounded(elements, dtype)
        yield reduced(
            lookup,
            dtype,
            "PUONE_REDUCE_SUM",
            rounded(table, dtype),
            rounded(elements, dtype),
            "rounded ",
        )


def in_any_order(case: Case) -> Case:
    return replace(case, name=f"any order {case.name}", args={**case.args, "any_order": 1})


def _sums_in_any_order() -> Iterator[Case]:
    """Of so few numbers at a place that no sum on the way is rounded."""
    for dtype in types_of("index_reduce"):
        for lookup in (*(of for of in LOOKUPS if math.prod(of.places) < 3000), *_layouts()):
            yield in_any_order(reduced(lookup, dtype, "PUONE_REDUCE_SUM"))


def _out_of_bounds() -> Iterator[Case]:
    message = f"{NAME}: index {{}} is out of bounds for dimension with size {{}}"
    plain = Lookup((5,), (7,))
    many = Lookup((5,), (4000,))
    pair = Lookup((4, 6), (7,))
    row = Lookup((5,), (), (3,))
    for wanted, lookup, at, index in (
        ("just beyond", plain, 3, 5),
        ("negative", plain, 0, -1),
        ("far away", plain, 6, 1 << 30),
        ("far below", plain, 6, -(1 << 30)),
        ("wraps, below", replace(plain, wraps=True), 2, -6),
        ("wraps, beyond", replace(plain, wraps=True), 2, 5),
        ("among many", many, 3999, 5),
        ("of the second index", pair, 4, 6),
        ("of a row", row, (), 5),
    ):
        for index_dtype in INDICES:
            of = replace(lookup, index_dtype=index_dtype)
            for case in (
                got(of, DType.FLOAT32),
                written(of, DType.FLOAT32),
                reduced(of, DType.FLOAT32, "PUONE_REDUCE_SUM"),
                in_any_order(reduced(of, DType.FLOAT32, "PUONE_REDUCE_SUM")),
            ):
                indices = list(case.args["index"])
                changed = indices[-1].values.copy()
                changed.reshape(lookup.places)[at] = index
                indices[-1] = replace(indices[-1], values=changed)
                args = {**case.args, "index": indices}
                fails = message.format(index, lookup.chosen[-1])
                order = " any order" if "any_order" in args else ""
                name = f"{wanted} {index_dtype.name.lower()}{order}"
                yield Case(case.kernel, name, args, case.types, fails)


def _refused() -> Iterator[Case]:
    lookup = Lookup((5,), (7,))
    for dtype, reduction, fails in (
        (DType.COMPLEX64, 2, "no such reduction in this dtype"),
        (DType.FLOAT32, 4, "no such reduction in this dtype"),
        (DType.UINT16, 0, "the kernel does not reduce in this dtype"),
    ):
        case = reduced(lookup, DType.INT32, "PUONE_REDUCE_SUM")
        args = {**case.args, "dtype": dtype, "reduction": reduction}
        yield Case("index_reduce", f"{dtype.name.lower()} by {reduction}", args, fails=fails)


def cases() -> Iterator[Case]:
    for dtype, _ in SIZES.values():
        for lookup in LOOKUPS:
            for index_dtype in INDICES if math.prod(lookup.places) < 1000 else INDICES[1:]:
                of = replace(lookup, index_dtype=index_dtype)
                yield got(of, dtype)
                yield written(of, dtype)
                yield written(of, dtype, immediate=True)
        for lookup in _layouts():
            yield got(lookup, dtype)
            if dtype is DType.UINT32:
                yield written(lookup, dtype)
    for dtype in types_of("index_reduce"):
        for lookup in LOOKUPS:
            for reduction in _reductions(dtype):
                if math.prod(lookup.places) < 1000 or reduction == "PUONE_REDUCE_SUM":
                    yield reduced(lookup, dtype, reduction)
        for lookup in (Lookup((5,), (7,), index_dtype=DType.INT32), LOOKUPS[9], *_layouts()):
            yield reduced(lookup, dtype, "PUONE_REDUCE_SUM", label="strided ")
    yield from _special()
    yield from _ordered_sums()
    yield from _sums_in_any_order()
    yield from _out_of_bounds()
    yield from _refused()
