# SPDX-License-Identifier: BSD-3-Clause
"""Who derives from whom among the classes of one snapshot, and who overrides what."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from torch_backend_ci.surface.diff.pairing import scope, simple
from torch_backend_ci.surface.model import Declaration

NAME_OF_BASE = re.compile(r"(?:(?:public|protected|private|virtual)\s+)*([^<]+)")


class Hierarchy:
    """The classes of a snapshot, with their bases as far as those are in it."""

    def __init__(self, named: Mapping[str, list[Declaration]]) -> None:
        self.named = named
        self.classes = {d.name: d for group in named.values() for d in group if d.kind == "class"}
        self._derived: defaultdict[str, list[str]] = defaultdict(list)
        for name in self.classes:
            for base in self.ancestors(name):
                self._derived[base].append(name)

    def bases(self, name: str) -> list[str]:
        """The direct bases of a class, by name and without template arguments."""
        declared = self.classes.get(name)
        return [base_name(base) for base in declared.facts.get("bases", ())] if declared else []

    def ancestors(self, name: str) -> Iterator[str]:
        """All bases of a class, nearest first, each once, those outside the snapshot too."""
        waiting, seen = self.bases(name), set()
        while waiting:
            base = waiting.pop(0)
            if base not in seen:
                seen.add(base)
                yield base
                waiting += self.bases(base)

    def derived(self, name: str) -> list[str]:
        """The classes of the snapshot that derive from this one, however far down."""
        return sorted(self._derived[name])

    def above(self, method: Declaration) -> Declaration | None:
        """The nearest declaration of a base with the method's name and signature."""
        wanted = signature(method)
        for base in self.ancestors(scope(method.name)):
            for candidate in self.named.get(f"{base}::{own_name(method, base)}", ()):
                if signature(candidate) == wanted:
                    return candidate
        return None

    def overrides(self, method: Declaration) -> bool:
        """Whether a virtual function of a base is what the method implements."""
        if method.facts.get("override"):
            return True
        above = self.above(method)
        return above is not None and is_virtual(above)

    @functools.cached_property
    def members(self) -> dict[str, list[Declaration]]:
        """The direct members of every class and enum."""
        members: defaultdict[str, list[Declaration]] = defaultdict(list)
        for name, group in self.named.items():
            if scope(name) in self.scopes:
                members[scope(name)] += group
        return dict(members)

    @functools.cached_property
    def scopes(self) -> set[str]:
        """What has members: classes and enums."""
        enums = {d.name for group in self.named.values() for d in group if d.kind == "enum"}
        return enums | set(self.classes)


def base_name(base: str) -> str:
    """The class of "public virtual c10::X<int>": c10::X."""
    match = NAME_OF_BASE.match(base)
    return match[1].strip() if match else base


def own_name(method: Declaration, owner: str) -> str:
    """What the method is called in another class: a destructor takes its class's name."""
    return f"~{simple(owner)}" if method.kind == "destructor" else simple(method.name)


def signature(method: Declaration) -> tuple[object, ...]:
    """What an overrider must repeat to override; a destructor overrides any other."""
    if method.kind == "destructor":
        return ()
    facts = method.facts
    return (types(method), facts.get("const"), facts.get("ref"))


def types(function: Declaration) -> tuple[str, ...]:
    """The types of the parameters."""
    return tuple(parameter["type"] for parameter in function.facts.get("parameters", ()))


def is_virtual(method: Declaration) -> bool:
    """Whether it is declared virtual, or an override, which is virtual too."""
    return bool(method.facts.get("virtual") or method.facts.get("override"))
