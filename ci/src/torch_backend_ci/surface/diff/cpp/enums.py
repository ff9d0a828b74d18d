# SPDX-License-Identifier: BSD-3-Clause
"""Enums and their values.

A value put in front of others moves them all; that is reported once. What hurts most is when it
moves the one that counts the others, by which backends size their tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torch_backend_ci.surface.diff.pairing import pair_renames, same_but_for_name, simple
from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding

# NumOptions, NUM_SCALAR_TYPES, EndOfFunctionalityKeys count wherever they stand; ENUM_COUNT and
# COMPILE_TIME_MAX_DEVICE_TYPES if nothing is larger: a MAX among others is the operation.
COUNTING = re.compile(r"[Nn]um[A-Z_]\w*|NUM_\w+|EndOf\w+")
LARGEST = re.compile(r"(\w*_)?(COUNT|MAX|END|LAST)(_\w*)?")
SHOWN = 3  # of the values that moved


class Enum(NamedTuple):
    """One enum in both snapshots, its values by simple name."""

    was: Declaration
    now: Declaration
    before: dict[str, Declaration]
    after: dict[str, Declaration]

    @property
    def moved(self) -> list[str]:
        """The names whose number changed: those that count first, then in the numbers' order."""
        both = self.before.keys() & self.after.keys()
        moved = [n for n in both if value(self.before[n]) != value(self.after[n])]
        return sorted(moved, key=lambda n: (not self.is_count(n), value(self.after[n]), n))

    @property
    def counts(self) -> list[str]:
        """Those that moved and count the others."""
        return [name for name in self.moved if self.is_count(name)]

    def is_count(self, name: str) -> bool:
        """Whether a value counts the others."""
        if COUNTING.fullmatch(name):
            return True
        largest = value(self.after[name]) == max(map(value, self.after.values()))
        return largest and LARGEST.fullmatch(name) is not None


def value(enumerator: Declaration) -> int:
    """The number; 0 is as good a fact as any, though a falsy one is left out."""
    return int(enumerator.facts.get("value", 0))


def changed(enum: Enum) -> Iterator[Finding]:
    """Every difference of an enum that is in both snapshots."""
    yield from _enum_itself(enum.was, enum.now)
    removed = [d for n, d in enum.before.items() if n not in enum.after]
    added = [d for n, d in enum.after.items() if n not in enum.before]
    for was, now in pair_renames(removed, added, same_but_for_name):
        removed.remove(was)
        added.remove(now)
        yield finding("enumerator_renamed", was, now, new_name=now.name)
    moved = f"Moved: {_moves(enum)}." if enum.moved else ""
    for declaration in removed:
        yield finding("enumerator_removed", declaration, None, note=moved)
    for declaration in added:
        yield _added(declaration, enum)
    if enum.moved and not removed and not (added and enum.counts):
        yield finding("enumerator_value_changed", enum.was, enum.now, moved=_moves(enum))


def follows(was: object, now: object, enums: list[Enum]) -> str | None:
    """The enumerator that a constant with these values was made from, if it moved alike."""
    for enum in enums:
        for name in enum.moved:
            if (value(enum.before[name]), value(enum.after[name])) == (was, now):
                return enum.after[name].name
    return None


def _enum_itself(was: Declaration, now: Declaration) -> Iterator[Finding]:
    old, new = was.facts.get("underlying"), now.facts.get("underlying")
    if old != new:
        yield finding("underlying_type_changed", was, now, was_type=old, now_type=new)
    if bool(was.facts.get("scoped")) != bool(now.facts.get("scoped")):
        rule = "made_scoped" if now.facts.get("scoped") else "no_longer_scoped"
        yield finding(rule, was, now)


def _added(now: Declaration, enum: Enum) -> Finding:
    if not enum.counts:
        return finding("enumerator_added", None, now)
    count = ", ".join(_move(enum, name) for name in enum.counts)
    return finding("enumerator_added_moves_count", None, now, count=count)


def _moves(enum: Enum) -> str:
    shown = [_move(enum, name) for name in enum.moved[:SHOWN]]
    more = len(enum.moved) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _move(enum: Enum, name: str) -> str:
    old, new = value(enum.before[name]), value(enum.after[name])
    return f"{simple(enum.after[name].name)} (from {old} to {new})"
