# SPDX-License-Identifier: BSD-3-Clause
"""C++ declarations, compared.

Everything is paired by name first; what is left over on both sides may be a new name of the same
thing. A class that goes or comes speaks for its members, a base class for those who inherit from
it: a change is reported once, where it was made.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from torch_backend_ci.surface.diff.cpp import classes, enums, functions, once, values
from torch_backend_ci.surface.diff.cpp.functions import Sides
from torch_backend_ci.surface.diff.cpp.hierarchy import Hierarchy, types
from torch_backend_ci.surface.diff.pairing import (
    VERY_SIMILAR,
    Pair,
    pair_overloads,
    pair_renames,
    same_but_for_name,
    scope,
    similarity,
    simple,
)
from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding

Named = Mapping[str, list[Declaration]]

# What else removal and addition are called, where a rule is not named after the kind.
SAID_AS = {"variable": "constant", "enumerator": "constant"}

CONSTANTS = {"field", "variable"}

CHANGED: Mapping[str, Callable[[Declaration, Declaration], Iterator[Finding]]] = {
    "field": values.field,
    "variable": values.constant,
    "alias": values.alias,
    "macro": values.macro,
}

ACCESS = ["public", "protected", "private"]


def findings(before: Named, after: Named) -> Iterator[Finding]:
    """Every difference between the C++ declarations of two snapshots, by name."""
    return iter(_Comparison(before, after).findings())


class _Comparison:
    """Two sets of declarations, and what is known of them along the way."""

    def __init__(self, before: Named, after: Named) -> None:
        self.sides = Sides(Hierarchy(before), Hierarchy(after))
        self.before, self.after = before, after
        self.removed: list[Declaration] = []
        self.added: list[Declaration] = []
        self.changed: list[tuple[Declaration, Declaration]] = []
        for name in sorted(before.keys() | after.keys()):
            for was, now in _pairs(before.get(name, []), after.get(name, [])):
                self._sort_in(was, now)

    def findings(self) -> list[Finding]:
        found = [*self._kinds(), *self._renames(), *self._changes(), *self._leftovers()]
        return once.layout_explained(once.told_once(found, self.sides))

    def _sort_in(self, was: Declaration | None, now: Declaration | None) -> None:
        if was and now:
            if was.facts != now.facts or was.kind != now.kind:
                self.changed.append((was, now))
        elif was:
            self.removed.append(was)
        elif now:
            self.added.append(now)

    def _kinds(self) -> Iterator[Finding]:
        """What is another kind of thing now: it takes its members along."""
        kept = []
        for was, now in self.changed:
            if _family(was) == _family(now):
                kept.append((was, now))
                continue
            yield _kind_changed(was, now)
            if (was.kind, now.kind) == ("class", "alias"):
                yield from self._members_of_alias(was.name, str(now.facts.get("target")))
            self.removed = _outside(self.removed, {was.name})
            self.added = _outside(self.added, {was.name})
        self.changed = kept

    def _members_of_alias(self, name: str, target: str) -> Iterator[Finding]:
        """What a class lost by becoming another name of a class of the snapshot."""
        if target not in self.sides.after.classes:
            return
        moved: defaultdict[str, list[Declaration]] = defaultdict(list)
        for group in _below(self.before, name).values():
            for member in group:
                as_target = _rehomed(member, name, target)
                moved[as_target.name].append(as_target)
        lost = _Comparison(moved, _below(self.after, target)).findings()
        yield from (found for found in lost if found.before)

    def _renames(self) -> Iterator[Finding]:
        """New names of old things, those that have members first."""
        for was, now in self._renamed({"class"}, self._same_class):
            yield finding("class_renamed", was, now, new_name=now.name)
        for was, now in self._renamed({"enum"}, self._same_class):
            yield finding("enum_renamed", was, now, new_name=now.name)
        self._drop_members()
        others = {"alias", "field", "variable", "macro", *functions.KINDS}
        for was, now in self._renamed(others, same_but_for_name):
            if was.kind in functions.KINDS:
                yield functions.renamed(was, now)
            else:
                said = SAID_AS.get(was.kind, was.kind)
                yield finding(f"{said}_renamed", was, now, new_name=now.name)

    def _renamed(
        self, kinds: set[str], same: Callable[[Declaration, Declaration], bool]
    ) -> list[tuple[Declaration, Declaration]]:
        gone = [d for d in self.removed if d.kind in kinds and d.name not in self.after]
        come = [d for d in self.added if d.kind in kinds and d.name not in self.before]
        pairs = [p for p in pair_renames(gone, come, same) if not self._inherited(*p)]
        old, new = {id(was) for was, _ in pairs}, {id(now) for _, now in pairs}
        if kinds & {"class", "enum"}:
            self.removed = _outside(self.removed, {was.name for was, _ in pairs})
            self.added = _outside(self.added, {now.name for _, now in pairs})
        self.removed = [d for d in self.removed if id(d) not in old]
        self.added = [d for d in self.added if id(d) not in new]
        return pairs

    def _inherited(self, was: Declaration, now: Declaration) -> bool:
        """Whether the old name is still there, in a base; then nothing was renamed."""
        if was.kind not in functions.KINDS:
            return False
        return bool(self.sides.after.above(was) or self.sides.before.above(now))

    def _same_class(self, was: Declaration, now: Declaration) -> bool:
        return same_but_for_name(was, now) and classes.same_members(was, now, self.sides)

    def _drop_members(self) -> None:
        """A class or enum that goes or comes speaks for what is in it."""
        kinds = {"class", "enum"}
        self.removed = _outside(self.removed, {d.name for d in self.removed if d.kind in kinds})
        self.added = _outside(self.added, {d.name for d in self.added if d.kind in kinds})

    def _changes(self) -> Iterator[Finding]:
        grown = self._enums()
        for enum in grown:
            yield from enums.changed(enum)
        for was, now in self.changed:
            yield from _whatever_the_kind(was, now)
            if was.kind == "class":
                yield from classes.changed(was, now, self.sides)
                yield from classes.made_abstract(was, now, self.sides)
            elif (
                was.kind in functions.KINDS and types(was) != types(now) and self._may_be_there(was)
            ):
                yield from functions.added(now, self.sides)
            elif was.kind in functions.KINDS:
                yield from functions.changed(was, now, self.sides)
            elif was.kind == "enumerator" and not self._of_enum(was):
                yield from values.constant(was, now)
            elif was.kind in CONSTANTS and self._follows(was, now, grown):
                continue
            elif was.kind in CHANGED:
                yield from CHANGED[was.kind](was, now)

    def _enums(self) -> list[enums.Enum]:
        """The enums of both snapshots that differ, or whose values do."""
        found = []
        for name, group in self.before.items():
            for was in group:
                now = next((d for d in self.after.get(name, ()) if d.kind == "enum"), None)
                if was.kind == "enum" and now:
                    values = (self._values(side, name) for side in self.sides)
                    found.append(enums.Enum(was, now, *values))
        return found

    @staticmethod
    def _values(side: Hierarchy, name: str) -> dict[str, Declaration]:
        members = side.members.get(name, ())
        return {d.name.rpartition("::")[2]: d for d in members if d.kind == "enumerator"}

    @staticmethod
    def _follows(was: Declaration, now: Declaration, grown: list[enums.Enum]) -> bool:
        """Whether a constant differs by nothing but the enumerator that it was made from."""
        old, new = ({**d.facts, "value": None} for d in (was, now))
        before, after = (d.facts.get("value") for d in (was, now))
        return old == new and bool(enums.follows(before, after, grown))

    def _leftovers(self) -> Iterator[Finding]:
        for was in self.removed:
            if self._may_be_there(was):
                continue
            if was.kind == "class":
                yield classes.removed(was, self.sides.before, self.sides.after)
            elif was.kind in functions.KINDS:
                for found in functions.removed(was, self.sides):
                    yield self._beside(found) if found.after is None else found
            elif not self._of_enum(was):
                yield finding(f"{SAID_AS.get(was.kind, was.kind)}_removed", was, None)
        for now in self.added:
            if now.kind in functions.KINDS:
                yield from functions.added(now, self.sides)
            elif not self._of_enum(now):
                yield finding(f"{SAID_AS.get(now.kind, now.kind)}_added", None, now)

    def _may_be_there(self, was: Declaration) -> bool:
        """Whether the class has a base now of which nothing is known (std::string_view); or what
        went is a hash of an enumeration, which the standard library has for each."""
        if was.name.startswith("std::hash<"):
            return was.name.removeprefix("std::hash<").rstrip(">") in self.sides.after.scopes
        owner = scope(was.name)
        if owner not in self.sides.before.classes or owner not in self.sides.after.classes:
            return False
        gained = set(self.sides.after.ancestors(owner)) - set(self.sides.before.ancestors(owner))
        return not gained <= self.sides.after.classes.keys()

    def _beside(self, found: Finding) -> Finding:
        """Where a function went, its finding also names the new one that looks most like it."""
        likely = [
            (similarity(simple(found.name), simple(now.name)), now.name)
            for now in self.added
            if scope(now.name) == scope(found.name) and now.kind in functions.KINDS
        ]
        ratio, name = max(likely, default=(0.0, ""))
        if ratio < VERY_SIMILAR or name == found.name:
            return found
        return replace(found, message=f"{found.message} {name} is new beside it.")

    def _of_enum(self, declaration: Declaration) -> bool:
        """Whether it is a value of an enum that has a name; others are as good as constants."""
        owner = scope(declaration.name)
        return declaration.kind == "enumerator" and all(
            any(d.kind == "enum" for d in side.named.get(owner, ())) for side in self.sides
        )


def _pairs(was: list[Declaration], now: list[Declaration]) -> list[Pair]:
    if was == now:
        return []
    was, now = sorted(was, key=_in_order), sorted(now, key=_in_order)
    return pair_overloads(was, now, _likeness)


def _likeness(was: Declaration, now: Declaration) -> float:
    if was.kind in functions.KINDS and now.kind in functions.KINDS:
        return functions.likeness(was, now)
    return 1 + (was.kind == now.kind)


def _in_order(declaration: Declaration) -> str:
    return json.dumps([declaration.kind, declaration.facts], sort_keys=True, default=list)


def _family(declaration: Declaration) -> str:
    return "function" if declaration.kind in functions.KINDS else declaration.kind


def _kind_changed(was: Declaration, now: Declaration) -> Finding:
    if (was.kind, now.kind) == ("class", "alias"):
        return finding("class_became_alias", was, now, target=now.facts.get("target"))
    if (was.kind, now.kind) == ("alias", "class"):
        return finding("alias_became_class", was, now, target=was.facts.get("target"))
    old, new = (SAID_AS.get(d.kind, d.kind) for d in (was, now))
    return finding("kind_changed", was, now, was_kind=_a(old), now_kind=_a(new))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _outside(declarations: list[Declaration], scopes: set[str]) -> list[Declaration]:
    """Those that do not stand in one of the scopes, however deep."""

    def inside(name: str) -> bool:
        while name := scope(name):
            if name in scopes:
                return True
        return False

    return [d for d in declarations if not inside(d.name)]


def _below(named: Named, owner: str) -> dict[str, list[Declaration]]:
    return {name: group for name, group in named.items() if name.startswith(f"{owner}::")}


def _rehomed(member: Declaration, old: str, new: str) -> Declaration:
    """The member as the other class would have it: it may take and return its own class."""
    own, other = (name.rpartition("::")[2] for name in (old, new))
    name = new + member.name.removeprefix(old)
    if member.kind in {"constructor", "destructor"}:
        name = name.removesuffix(own) + other
    facts = json.loads(json.dumps(dict(member.facts)).replace(old, new))
    return replace(member, name=name, facts=facts)


def _whatever_the_kind(was: Declaration, now: Declaration) -> Iterator[Finding]:
    yield from _requires_changed(was, now)
    if not was.facts.get("deleted"):
        yield from _access_changed(was, now)
    old, new = was.facts.get("deprecated"), now.facts.get("deprecated")
    if new and not old:
        yield finding("deprecated", was, now, reason=f" ({new})" if isinstance(new, str) else "")
    elif old and not new:
        yield finding("no_longer_deprecated", was, now)


def _access_changed(was: Declaration, now: Declaration) -> Iterator[Finding]:
    old, new = (str(d.facts.get("access", "public")) for d in (was, now))
    if old != new:
        rule = "access_narrowed" if ACCESS.index(new) > ACCESS.index(old) else "access_widened"
        yield finding(rule, was, now, was_access=old, now_access=new)


def _requires_changed(was: Declaration, now: Declaration) -> Iterator[Finding]:
    old, new = was.facts.get("requires"), now.facts.get("requires")
    if new and not old:
        yield finding("requires_changed", was, now, profile=" and ".join(new))
    elif old and not new:
        yield finding("requires_dropped", was, now, profile=" and ".join(old))
