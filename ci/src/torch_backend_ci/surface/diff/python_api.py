# SPDX-License-Identifier: BSD-3-Clause
"""The Python API, compared: what changes for callers and for derived classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from torch_backend_ci.surface.diff import parameters
from torch_backend_ci.surface.diff.pairing import pair_renames, same_but_for_name, scope, simple
from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding

Declarations = Mapping[str, list[Declaration]]

_A = {
    "function": "a function",
    "class": "a class",
    "attribute": "an attribute",
    "module": "a module",
}
_BINDINGS = {"staticmethod": "a static method", "classmethod": "a class method"}
# A class always has them, written down or not.
_CONSTRUCTORS = ("__init__", "__new__")
# A fact that a function has or has not, and the rules for gaining and losing it.
_FLAGS = (
    ("abstract", "made_abstract", None),
    ("raises", "implementation_removed", None),
    ("async", "made_async", "no_longer_async"),
)


def findings(before: Declarations, after: Declarations) -> Iterator[Finding]:
    """Every difference between the Python API of two snapshots, by name.

    What is exposed under several names is reported once, under the shortest.
    """
    return iter(_once(_Comparison(before, after).findings()))


def _once(found: Iterable[Finding]) -> list[Finding]:
    """One finding of those that differ only by the name under which a definition is reached."""
    shortest: dict[object, Finding] = {}
    for one in sorted(found, key=lambda f: (f.name.count("."), f.name)):
        places = tuple(d and (d.file, d.line) for d in (one.before, one.after))
        what = one.message.replace(one.name, "")
        shortest.setdefault((one.rule, simple(one.name), places, what), one)
    return list(shortest.values())


@dataclass(frozen=True)
class _Comparison:
    """Two snapshots of the Python API."""

    before: Declarations
    after: Declarations

    def findings(self) -> Iterator[Finding]:
        removed, added = [], []
        classes_before, classes_after = _Classes(self.before), _Classes(self.after)
        for name in sorted(self.before.keys() | self.after.keys()):
            was, now = _only(self.before.get(name)), _only(self.after.get(name))
            if was is not None and now is not None:
                yield from _changed(was, now)
                if was.kind == now.kind == "module":
                    yield from _module(was, now, self.after)
            elif was is not None and _is_missing(was, self.before, classes_after):
                removed.append(was)
            elif now is not None and _is_missing(now, self.after, classes_before):
                added.append(now)
        for was, now in pair_renames(removed, added, _could_be_renamed):
            removed.remove(was)
            added.remove(now)
            yield finding("function_renamed", was, now, now_name=now.name)
        for was in removed:
            if simple(was.name) in _CONSTRUCTORS:
                yield from parameters.findings(was, replace(was, facts={}, text="def __init__()"))
            else:
                yield finding(f"{was.kind}_removed", was, None)
        for now in added:
            if simple(now.name) in _CONSTRUCTORS:
                yield from parameters.findings(replace(now, facts={}, text="def __init__()"), now)
            else:
                yield finding(self._rule_of_added(now), None, now)

    def _rule_of_added(self, now: Declaration) -> str:
        owner = _only(self.after.get(scope(now.name)))
        if owner is not None and owner.kind == "class":
            if now.facts.get("abstract"):
                return "abstract_method_added"
            return "override_added" if now.facts.get("raises") else "member_added"
        if now.kind in ("function", "class") and "._" in now.name:
            return "internal_name_added"
        return f"{now.kind}_added"


def _only(declarations: list[Declaration] | None) -> Declaration | None:
    return declarations[0] if declarations else None


class _Classes:
    """The classes of a snapshot. Bases are known by their last name."""

    def __init__(self, declarations: Declarations) -> None:
        self.declarations = declarations
        self._named: dict[str, list[str]] = defaultdict(list)
        for name, found in declarations.items():
            if found[0].kind == "class":
                self._named[simple(name)].append(name)

    def lack_base(self, was: Declaration, now: Declaration) -> bool:
        """Whether a class has a base that it had not, and that the snapshot does not have."""
        gained = {simple(base) for base in _bases(now)} - {simple(base) for base in _bases(was)}
        return not gained <= self._named.keys()

    def inherit(self, cls: str, member: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a class still has a member from a base."""
        declaration = _only(self.declarations.get(cls))
        if declaration is None or cls in seen:
            return False
        bases = {simple(base) for base in _bases(declaration)}
        return any(
            f"{name}.{member}" in self.declarations or self.inherit(name, member, seen | {cls})
            for base in bases
            for name in self._named.get(base, ())
        )


def _is_missing(one: Declaration, here: Declarations, classes: _Classes) -> bool:
    """There is no trace of it among the `classes`: its class or module is still there, and does not
    inherit it."""
    owner = scope(one.name)
    was, now = _only(here.get(owner)), _only(classes.declarations.get(owner))
    if was is not None and (now is None or now.kind != was.kind):
        return False  # said of the whole class or module
    if now is not None and simple(one.name) in now.facts.get("passed_on", ()):
        return False  # it is defined elsewhere, and can be imported from here all the same
    if was is not None and now is not None and classes.lack_base(was, now):
        return False  # it may have it from there
    return not classes.inherit(owner, simple(one.name))


def _bases(cls: Declaration) -> list[str]:
    """The bases without their type arguments."""
    return [str(base).partition("[")[0] for base in cls.facts.get("bases", ())]


def _could_be_renamed(was: Declaration, now: Declaration) -> bool:
    """The same parameters under another name; without parameters that says nothing."""
    return (
        was.kind == "function" and bool(was.facts.get("parameters")) and same_but_for_name(was, now)
    )


def _changed(was: Declaration, now: Declaration) -> Iterator[Finding]:
    if was.kind != now.kind:
        yield _other_kind(was, now)
        return
    if was.kind == "function":
        yield from _function(was, now)
    elif was.kind == "class":
        yield from _class(was, now)
    elif was.kind == "attribute":
        yield from _attribute(was, now)
    if now.facts.get("deprecated") and not was.facts.get("deprecated"):
        yield finding("deprecated", was, now)


def _other_kind(was: Declaration, now: Declaration) -> Finding:
    if was.kind == "function" and now.facts.get("property"):
        return finding("became_property", was, now)
    if was.facts.get("property") and now.kind == "function":
        return finding("became_method", was, now)
    rule = "class_replaced" if was.kind == "class" else "kind_changed"
    return finding(rule, was, now, was_kind=_A[was.kind], now_kind=_A[now.kind])


def _function(was: Declaration, now: Declaration) -> Iterator[Finding]:
    yield from parameters.findings(was, now)
    bindings = {"was_binding": _binding(was), "now_binding": _binding(now)}
    if bindings["was_binding"] != bindings["now_binding"]:
        yield finding("binding_changed", was, now, **bindings)
    uses = {"was_use": _use(was), "now_use": _use(now)}
    if uses["was_use"] != uses["now_use"]:
        yield finding("context_manager_changed", was, now, **uses)
    for fact, gained, lost in _FLAGS:
        had, has = bool(was.facts.get(fact)), bool(now.facts.get(fact))
        if has and not had:
            yield finding(gained, was, now)
        elif had and not has and lost:
            yield finding(lost, was, now)


def _binding(function: Declaration) -> str:
    decorators = function.facts.get("decorators", ())
    return next((text for name, text in _BINDINGS.items() if name in decorators), "a method")


def _use(function: Declaration) -> str:
    return "with" if "contextmanager" in function.facts.get("decorators", ()) else "without"


def _class(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """Bases are compared by their last name: where they are imported from does not matter."""
    old = [simple(base) for base in _bases(was)]
    new = [simple(base) for base in _bases(now)]
    removed = ", ".join(base for base in old if base not in new)
    added = ", ".join(base for base in new if base not in old)
    if removed and added:
        yield finding("bases_changed", was, now, was_bases=removed, now_bases=added)
    elif removed:
        yield finding("base_removed", was, now, base=removed)
    elif added:
        yield finding("base_added", was, now, base=added)


def _module(was: Declaration, now: Declaration, after: Declarations) -> Iterator[Finding]:
    """What `from module import *` brings, where both have `__all__`; what is gone is reported
    itself."""
    old, new = (set(d.facts.get("exports", ())) for d in (was, now))
    if not old or not new:
        return
    passed_on = now.facts.get("passed_on", ())
    left = {n for n in old - new if f"{now.name}.{n}" in after or n in passed_on}
    if gone := ", ".join(sorted(left)):
        yield finding("exports_removed", was, now, names=gone)
    if come := ", ".join(sorted(new - old)):
        yield finding("exports_added", was, now, names=come)


def _attribute(was: Declaration, now: Declaration) -> Iterator[Finding]:
    value, now_value = was.facts.get("value"), now.facts.get("value")
    if value and now_value and value != now_value:
        yield finding("value_changed", was, now, was_value=value, now_value=now_value)
    if _is_writable(was) and not _is_writable(now):
        yield finding("became_read_only", was, now)


def _is_writable(attribute: Declaration) -> bool:
    return not attribute.facts.get("property") or bool(attribute.facts.get("writable"))
