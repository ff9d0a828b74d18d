# SPDX-License-Identifier: BSD-3-Clause
"""Values that loops over one row compute again and again: the first loop keeps them for the others.

Inductor lets each loop compute what it needs of an element from what it loads. Where that takes a
function like exp, memory for the row is cheaper: a kernel then does what Triton's persistent
reductions do with registers. Rows are kept only if their length is known and short.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .source import Loop, Once, Part

_LONGEST = 1024  # elements of a row: a host has it on its stack
_MOST = 4  # values of an element
#: Functions that take longer than a load and a store.
_COSTLY = re.compile(
    r"\bops::(?:exp2?|expm1|log(?:2|10|1p)?|pow|a?(?:sin|cos|tan)h?|atan2|erfc?|sigmoid|hypot"
    r"|rand|randn|randint64)\("
)
_DEFINITION = re.compile(r"const (?:auto|int64_t) (\w+) = (.+);")
_STORE = re.compile(r"\w+\[.+\] = ops::write<\w+>\(\w+\);")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_BUFFER = re.compile(r"\b\w*ptr\d+\b")


class Definition(NamedTuple):
    """Of a variable of an element."""

    name: str
    text: str
    number: int  # the same for the same value of the same element


@dataclass
class _Numbers:
    """Numbers of values: two expressions of equal values have one number."""

    known: dict[str, int] = field(default_factory=dict)
    costly: set[int] = field(default_factory=set)
    stores: dict[str, int] = field(default_factory=dict)  # to each buffer, so far

    def define(self, name: str, text: str, local: dict[str, str]) -> Definition:
        named = _NAME.sub(lambda match: local.get(match[0], match[0]), text)
        loaded = "".join(f" {each}:{self.stores.get(each, 0)}" for each in _BUFFER.findall(text))
        number = self.known.setdefault(named + loaded, len(self.known))
        of_costly = any(f"#{each}#" in named for each in self.costly)
        if of_costly or _COSTLY.search(text):
            self.costly.add(number)
        local[name] = f"#{number}#"
        return Definition(name, text, number)

    def store(self, lines: str) -> None:
        """What is loaded behind these lines is not what was loaded before them."""
        for line in lines.splitlines():
            if not _DEFINITION.fullmatch(line):
                for buffer in _BUFFER.findall(line):
                    self.stores[buffer] = self.stores.get(buffer, 0) + 1


@dataclass
class _Row:
    """A loop, as far as it is understood."""

    place: int  # of the loop among the parts
    loop: Loop
    defined: list[Definition]

    def uses(self, of: set[int]) -> Iterator[Definition]:
        """Definitions of these values that something else than a definition of them needs."""
        inner = {each.name for each in self.defined if each.number in of}
        others = [each.text for each in self.defined if each.number not in of]
        others += [line for line in self.loop.lines.splitlines() if not _DEFINITION.fullmatch(line)]
        others += [each.value for each in self.loop.reductions]
        needed = inner & set(_NAME.findall("\n".join(others)))
        return (each for each in self.defined if each.name in needed)


def keep(parts: Sequence[Part], type_of: Callable[[str], str]) -> tuple[str, list[Part]]:
    """Lines that declare memory for a row, and the parts that use it.

    `type_of` gives the type of a variable in a kernel.
    """
    numbers = _Numbers()
    rows = list(_rows(parts, numbers))
    kept = _chosen(rows, numbers.costly)
    result = list(parts)
    declared = ""
    filled: set[int] = set()
    fills: dict[int, Loop] = {}
    for row in rows:
        here = {each.number: each.name for each in row.defined if each.number in kept}
        new = {number: name for number, name in here.items() if number not in filled}
        filled.update(new)
        declared += "".join(
            _declared(number, type_of(name), row.loop.count) for number, name in new.items()
        )
        old = set(here) - set(new)
        if new and row.loop.is_repeated:
            fills[row.place] = _filling(row, new, old)
            old, new = set(here), {}
        result[row.place] = _changed(row, new, old)
    for place in sorted(fills, reverse=True):
        result.insert(place, fills[place])
    return declared, result


def _rows(parts: Sequence[Part], numbers: _Numbers) -> Iterator[_Row]:
    """The loops over one short row whose lines are nothing but definitions and stores."""
    count = next((part.count for part in parts if isinstance(part, Loop)), "")
    short = re.fullmatch(r"(\d+)L", count)
    for place, part in enumerate(parts):
        if isinstance(part, Once):
            numbers.store(part.stores)
            continue
        understood = part.split is None and all(
            _DEFINITION.fullmatch(line) or _STORE.fullmatch(line)
            for line in (part.entries + part.lines).splitlines()
        )
        if short and int(short[1]) <= _LONGEST and part.count == count and understood:
            local = {part.index: "#index#"}
            definitions = map(_DEFINITION.fullmatch, (part.entries + part.lines).splitlines())
            yield _Row(
                place,
                part,
                [numbers.define(each[1], each[2], local) for each in definitions if each],
            )
        numbers.store(part.lines)


def _chosen(rows: Sequence[_Row], costly: set[int]) -> set[int]:
    """The values that save most: behind them there is nothing that is the same in another loop."""
    chosen: list[int] = []
    before: set[int] = set()
    for row in rows:
        own = {each.number for each in row.defined}
        again = own if row.loop.is_repeated else own & before
        chosen += [use.number for use in row.uses(again) if use.number in costly]
        before |= own
    return set(list(dict.fromkeys(chosen))[:_MOST])


def _name(number: int) -> str:
    return f"kept{number}"


def _declared(number: int, type_: str, count: str) -> str:
    name = _name(number)
    return (
        f"RowValues<{type_}, {count}> {name}_values;\nconst auto {name} = {name}_values.begin();\n"
    )


def _filling(row: _Row, new: Mapping[int, str], old: set[int]) -> Loop:
    """A loop that computes the values and does nothing else."""
    only = replace(row.loop, lines=row.loop.lines_without_stores, reductions=[])
    return _changed(replace(row, loop=only), new, old)


def _changed(row: _Row, new: Mapping[int, str], old: set[int]) -> Loop:
    """The loop that keeps the values `new` and takes the values `old` from where they were kept."""
    index = row.loop.index
    numbers = {each.name: each.number for each in row.defined}

    def changed(lines: str) -> str:
        text = ""
        for line in lines.splitlines():
            definition = _DEFINITION.fullmatch(line)
            if definition is None:
                text += f"{line}\n"
                continue
            name = definition[1]
            number = numbers[name]
            memory = f"{_name(number)}[{index}]"
            text += f"const auto {name} = {memory};\n" if number in old else f"{line}\n"
            if number in new:
                text += f"{memory} = {name};\n"
        return _without_unused(text, [each.value for each in row.loop.reductions])

    if not new and not old:
        return row.loop
    return replace(
        row.loop,
        lines=changed(row.loop.lines),
        lines_without_stores=changed(row.loop.lines_without_stores),
    )


def _without_unused(lines: str, values: Sequence[str]) -> str:
    """The lines without definitions that neither they nor the values need."""
    needed = set(_NAME.findall("\n".join(values)))
    kept: list[str] = []
    for line in reversed(lines.splitlines()):
        definition = _DEFINITION.fullmatch(line)
        if definition is None or definition[1] in needed:
            kept.append(line)
            needed.update(_NAME.findall(definition[2] if definition else line))
    return "".join(f"{line}\n" for line in reversed(kept))
