# SPDX-License-Identifier: BSD-3-Clause
"""Reasons are data: no text decides anything, and each kind is written and read as it is."""

from __future__ import annotations

import typing
from typing import Any

import msgspec
import pytest
import synthetic
from synthetic import needs, record

from torch_conformance.bringup import todo
from torch_conformance.judging import verification
from torch_conformance.results import comparison, levels, reader
from torch_conformance.results.report import Report
from torch_conformance.spec import reason
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.reason import Excused, Reason

KINDS: tuple[type[Any], ...] = typing.get_args(Reason)
EXAMPLES: dict[type[Any], Reason] = {
    type(example): example
    for example in (
        reason.MissingCapability(names=("events", "streams")),
        reason.NotApplicable(requirement="COPY-001", since="2.14"),
        reason.DeclaredUnsupported(dtype="float64"),
        reason.Blocked(issue="https://example.org/1", message="RuntimeError: no"),
        Excused(
            list="flaky",
            entry="copy/*",
            text="races",
            link="https://example.org/2",
            observed=Outcome.FAIL,
            message="1 of 4 elements differ",
        ),
        reason.NoReference(text="RuntimeError: no Bool"),
        reason.Stated(text="needs /proc"),
        reason.Environment(text="no licence"),
        reason.DeviceGone(text="it does not load any more"),
        reason.CannotLoadBackend(text="no such module"),
    )
}


def test_every_kind_of_reason_has_an_example() -> None:
    assert set(EXAMPLES) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reason_is_read_as_it_was_written(kind: type[Any]) -> None:
    example = EXAMPLES[kind]
    assert msgspec.json.decode(msgspec.json.encode(example), type=Reason) == example


@pytest.mark.parametrize("kind", KINDS)
def test_a_reason_has_a_text_for_people(kind: type[Any]) -> None:
    example = EXAMPLES[kind]
    assert str(example) and example.heading


def run(capability: bool) -> Report:
    """A report with a check for every kind of reason, and one that fails."""
    records = [
        record("COPY-001", "unsupported", reason=needs("sparse")),
        record("COPY-002", "unsupported", reason=needs("events", "streams")),
        record(
            "COPY-003",
            "unsupported",
            reason={"kind": "not_applicable", "requirement": "COPY-003", "since": "9"},
        ),
        record(
            "COPY-005",
            "unsupported",
            reason={"kind": "declared_unsupported", "dtype": "float64"},
        ),
        record("EVENT-001", "blocked_upstream", reason="https://example.org/1; no"),
        record("EVENT-002", "xfail", reason="known"),
        record("EVENT-003", "unsupported", reason="the check says so"),
        record("STREAM-001", "fail", message="Could not run 'aten::abs.out' with"),
        record("SMOKE-001", "fail", blames="harness", message="harness wrong: 1 is 2"),
    ]
    made = synthetic.replaced(*records)
    for name in ("sparse", "events"):
        made["run"]["capabilities"][name]["value"] = capability
    return synthetic.document(made).report


def decisions() -> list[Any]:
    """All that is decided by reasons, without a text that people read."""
    found: list[Any] = []
    before, after = run(True), run(False)
    for report in (before, after):
        verdict = levels.assess(report)
        found.append([verdict.name, [step.standings for step in verdict.steps]])
        found.append([(step, [r.id for r in results]) for step, results in todo.steps(report)])
        found.append([line for line in todo.lines(report, {}) if line.startswith("first")])
        found.append([r.id for r in report.checks if levels.claims_absence(r)])
        found.append([r.id for r in report.checks if verification._is_absent(r, {"sparse"})])
    old, new = (
        comparison.side_of(reader.Document("a", report, "0" * 64)) for report in (before, after)
    )
    made = comparison.compare(old, new, frozenset({"selection"}))
    changes = (made.regressions, made.improvements, made.withdrawn, made.changed)
    found.append([[change.id for change in changed] for changed in changes])
    return found


def test_rewording_a_reason_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = decisions()
    for kind in KINDS:
        monkeypatch.setattr(kind, "__str__", lambda self: "x")
        monkeypatch.setattr(kind, "heading", property(lambda self: "x"))
    assert str(EXAMPLES[reason.MissingCapability]) == "x"
    assert decisions() == expected
