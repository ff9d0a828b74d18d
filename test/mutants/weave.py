# SPDX-License-Identifier: BSD-3-Clause
"""Writes many mutants into one source, each behind a switch: a mutant costs a fork, not a build."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mutants.rules import BEFORE, CONDITION, EXPRESSION, Mutant

#: What a source asks: mutants.h in C++, path/mutant_switch.py in Python.
_ON = {True: "__mutants__.on({})", False: "::puone_mutants::on({})"}


class Woven(NamedTuple):
    """A source with mutants in it."""

    text: str
    lines: dict[int, range]
    """On which lines each mutant is, by its number; the first line is 1."""


def woven(data: bytes, mutants: Mapping[int, Mutant]) -> Woven:
    """The source with these mutants in it, by their numbers; none may overlap another."""
    text, at, lines = "", 0, {}
    for number, mutant in sorted(mutants.items(), key=lambda item: item[1].start):
        assert at <= mutant.start, f"{mutant} overlaps another one"
        text += data[at : mutant.start].decode()
        first = text.count("\n") + 1
        text += _written(mutant, number)
        lines[number] = range(first, text.count("\n") + 2)
        at = mutant.end
    return Woven(text + data[at:].decode(), lines)


def apart(candidates: Iterable[Mutant]) -> Iterable[Mutant]:
    """Those of the candidates that overlap none before them."""
    taken: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in candidates:
        others = taken[mutant.file]
        if all(mutant.end <= other.start or other.end <= mutant.start for other in others):
            others.append(mutant)
            yield mutant


def _written(mutant: Mutant, number: int) -> str:
    is_python = mutant.file.endswith(".py")
    on, original, instead = _ON[is_python].format(number), mutant.original, mutant.instead
    if mutant.form in (EXPRESSION, CONDITION):
        if is_python:
            return f"(({instead}) if {on} else ({original}))"
        if mutant.form == CONDITION:
            # Of an optional and a bool, ?: makes an optional, which has a value.
            instead, original = (f"static_cast<bool>({one})" for one in (instead, original))
        return f"({on} ? ({instead}) : ({original}))"
    if mutant.form == BEFORE:
        if is_python:
            return f"return None if {on} else ({original.removeprefix('return').strip()})"
        return f"{{ if ({on}) {instead} {original} }}"
    if instead:
        return instead.replace("@", f"!{on}")
    return f"if not {on}: {original}" if is_python else f"if (!{on}) {{ {original} }}"
