# SPDX-License-Identifier: BSD-3-Clause
"""A level is reached by what was verified in a complete run of everything, and by nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import synthetic
from synthetic import needs, record, replaced

from torch_conformance.results import levels
from torch_conformance.results.report import Report
from torch_conformance.spec import capabilities, catalogue


def musts(*tiers: str) -> list[str]:
    """The must-level requirements of tiers."""
    return [
        id for id, r in synthetic.requirements().items() if r.level == "must" and r.tier in tiers
    ]


CORE, INFERENCE, TRAINING = (musts(tier)[0] for tier in ("core", "inference", "training"))


def lacking(content: dict[str, Any], *names: str) -> dict[str, Any]:
    """The report of a backend without these capabilities."""
    for name in names:
        content["run"]["capabilities"][name]["value"] = False
    return content


def reached(content: dict[str, Any]) -> str | None:
    synthetic.document(content)  # The strict reader takes it.
    return assessed(content).name


def assessed(content: dict[str, Any]) -> levels.Verdict:
    """The verdict on a report."""
    return levels.assess(msgspec.convert(content, Report))


def test_every_tier_with_a_must_belongs_to_one_level_in_order() -> None:
    tiers = tuple(tier for tier in catalogue.TIERS if musts(tier))
    assert tuple(t for level in levels.every() for t in level.tiers) == tiers


def test_levels_demand_capabilities_that_exist() -> None:
    assert all(set(level.capabilities) <= set(capabilities.MEANING) for level in levels.every())


def test_no_level_is_reached_for_want_of_must_level_requirements() -> None:
    last = [id for id, r in synthetic.requirements().items() if r.tier == "multi_device"]
    content = synthetic.content()
    for id in last:
        content["requirements"][id]["level"] = "should"
    verdict = assessed(content)
    assert verdict.name == "training"
    assert "without a verified must-level requirement" in str(verdict.next.blockers[-1])  # type: ignore[union-attr]  # there is a next level


def test_a_requirement_of_a_tier_without_a_level_has_a_standing() -> None:
    outside = [id for id, r in synthetic.requirements().items() if r.tier == "compile"]
    standings = assessed(synthetic.content()).standings
    assert {standings[id] for id in outside} == {levels.Standing.VERIFIED}
    assert set(standings) == set(synthetic.requirements())


@pytest.mark.parametrize(
    ("requirement", "expected"), [(CORE, None), (INFERENCE, "core"), (TRAINING, "inference")]
)
@pytest.mark.parametrize(
    "outcome", ["fail", "error", "crash", "timeout", "device_lost", "xpass", "xfail", "flaky"]
)
def test_a_bad_or_waived_check_of_a_must_blocks_its_level_and_those_after(
    requirement: str, expected: str | None, outcome: str
) -> None:
    assert reached(replaced(record(requirement, outcome, number=1))) == expected


@pytest.mark.parametrize("kind", ["unsupported", "flaky", "xfail"])
def test_an_excuse_by_an_expectations_file_blocks(kind: str) -> None:
    excused = {"list": kind, "entry": "*"}
    assert reached(replaced(record(CORE, kind, number=1, excused=excused))) is None


def test_a_must_that_no_check_could_verify_blocks() -> None:
    assert (
        reached(replaced(record(CORE, "unsupported", reason="this torch has no such call"))) is None
    )
    untested = [record(id) for id in synthetic.requirements() if id != CORE]
    assert reached(synthetic.content(untested)) is None


def test_a_check_that_declines_beside_one_that_passes_does_not_block() -> None:
    content = replaced(record(CORE, "unsupported", number=1, reason="not on this torch"))
    assert reached(content) == "compile"


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("unsupported", needs("sparse")),
        ("unsupported", needs("generator", "sparse")),
        ("unsupported", {"kind": "declared_unsupported", "dtype": "float64"}),
        ("unsupported", {"kind": "not_applicable", "requirement": CORE, "since": "2.15"}),
        ("blocked_upstream", "https://github.com/pytorch/pytorch/issues/1; no"),
    ],
)
def test_what_could_not_be_asked_does_not_block_and_is_said(outcome: str, reason: Any) -> None:
    content = lacking(replaced(record(CORE, outcome, reason=reason)), "sparse")
    verdict = assessed(content)
    assert verdict.name == "compile"
    assert CORE in verdict.steps[0].not_asked
    assert str(verdict).endswith("(without sparse)")


def test_a_capability_that_is_there_excuses_nothing() -> None:
    content = replaced(record(CORE, "unsupported", reason=needs("sparse")))
    assert reached(content) is None


def test_a_capability_that_a_level_demands_cannot_be_absent() -> None:
    reason = needs("streams")
    content = lacking(replaced(record(CORE, "unsupported", reason=reason)), "streams")
    verdict = assessed(content)
    assert verdict.name == "inference"
    assert "capability streams is not there" in str(verdict.next.blockers[0])  # type: ignore[union-attr]  # there is a next level


def test_should_level_requirements_are_counted_and_block_nothing() -> None:
    should = next(
        id
        for id, r in synthetic.requirements().items()
        if (r.level, r.tier) == ("should", "core") and r.surface != "claim"
    )
    verdict = assessed(replaced(record(should, "fail")))
    assert verdict.name == "compile"
    assert verdict.steps[0].should_verified == verdict.steps[0].should - 1


@pytest.mark.parametrize("outcome", ["fail", "xfail", "unsupported"])
def test_a_claim_of_the_descriptor_that_the_run_contradicts_blocks(outcome: str) -> None:
    more: dict[str, Any] = {} if outcome == "fail" else {"excused": {"list": outcome, "entry": "*"}}
    verdict = assessed(replaced(record("CLAIM-002", outcome, **more)))
    assert verdict.name is None
    assert [blocker.what for blocker in verdict.steps[0].blockers] == ["CLAIM-002"]


@pytest.mark.parametrize("option", ["--tier=core", "--check=copy/*", "--dtypes=pr", "pytest (-k)"])
def test_a_run_of_something_else_than_everything_has_no_level(option: str) -> None:
    content = synthetic.content()
    content["run"]["selection"]["differs_by"] = [option]
    verdict = assessed(content)
    assert verdict.name is None
    assert str(verdict) == f"not assessed: not the standard selection, but {option}"


def test_an_incomplete_run_and_a_shard_have_no_level() -> None:
    content = replaced(record(CORE, "not_run"))
    assert assessed(content).unassessed == "the run is incomplete"
    shard = synthetic.shards(synthetic.content(), 2)[0]
    assert "merge the shards" in str(assessed(shard))
