# SPDX-License-Identifier: BSD-3-Clause
"""Classes as a whole: bases, template, layout, and whether one can still be derived from."""

from __future__ import annotations

from collections.abc import Iterator

from torch_backend_ci.surface.diff.cpp.functions import Sides, template_changed
from torch_backend_ci.surface.diff.cpp.hierarchy import Hierarchy, base_name, is_virtual, own_name
from torch_backend_ci.surface.diff.pairing import simple
from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding


def removed(was: Declaration, before: Hierarchy, after: Hierarchy) -> Finding:
    """A class that is gone; its members are not reported one by one."""
    if "<" in was.name and was.name.partition("<")[0] in after.classes:
        return finding("specialization_removed", was, None)
    return finding("class_removed", was, None, members=len(members(was.name, before)))


def changed(was: Declaration, now: Declaration, sides: Sides) -> Iterator[Finding]:
    """A class that is still there; its members are compared on their own."""
    if was.facts.get("template") != now.facts.get("template"):
        yield template_changed(was, now)
    if now.facts.get("final") and not was.facts.get("final"):
        yield finding("made_final", was, now, what="deriving from it")
    yield from _bases_changed(was, now, sides)
    yield from _layout_changed(was, now, sides)
    yield from _order_changed(was, now)


def made_abstract(was: Declaration, now: Declaration, sides: Sides) -> Iterator[Finding]:
    """A class that cannot be instantiated any more, for a reason that is not in the snapshot."""
    became = now.facts.get("abstract") and not was.facts.get("abstract")
    if became and not _leaves_open(now.name, sides.after):
        yield finding("made_abstract", was, now)


def same_members(was: Declaration, now: Declaration, sides: Sides) -> bool:
    """Whether two classes are the same but for their names, and are not empty."""
    old, new = _contents(was, sides.before), _contents(now, sides.after)
    return old == new and len(old) > 0


def members(name: str, hierarchy: Hierarchy) -> list[Declaration]:
    """The direct members of a class."""
    return hierarchy.members.get(name, [])


def _contents(declared: Declaration, hierarchy: Hierarchy) -> set[tuple[str, str]]:
    """The members with the class's own name taken out."""
    own, last = declared.name, declared.name.rpartition("::")[2]
    return {
        (m.name.removeprefix(own).replace(last, "*"), repr(m.facts).replace(own, "*"))
        for m in members(own, hierarchy)
    }


def _bases_changed(was: Declaration, now: Declaration, sides: Sides) -> Iterator[Finding]:
    old = [was.name, *sides.before.ancestors(was.name)]
    new = [now.name, *sides.after.ancestors(now.name)]
    for base in was.facts.get("bases", ()):
        if simple(base_name(base)) not in map(simple, new):
            yield finding("base_removed", was, now, base=base_name(base))
    for base in now.facts.get("bases", ()):
        if simple(base_name(base)) not in map(simple, old):
            yield finding("base_added", was, now, base=base_name(base))
    for base in new:
        if base not in old:
            yield from _pure_inherited(now.name, base, sides)


def _pure_inherited(name: str, base: str, sides: Sides) -> Iterator[Finding]:
    """What a new base leaves to be implemented, and no class on the way down implements."""
    way = [name, *sides.after.ancestors(name)]
    inherited = [name, *sides.before.ancestors(name)]
    for method in members(base, sides.after):
        known = any(_has(c, method, sides.before) for c in inherited)
        done = any(_has(c, method, sides.after) for c in way[: way.index(base)])
        if method.facts.get("pure") and is_virtual(method) and not known and not done:
            yield finding("pure_virtual_added", None, method, note=f"{name} inherits it now.")


def _leaves_open(name: str, hierarchy: Hierarchy) -> bool:
    """Whether the class has a pure virtual function that nothing on the way down implements."""
    way = [name, *hierarchy.ancestors(name)]
    return any(
        method.facts.get("pure") and not any(_has(c, method, hierarchy) for c in way[:i])
        for i, owner in enumerate(way)
        for method in members(owner, hierarchy)
    )


def _has(owner: str, method: Declaration, hierarchy: Hierarchy) -> bool:
    return f"{owner}::{own_name(method, owner)}" in hierarchy.named


def _layout_changed(was: Declaration, now: Declaration, sides: Sides) -> Iterator[Finding]:
    old, new = was.facts.get("size"), now.facts.get("size")
    if not old or not new or old == new:
        return
    for base in sides.after.ancestors(now.name):  # reported there
        before, after = sides.before.classes.get(base), sides.after.classes.get(base)
        if before and after and _growth(before, after) == new - old:
            return
    derived = [d for d in sides.after.derived(now.name) if d in sides.before.classes]
    note = f"So do objects of {', '.join(derived)}." if derived else ""
    yield finding("class_layout_changed", was, now, was_size=old, now_size=new, note=note)


def _order_changed(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """Data members that stand in another order: they are initialized and laid out in it."""
    old, new = was.facts.get("fields", ()), now.facts.get("fields", ())
    kept = [[name for name in one if name in other] for one, other in ((old, new), (new, old))]
    if kept[0] != kept[1]:
        words = {"was_order": ", ".join(kept[0]), "now_order": ", ".join(kept[1])}
        yield finding("members_reordered", was, now, **words)


def _growth(was: Declaration, now: Declaration) -> int:
    return int(now.facts.get("size", 0)) - int(was.facts.get("size", 0))
