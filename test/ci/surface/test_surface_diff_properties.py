# SPDX-License-Identifier: BSD-3-Clause
"""What holds of the comparison of any two snapshots."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from declarations import (
    class_,
    constructor,
    cpp,
    destructor,
    enum,
    function,
    header,
    method,
    snapshot,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.model import Declaration, Snapshot

NAMES = ["allocate", "allocate_on", "f", "g", "record"]
CLASSES = ["c10::A", "c10::B", "c10::Base"]
TYPES = st.sampled_from(["int", "long", "c10::A", "const c10::A &", "bool =", "int ="])
FLAGS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"const": True}, {"virtual": True}, {"virtual": True, "pure": True}, {"static": True}]
)
MORE: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"noexcept": True}, {"deprecated": "old"}, {"access": "protected"}, {"requires": ["X"]}]
)


@st.composite
def declarations(draw: st.DrawFn) -> list[Declaration]:
    """A few classes and what else a header has, no two alike."""
    found: list[Declaration] = []
    for name in draw(st.lists(st.sampled_from(CLASSES), unique=True)):
        bases = draw(st.sampled_from([(), ("c10::Base",)])) if name != "c10::Base" else ()
        found.append(class_(name, *bases, size=draw(st.sampled_from([8, 16]))))
        for member in draw(st.lists(st.sampled_from(NAMES), max_size=3)):
            found.append(method(f"{name}::{member}", *draw(_types()), **draw(FLAGS), **draw(MORE)))
        if draw(st.booleans()):
            found.append(constructor(name, *draw(_types())))
        if draw(st.booleans()):
            found.append(destructor(name, virtual=draw(st.booleans())))
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
        found.append(function(f"c10::{name}", *draw(_types()), returns=draw(TYPES), **draw(MORE)))
    if values := draw(st.lists(st.sampled_from(["X", "Y", "Z", "NumOptions"]), unique=True)):
        found += enum("c10::E", *values)
    if draw(st.booleans()):
        found.append(cpp("variable", "c10::k", type="const int", value=draw(st.integers(0, 3))))
    if draw(st.booleans()):
        found.append(cpp("macro", "REGISTER", body=draw(st.sampled_from(["f", "g"]))))
    if draw(st.booleans()):
        found.append(header("c10/x.h", alone=draw(st.booleans())))
    return _once(found)


def _types() -> st.SearchStrategy[list[str]]:
    """Parameters: once one has a default, the rest have."""
    return st.lists(TYPES, max_size=2).map(lambda types: sorted(types, key=lambda t: "=" in t))


def _once(found: list[Declaration]) -> list[Declaration]:
    """Without what a compiler would call a redefinition."""
    seen = {(d.kind, d.name, repr(d.facts.get("parameters"))): d for d in found}
    return list(seen.values())


def _snapshots() -> st.SearchStrategy[Snapshot]:
    return declarations().map(lambda found: snapshot(*found))


@settings(max_examples=50, deadline=None)
@given(_snapshots())
def test_a_snapshot_does_not_differ_from_itself(one: Snapshot) -> None:
    assert diff(one, one) == []


@settings(max_examples=50, deadline=None)
@given(_snapshots(), st.integers(1, 10_000))
def test_what_is_written_for_people_is_not_compared(one: Snapshot, line: int) -> None:
    moved = [replace(d, file="elsewhere.h", line=line, text="/* */") for d in one.declarations]
    assert diff(one, replace(one, declarations=tuple(moved))) == []


@settings(max_examples=50, deadline=None)
@given(_snapshots(), _snapshots(), st.randoms())
def test_the_order_of_declarations_makes_no_difference(
    one: Snapshot, other: Snapshot, random: Random
) -> None:
    shuffled = [list(s.declarations) for s in (one, other)]
    for declared in shuffled:
        random.shuffle(declared)
    mixed = (replace(s, declarations=tuple(d)) for s, d in zip((one, other), shuffled, strict=True))
    assert diff(*mixed) == diff(one, other)


@settings(max_examples=50, deadline=None)
@given(_snapshots(), _snapshots())
def test_every_difference_can_be_shown_and_is_told_once(one: Snapshot, other: Snapshot) -> None:
    found = diff(one, other)
    assert all(f.message and "{" not in f.message for f in found)
    assert max(Counter(f.identity for f in found).values(), default=1) == 1
    assert [f.severity.rank for f in found] == sorted(f.severity.rank for f in found)


@settings(max_examples=50, deadline=None)
@given(_snapshots(), _snapshots())
def test_classes_and_enums_that_come_one_way_go_the_other_way(
    one: Snapshot, other: Snapshot
) -> None:
    there, back = diff(one, other), diff(other, one)
    for kind in ("class", "enum", "header", "macro"):
        come = {f.name for f in there if f.rule == f"{kind}_added"}
        gone = {f.name for f in back if f.rule == f"{kind}_removed"}
        assert come == gone


@settings(max_examples=50, deadline=None)
@given(_snapshots())
def test_everything_there_is_comes_from_an_empty_snapshot_without_a_break(one: Snapshot) -> None:
    assert all(f.severity.rank > 3 for f in diff(snapshot(), one))
