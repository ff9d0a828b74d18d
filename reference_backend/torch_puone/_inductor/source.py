# SPDX-License-Identifier: BSD-3-Clause
"""The text of a kernel, in the dialect of csrc/kernels/module.h.

There are four layouts:

    Map       one call for each index
    Rows      a block for each row of a long innermost dimension, or for several neighbours
    Results   a block for each result of a reduction
    Columns   a block for kModuleColumns neighbouring results, of reductions of columns

Indices are not divided for each element where that can be avoided: divisions are slow, and loops
with them are not vectorised. A layout writes the parts of a kernel: what is computed once for each
index or result, and loops over what is reduced.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from . import invariants

#: In the lines of a part: ends the work on this index. The others go on.
LEAVE = "PUONE_LEAVE;"
COLUMNS = 64  # kModuleColumns
ROWS = 16  # kModuleRows
#: Functions of elements that take longer than a store and a load.
# fmt: off
COSTLY = frozenset((
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sigmoid", "erf", "erfc",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "hypot",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
))
# fmt: on


class Entry(NamedTuple):
    """The definition of an index variable."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"const int64_t {self.name} = {self.value};\n"


@dataclass
class Reduction:
    """One reduction of a loop."""

    function: str  # "reduce", or "welford_reduce"
    type: str  # of what is reduced
    result: str  # the type of the result
    identity: str
    combine: str  # of a and b
    value: str  # of one element, in terms of the loop's lines
    results: dict[str, tuple[str, str]]  # variables: type, and what of the result {} it is
    parts: list[Reduction] = field(default_factory=list)  # what is reduced together

    @property
    def name(self) -> str:
        return "of_" + next(iter(self.results))

    def unpacked(self, result: str) -> str:
        return "".join(
            f"const {type_} {name} = {part.format(result)};\n"
            for name, (type_, part) in self.results.items()
        )

    @property
    def combiner(self) -> str:
        """A function of two values."""
        if self.parts:
            return f"combineEach({', '.join(part.combiner for part in self.parts)})"
        of = f"const {self.type}&"
        return f"[]({of} a, {of} b) PUONE_MODULE_LAMBDA {{ return {self.type}({self.combine}); }}"

    @property
    def tail(self) -> str:
        """The arguments behind the function that loads an element."""
        return "" if self.function == "welford_reduce" else f", {self.combiner}"


def in_one_pass(reductions: list[Reduction]) -> list[Reduction]:
    """The same reductions, where those that can share a pass are one (kernels/together.h)."""
    shared = [each for each in reductions if each.function == "reduce"]
    if len(shared) < 2:
        return reductions
    type_ = f"Together<{', '.join(each.type for each in shared)}>"
    results = {
        name: (of, part.replace("{}", f"{{}}.{'rest.' * number}first"))
        for number, each in enumerate(shared)
        for name, (of, part) in each.results.items()
    }
    identity, value = (
        f"together({', '.join(f'{each.type}({getattr(each, name)})' for each in shared)})"
        for name in ("identity", "value")
    )
    one = Reduction("reduce", type_, type_, identity, "", value, results, shared)
    return [one, *(each for each in reductions if each not in shared)]


@dataclass
class Once:
    """What is computed for each index or result."""

    lines: str
    stores: str = ""


class Split(NamedTuple):
    """An index as a row and a place in it, which takes no division for each element."""

    row: str
    place: str
    length: str
    entries: str  # definitions in terms of both


@dataclass
class Loop:
    """Over the elements of one result, whose number is in terms of the arguments."""

    index: str
    count: str
    entries: str  # definitions in terms of the index
    lines: str
    lines_without_stores: str
    reductions: list[Reduction] = field(default_factory=list)
    split: Split | None = None

    @property
    def is_costly(self) -> bool:
        """Whether to compute an element takes longer than to keep it."""
        return not COSTLY.isdisjoint(re.findall(r"\bops::(\w+)\(", self.lines))

    def passes(self, once: bool) -> tuple[str, str]:
        """The lines of each pass, and those of one more that stores, or "".

        Stores in place change what another evaluation of the lines would read, and may add. So
        lines that are evaluated once store as they go; behind several passes there is one more.
        """
        stores = self.lines != self.lines_without_stores
        if once or not stores:
            return self.lines, ""
        return self.lines_without_stores, self.lines

    @property
    def parameters(self) -> str:
        """Of the functions of one element."""
        if self.split is None:
            return f"int64_t {self.index}"
        return f"int64_t {self.split.row}, int64_t {self.split.place}"

    @property
    def defined(self) -> str:
        return self.entries if self.split is None else self.split.entries

    def without_invariants(self) -> tuple[str, Loop]:
        """The lines to put before the loop, and the loop without them."""
        varying = re.findall(r"int64_t (\w+)", f"{self.parameters}, {self.defined}")
        moved, lines = invariants.split(self.lines, varying)
        _, lines_without_stores = invariants.split(self.lines_without_stores, varying)
        return moved, replace(self, lines=lines, lines_without_stores=lines_without_stores)

    @property
    def space(self) -> str:
        """The arguments of a call of the block that say how many elements there are."""
        if self.split is None:
            return self.count
        return f"{self.count} / {self.split.length}, {self.split.length}"


Part = Once | Loop


def indented(text: str) -> str:
    return textwrap.indent(text, "  ")


def _function(parameters: str, body: str) -> str:
    return f"[=]({parameters}) PUONE_MODULE_LAMBDA {{\n{indented(body)}}}"


def _element(type_: str, none: str, lines: str, value: str) -> str:
    """The body of a function of one element, which gives `none` where it is left early."""
    if LEAVE in lines:
        lines = f"const {type_} none = {none};\n{lines.replace(LEAVE, 'return none;')}"
    return f"{lines}return {value};\n"


def _passes(loop: Loop, reduction: Reduction) -> int:
    """How often the reduction of a result goes over its elements."""
    # block.moments() merges in double, which adds no digits to doubles.
    kept = loop.is_costly and reduction.type == "float"
    return 1 if kept or reduction.function == "reduce" else 2


def _once(stores: str) -> str:
    return f"block.once([&] {{\n{indented(stores)}}});\n" if stores else ""


@dataclass
class Map:
    entries: list[Entry]
    idiom = "MAP"

    def body(self, parts: list[Part]) -> str:
        text = "".join(map(str, self.entries))
        for part in parts:
            assert isinstance(part, Once)
            text += part.lines + part.stores
        return text.replace(LEAVE, "return;")


@dataclass
class Rows:
    entries: list[Entry]  # of the row, in terms of `row`
    inner: list[Entry]  # of the element, in terms of `place`, too
    length: str
    rows: str  # how many there are
    tiles: str | None  # the method of a block that handles kModuleRows rows
    idiom = "BLOCKS"

    def body(self, parts: list[Part]) -> str:
        outer = "".join(map(str, self.entries))
        entries = "".join(map(str, self.inner))
        element = Map([]).body(parts)
        if self.tiles is None:
            names = ["place", *(entry.name for entry in self.inner)]
            moved, element = invariants.split(element, names)
            function = _function("int64_t place", entries + element)
            call = f"block.each({self.length}, {function});\n"
            return f"const int64_t row = index;\n{outer}{moved}{call}"
        function = _function(
            "int64_t at, int64_t place",
            f"const int64_t row = first + at;\n{outer}{entries}{element}",
        )
        return (
            "const int64_t first = index * kModuleRows;\n"
            f"const int64_t rows = std::min<int64_t>(kModuleRows, {self.rows} - first);\n"
            f"block.{self.tiles}(rows, {self.length}, {function});\n"
        )


@dataclass
class Results:
    entries: list[Entry]
    idiom = "BLOCKS"

    def body(self, parts: list[Part]) -> str:
        text = "".join(map(str, self.entries))
        for part in parts:
            if isinstance(part, Once):
                text += part.lines.replace(LEAVE, "return;") + _once(part.stores)
            else:
                text += self._loop(part)
        return text

    def _loop(self, whole: Loop) -> str:
        rows = "" if whole.split is None else "OfRows"
        text, loop = whole.without_invariants()

        def every(lines: str) -> str:
            body = _function(loop.parameters, (loop.defined + lines).replace(LEAVE, "return;"))
            return f"block.each{rows}({loop.space}, {body});\n"

        if not loop.reductions:
            return text + every(loop.lines)
        reductions = in_one_pass(loop.reductions)
        passes = [_passes(loop, each) for each in reductions]
        lines, last = loop.passes(once=passes == [1])
        for each, count in zip(reductions, passes, strict=True):
            element = _element(each.type, each.identity, loop.defined + lines, each.value)
            load = _function(loop.parameters, element)
            if each.function == "reduce":
                call = f"block.reduce{'Rows' if rows else ''}({loop.space}"
            elif count == 1:
                call = f"block.moments{'Rows' if rows else ''}({loop.space}"
            else:
                call = f"ops::welford_reduce{'_rows' if rows else ''}(block, {loop.space}"
            text += f"const auto {each.name} = {call}, {each.identity}, {load}{each.tail});\n"
            text += each.unpacked(each.name)
        return text + (every(last) if last else "")


def fits_columns(parts: list[Part]) -> bool:
    """Whether what is computed once may be computed again behind its stores: it loads nothing."""
    return not any(
        isinstance(part, Once) and part.stores and "ops::read(" in part.lines for part in parts[:-1]
    )


@dataclass
class Columns:
    """What is computed once is computed where it is used, for the column that uses it."""

    entries: list[Entry]  # of the block, in terms of `index`
    inner: list[Entry]  # of the column, in terms of `column`, too
    width: str
    idiom = "BLOCKS"

    def body(self, parts: list[Part]) -> str:
        text = "".join(map(str, self.entries)) + f"const int64_t width = {self.width};\n"
        known = "".join(map(str, self.inner))
        for part in parts:
            if isinstance(part, Once):
                if part.stores:
                    text += self._each(known + part.lines + part.stores)
                known += part.lines
                continue
            text += self._loop(part, known)
            for each in part.reductions:
                known += each.unpacked(f"{each.name}[column]")
        return text

    @staticmethod
    def _each(lines: str) -> str:
        function = _function("int64_t column", lines.replace(LEAVE, "return;"))
        return f"block.each(width, {function});\n"

    def _loop(self, loop: Loop, known: str) -> str:
        index = f"int64_t column, int64_t {loop.index}"

        def every(lines: str) -> str:
            body = _function(index, (known + loop.entries + lines).replace(LEAVE, "return;"))
            return f"block.eachOfColumns(width, {loop.count}, {body});\n"

        if not loop.reductions:
            return every(loop.lines)
        only, *others = loop.reductions
        lines, last = loop.passes(once=not others and only.function == "reduce")
        text = ""
        for each in loop.reductions:
            element = _element(each.type, each.identity, known + loop.entries + lines, each.value)
            load = _function(index, element)
            call = (
                f"ops::welford_reduce_columns(block, width, {loop.count}"
                if each.function == "welford_reduce"
                else f"block.reduceColumns(width, {loop.count}"
            )
            text += (
                f"{each.result} {each.name}_columns[kModuleColumns];\n"
                f"{each.result}* const {each.name} = {each.name}_columns;\n"
                f"{call}, {each.identity}, {load}{each.tail}, {each.name});\n"
            )
        return text + (every(last) if last else "")


Layout = Map | Rows | Results | Columns
