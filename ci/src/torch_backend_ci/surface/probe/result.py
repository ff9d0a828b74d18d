# SPDX-License-Identifier: BSD-3-Clause
"""What the probe says about a torch."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

_QUOTED = re.compile(r"'([\w:]+)'")

_OWN_CLASS = re.compile(r"probe::\(anonymous namespace\)::(\w+)")


class Use(str, Enum):
    """What the probe does with a declaration."""

    OVERRIDES = "overrides"
    DERIVES = "derives"  # and makes an object of the derived class
    EXPANDS = "expands"  # a macro
    NAMES = "names"  # calls, reads, or mentions it as a type


@dataclass(frozen=True)
class Place:
    """A line of a file; relative to the probe's directory or to the torch tree."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Covered:
    """One use of one declaration."""

    name: str  # as Declaration.name
    use: Use
    declared: Place  # in the torch tree: tells overloads apart
    begin: Place  # in the probe
    first: int  # the lines of the statement or declaration around it
    last: int
    by: str = ""  # the class of the probe that derives


@dataclass(frozen=True)
class ProbeError:
    """A line that the compiler refuses."""

    place: Place  # in the probe, or in a header of the tree if no line of the probe is behind it
    text: str
    notes: tuple[str, ...] = ()
    unimplemented: tuple[str, ...] = ()  # the pure virtuals that make a class abstract
    fatal: bool = False  # what comes after was not looked at

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(frozen=True)
class ProbeResult:
    """The result of the probe."""

    torch: str  # the version whose headers it was compiled with
    written_for: str  # the version whose backends it stands for
    errors: tuple[ProbeError, ...]
    uses: tuple[Covered, ...]

    def about(self, error: ProbeError) -> frozenset[str]:
        """What a refused line is about: the declarations it used where it was accepted, and what
        the function around it overrides; else those of the statement around. Of a line of a
        header, the declarations that the message names. The bases of a class of the probe that
        the message names."""
        inside = [u for u in self.uses if u.begin.file == error.place.file]
        around = {u for u in inside if u.first <= error.place.line <= u.last}
        line = {u for u in inside if u.begin.line == error.place.line}
        overridden = {u for u in around if u.use == Use.OVERRIDES}
        names = {u.name for u in (line | overridden or around)}
        text = " ".join((error.text, *error.notes))
        if not inside:
            said = set(_QUOTED.findall(text))
            names = {u.name for u in self.uses if {u.name, u.name.rpartition("::")[2]} & said}
        own = set(_OWN_CLASS.findall(text))
        names |= {u.name for u in self.uses if u.by in own}
        return frozenset(names | set(error.unimplemented))

    @functools.cached_property
    def covers(self) -> Mapping[str, frozenset[Use]]:
        """Declaration.name -> what the probe does with it."""
        found: dict[str, set[Use]] = {}
        for covered in self.uses:
            found.setdefault(covered.name, set()).add(covered.use)
        return {name: frozenset(uses) for name, uses in sorted(found.items())}
