# SPDX-License-Identifier: BSD-3-Clause
"""One cause, one finding: what others say already is left out, or said along with it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from torch_backend_ci.surface.diff.cpp.functions import Sides
from torch_backend_ci.surface.diff.pairing import scope
from torch_backend_ci.surface.model import Finding

# These explain why the size of a class changed.
EXPLAIN_LAYOUT = {"field_removed", "field_renamed", "field_type_changed", "base_removed"}


def told_once(found: list[Finding], sides: Sides) -> list[Finding]:
    """Without what a derived class merely has from a base, where the same finding stands."""
    by_class: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for each in found:
        by_class[each.rule, _member(each.name)].add(scope(each.name))
    kept: dict[str, Finding] = {}
    for each in found:
        owners = by_class[each.rule, _member(each.name)]
        above = {a for side in sides for a in side.ancestors(scope(each.name))}
        if not (owners & above and _can_be_inherited(each)):
            kept.setdefault(each.identity, each)
    return list(kept.values())


def _can_be_inherited(found: Finding) -> bool:
    """A constructor or a data member of the same name in a base is another one."""
    about = found.before or found.after
    return about is not None and about.kind in {"method", "destructor"}


def _member(name: str) -> str:
    last = name.rpartition("::")[2]
    return "~" if last.startswith("~") else last


def layout_explained(found: list[Finding]) -> list[Finding]:
    """A changed size is not a separate finding if another one explains it and mentions it."""
    sizes = {f.name: f for f in found if f.rule == "class_layout_changed"}
    explained = {
        owner for f in found if f.rule in EXPLAIN_LAYOUT and (owner := _class_of(f)) in sizes
    }
    return [
        _mention(f, sizes[_class_of(f)])
        if f.rule in EXPLAIN_LAYOUT and _class_of(f) in explained
        else f
        for f in found
        if f.rule != "class_layout_changed" or f.name not in explained
    ]


def _class_of(found: Finding) -> str:
    return found.name if found.rule == "base_removed" else scope(found.name)


def _mention(found: Finding, layout: Finding) -> Finding:
    return replace(found, message=f"{found.message} {layout.message}")
