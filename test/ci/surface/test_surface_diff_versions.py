# SPDX-License-Identifier: BSD-3-Clause
"""Real versions of PyTorch, by the committed snapshots: what is known to have changed is found."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from torch_backend_ci import cli
from torch_backend_ci.errors import Exit
from torch_backend_ci.surface import snapshot_file
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity, Snapshot
from torch_backend_ci.surface.verbs.diff import COMMITTED

DOCUMENTS = Path(__file__).resolve().parents[3] / "docs/surface"
PAIRS = [("2.9.1", "2.11.0"), ("2.11.0", "2.13.0"), ("2.13.0", "2.15.0")]


@functools.cache
def snapshot_of(version: str) -> Snapshot:
    return snapshot_file.read(COMMITTED / f"{version}.json.gz")


@functools.cache
def findings(before: str, after: str) -> list[Finding]:
    return diff(snapshot_of(before), snapshot_of(after))


def rules(before: str, after: str, name: str) -> list[str]:
    return [f.rule for f in findings(before, after) if f.name == name]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_the_documented_report_is_the_one_of_the_committed_snapshots(
    before: str, after: str, tmp_path: Path
) -> None:
    file = tmp_path / "report.md"
    words = ["surface", "diff", before, after, "--format", "markdown", "--whole"]
    words += ["-o", str(file)]
    assert cli.main(words) == Exit.OK
    committed = DOCUMENTS / "examples" / f"diff-{before}-{after}.md"
    again = f"torch-backend-ci {' '.join(words[:-1])} docs/surface/examples/{committed.name}"
    assert file.read_text() == committed.read_text(), f"to write it anew: {again}"


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_each_break_that_a_witness_proved_is_still_reported(before: str, after: str) -> None:
    text = (DOCUMENTS / "examples/witnesses.md").read_text()
    chapter = text.partition(f"## {before} to {after}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(.+?)` \| (\w+) \| (.+?) \|", chapter, re.MULTILINE)
    reported = {
        (f.name, f.rule, "proved")
        for f in findings(before, after)
        if f.severity is Severity.COMPILE_BREAK and f.domain in (Domain.CPP, Domain.HEADER)
    }
    assert rows and set(rows) <= reported


def test_the_documented_counts_are_those_of_the_committed_snapshots() -> None:
    text = (DOCUMENTS / "diff.md").read_text()
    for title, count in {
        "compile breaks in C++ and headers": _breaks(Domain.CPP, Domain.HEADER),
        "compile breaks in Python": _breaks(Domain.PYTHON),
        "operators removed, with those generated from them": _of(
            "operator_removed", "generated_operator_removed"
        ),
        "virtual functions new or newly virtual": _of("virtual_added", "made_virtual"),
        "virtual functions with another signature": _of("virtual_signature_changed"),
        "virtual functions removed or made final": _of("virtual_removed", "made_final"),
        "operators added": _of("operator_added", "operator_added_composite"),
        "reads of the device module that are new": _reads(),
    }.items():
        assert f"| {title} | {' | '.join(map(str, count))} |" in text


def _breaks(*domains: Domain) -> list[int]:
    return [
        sum(f.severity is Severity.COMPILE_BREAK and f.domain in domains for f in findings(*pair))
        for pair in PAIRS
    ]


def _reads() -> list[int]:
    return [sum(f.domain is Domain.DEVICE_MODULE for f in findings(*pair)) for pair in PAIRS]


def _of(*names: str) -> list[int]:
    counted = [Counter(f.rule for f in findings(*pair)) for pair in PAIRS]
    return [sum(count[name] for name in names) for count in counted]


def test_what_went_with_the_named_tensors_is_found() -> None:
    between = ("2.11.0", "2.13.0")
    assert rules(*between, "c10::DispatchKey::Named") == ["enumerator_removed"]
    assert rules(*between, "c10::NamedTensorMetaInterface") == ["class_removed"]
    assert set(rules(*between, "c10::TensorImpl::named_tensor_meta")) == {"method_removed"}
    assert Counter(f.rule for f in findings(*between))["operator_removed"] == 108


def test_real_changes_of_virtual_functions_and_new_names_are_found() -> None:
    between = ("2.11.0", "2.13.0")
    assert rules(*between, "c10d::ProcessGroup::splitGroup") == ["virtual_signature_changed"]
    cow = "c10::StorageImpl::set_data_ptr_no_materialize_cow"
    assert rules(*between, cow) == ["method_renamed"]
    old = next(f for f in findings(*between) if f.name.endswith("cow::materialize_cow_storage"))
    assert old.message.endswith("c10::impl::cow::materialize_cow is new beside it.")
    assert "deprecated" in rules(*between, "c10d::ProcessGroup::_allgather_base")


def test_a_type_that_was_added_moves_the_count_of_types_and_c20_is_asked_for() -> None:
    between = ("2.13.0", "2.15.0")
    added = "c10::ScalarType::BComplex32"
    assert rules(*between, added) == ["enumerator_added_moves_count"]
    assert rules(*between, "C++ standard") == ["language_raised"]
    assert rules(*between, "at::Generator::operator!=") == ["signature_compatible"]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_no_header_stops_compiling_alone_and_none_is_taken_for_it(before: str, after: str) -> None:
    assert not [f for f in findings(before, after) if f.rule == "header_not_alone"]


@pytest.mark.parametrize("version", ["2.9.1", "2.15.0"])
def test_a_version_does_not_differ_from_itself(version: str) -> None:
    assert diff(snapshot_of(version), snapshot_of(version)) == []


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_every_difference_is_told_once_and_in_full(before: str, after: str) -> None:
    found = findings(before, after)
    identities = Counter(f.identity for f in found)
    assert [f.name for f in found if identities[f.identity] > 1] == []
    assert all(f.message and f.surface and f.concerns for f in found)


# Every real function of a sample, changed by hand.
CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "returns something else": lambda facts: {**facts, "returns": "c10::Unheard"},
    "takes one thing more": lambda facts: {
        **facts,
        "parameters": [*facts.get("parameters", ()), {"type": "c10::Unheard"}],
    },
    "is only there in one profile": lambda facts: {**facts, "requires": ["USE_UNHEARD"]},
}


@functools.cache
def sample() -> list[tuple[Declaration, list[Declaration]]]:
    """Functions that can be called or overridden, each with what stands in the same scope."""
    scopes: defaultdict[str, list[Declaration]] = defaultdict(list)
    for declaration in snapshot_of("2.13.0").declarations:
        if declaration.domain is Domain.CPP:
            scopes[declaration.name.rpartition("::")[0]].append(declaration)
    functions = [
        (declaration, together)
        for together in scopes.values()
        for declaration in together
        if declaration.kind in ("function", "method") and not declaration.facts.get("deleted")
    ]
    return Random(0).sample(functions, 200)


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_of_a_real_function_is_missed_and_none_is_told_twice(change: str) -> None:
    for declaration, together in sample():
        changed = replace(declaration, facts=CHANGES[change](dict(declaration.facts)))
        now = [changed if d is declaration else d for d in together]
        (found,) = _between(together, now)
        assert found.name == declaration.name
        breaks = found.severity in (Severity.COMPILE_BREAK, Severity.REBUILD)
        assert breaks or found.rule == "template_compatible"  # made in the backend itself


def test_a_real_function_that_goes_breaks_who_used_it_and_one_that_comes_nobody() -> None:
    for declaration, together in sample():
        left = [d for d in together if d is not declaration]
        gone = _between(together, left)
        assert [f.name for f in gone] in ([declaration.name], [])
        assert gone or declaration.facts.get("override") or "operator" in declaration.name
        assert all(
            f.severity is not Severity.COMPILE_BREAK or f.rule == "pure_virtual_added"
            for f in _between(left, together)
        )


def _between(was: list[Declaration], now: list[Declaration]) -> list[Finding]:
    torch = snapshot_of("2.13.0").torch
    sides = (Snapshot(torch, frozenset({Domain.CPP}), tuple(side)) for side in (was, now))
    return diff(*sides)
