# SPDX-License-Identifier: BSD-3-Clause
"""The gate says what became of each check, and ends as the policy says."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from gating import LANE, Gate
from synthetic import record, typed

from torch_backend_ci.errors import Exit
from torch_backend_ci.gate.classes import classify
from torch_backend_ci.gate.verdict import Class, Means, Outcome
from torch_conformance.results import reader
from torch_conformance.spec.outcome import RANKS
from torch_conformance.spec.outcome import Outcome as Ended


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def test_a_run_like_the_one_before_is_fine(gate: Gate) -> None:
    gate.before()
    gate.after(shards=2)
    status, made = gate.run("--head-sha", "a" * 40)
    assert (status, made.outcome, made.head_sha) == (Exit.OK, Outcome.OK, "a" * 40)
    assert not made.checks
    (lane,) = made.lanes
    assert lane.classes == {"unchanged": 4}
    assert lane.counts == {"pass": 4}
    assert [(s.shard, s.checks, s.duration_s) for s in lane.shards] == [
        ("1/2", 2, 1.5),
        ("2/2", 2, 1.5),
    ]


@pytest.mark.parametrize(
    ("before", "after", "kind", "status"),
    [
        ("pass", "fail", Class.NEW_FAILURE, Exit.FINDINGS),
        ("pass", "crash", Class.NEW_FAILURE, Exit.FINDINGS),
        ("fail", "crash", Class.NEW_FAILURE, Exit.FINDINGS),
        ("xfail", "fail", Class.NEW_FAILURE, Exit.FINDINGS),
        ("fail", "fail", Class.BROKEN_TRUNK, Exit.OK),
        ("crash", "fail", Class.BROKEN_TRUNK, Exit.OK),
        ("fail", "pass", Class.FIXED, Exit.OK),
        ("xfail", "pass", Class.FIXED, Exit.OK),
        ("xfail", "xpass", Class.UNEXPECTED_PASS, Exit.FINDINGS),
        ("xpass", "xpass", Class.BROKEN_TRUNK, Exit.OK),
        ("pass", "flaky", Class.FLAKY, Exit.OK),
        ("pass", "xfail", Class.EXCUSED, Exit.OK),
        ("fail", "unsupported", Class.EXCUSED, Exit.OK),
        ("pass", "unsupported", Class.WITHDRAWN, Exit.FINDINGS),
        ("pass", "blocked_upstream", Class.BLOCKED_UPSTREAM, Exit.OK),
    ],
)
def test_every_class_is_told_and_means_what_the_policy_says(
    gate: Gate, before: str, after: str, kind: Class, status: int
) -> None:
    gate.before(record("COPY-001", before))
    gate.after(record("COPY-001", after))
    ended, made = gate.run()
    (check,) = made.checks
    assert (check.kind, check.before, check.after) == (kind, before, after)
    assert ended == status
    assert check.requirements == ("COPY-001",)


def test_a_check_that_is_new_is_noted_and_one_that_is_new_and_bad_is_a_failure(gate: Gate) -> None:
    gate.before()
    gate.after(record("COPY-002"), record("COPY-003", "fail"))
    status, made = gate.run()
    assert status == Exit.FINDINGS
    assert [(c.kind, c.before) for c in made.checks] == [
        (Class.NEW_FAILURE, None),
        (Class.NEW, None),
    ]


def test_a_check_that_newly_runs_on_the_cpu_has_regressed(gate: Gate) -> None:
    gate.before(record("COPY-001", evidence="native"))
    gate.after(record("COPY-001", evidence="fallback", fallbacks=["aten::add"]))
    assert gate.judged().kind is Class.TO_FALLBACK


@pytest.mark.parametrize(
    ("run", "means", "status"),
    [
        ({}, Means.INFRASTRUCTURE, Exit.UNUSABLE),
        ({"source": {"commit": None, "digest": "0" * 64}}, Means.REGRESSION, Exit.FINDINGS),
        ({"torch": {"version": "2.14.0", "git": None}}, Means.NOTE, Exit.OK),
        (
            {
                "torch": {"version": "2.14.0", "git": None},
                "source": {"commit": None, "digest": "0" * 64},
            },
            Means.REGRESSION,
            Exit.FINDINGS,
        ),
    ],
    ids=["nothing", "suite", "torch", "both"],
)
def test_a_missing_check_means_more_the_less_there_is_a_reason_for_it(
    gate: Gate, run: dict[str, Any], means: Means, status: int
) -> None:
    gate.before(record("COPY-002"))
    gate.after(**run)
    ended, made = gate.run()
    (check,) = made.checks
    assert (check.kind, check.means, check.after) == (Class.MISSING, means, None)
    assert ended == status


def test_a_retired_check_may_be_gone_and_an_entry_without_use_is_told(gate: Gate) -> None:
    entries = "retired: [{id: copy/copy_002*, reason: merged}, {id: view/gone, reason: old}]\n"
    gate.policy.write_text(gate.policy.read_text() + entries)
    gate.before(record("COPY-002"))
    gate.after()
    status, made = gate.run()
    assert status == Exit.OK
    assert made.checks[0].means is Means.NOTE
    assert "view/gone is not a check any more" in made.notes[0]


def test_a_retired_check_may_not_fail(gate: Gate) -> None:
    entry = "retired: [{id: copy/*, reason: merged}]\n"
    gate.policy.write_text(gate.policy.read_text() + entry)
    gate.before()
    gate.after(record("COPY-001", "fail"))
    assert gate.judged().means is Means.REGRESSION


def test_lanes_that_are_not_required_decide_nothing(gate: Gate) -> None:
    gate.before()
    gate.after()
    gate.after(record("COPY-001", "fail"), lane="extra-sim")
    gate.after(record("COPY-001", "fail"), lane="unheard-of")
    status, made = gate.run()
    assert status == Exit.OK
    assert [(lane.name, lane.outcome) for lane in made.lanes] == [
        (LANE, Outcome.OK),
        ("extra-sim", Outcome.REGRESSION),
        ("unheard-of", Outcome.REGRESSION),
    ]
    assert "does not know this lane" in made.lanes[2].notes[0]


def test_without_a_run_before_every_bad_check_is_new(gate: Gate) -> None:
    gate.after(record("COPY-001", "fail"))
    status, made = gate.run(baseline=False)
    assert (status, made.checks[0].kind) == (Exit.FINDINGS, Class.NEW_FAILURE)
    assert gate.run()[0] == Exit.FINDINGS  # An empty directory is no run before, too.
    gate.policy.write_text(gate.policy.read_text().replace("without_baseline: note", ""))
    assert "no run to compare with" in gate.refused()


def test_what_is_merged_can_be_the_run_before_of_the_next_gate(gate: Gate, tmp_path: Path) -> None:
    gate.after(record("COPY-001", "fail"), shards=2)
    gate.run("--merged", str(tmp_path / "merged"))
    file = tmp_path / "merged" / f"{LANE}.json.gz"
    first = file.read_bytes()
    merged = reader.parse(gzip.decompress(first), "merged")
    assert len(merged.run.merged or ()) == 2
    status, made = gate.run("--baseline", str(tmp_path / "merged"), "--merged", str(file.parent))
    assert (status, made.checks[0].kind) == (Exit.OK, Class.BROKEN_TRUNK)
    assert file.read_bytes() == first


def test_a_lane_that_is_not_complete_is_not_merged(gate: Gate, tmp_path: Path) -> None:
    gate.after(shards=2)[0].unlink()
    gate.run("--merged", str(tmp_path / "merged"))
    assert not list((tmp_path / "merged").iterdir())


def test_more_checks_than_the_policy_takes_are_counted_worst_first(gate: Gate) -> None:
    gate.policy.write_text(gate.policy.read_text() + "limits: {checks: 2}\n")
    gate.before()
    gate.after(*(record("COPY-002", "fail" if n == 5 else "pass", n) for n in range(6)))
    status, made = gate.run()
    assert (status, len(made.checks), made.left_out) == (Exit.FINDINGS, 2, 4)
    assert made.checks[0].kind is Class.NEW_FAILURE


def test_a_commit_that_was_not_checked_out_is_refused(gate: Gate) -> None:
    gate.before()
    gate.after(source={"commit": "a" * 40, "digest": "0" * 64})
    assert gate.run("--suite-commit", "a" * 40)[0] == Exit.OK
    assert "of the suite at aaaa" in gate.refused("--suite-commit", "b" * 40)


def test_a_lane_must_have_run_the_torch_that_the_policy_names(gate: Gate) -> None:
    asked = "{required: true, torch: 2.13.0}"
    gate.policy.write_text(gate.policy.read_text().replace("{required: true}", asked))
    gate.before()
    gate.after(torch={"version": "2.13.0+cpu", "git": None})
    assert gate.run()[0] == Exit.OK
    gate.after(torch={"version": "2.13.1", "git": None})
    assert "torch is 2.13.1, the policy asks for 2.13.0" in gate.refused()


def test_a_policy_that_requires_nothing_is_never_green(gate: Gate) -> None:
    gate.policy.write_text(gate.policy.read_text().replace("required: true", "required: false"))
    gate.before()
    gate.after()
    assert "the policy requires no lane" in gate.refused()


@pytest.mark.parametrize("old", [ended for ended in Ended if ended is not Ended.NOT_RUN])
def test_whatever_gets_a_lower_rank_is_told_and_what_is_newly_bad_is_never_fine(
    old: Ended,
) -> None:
    for new in set(Ended) - {Ended.NOT_RUN}:
        before, after = (typed(record("COPY-001", ended.value)) for ended in (old, new))
        kind = classify(before, after)
        if RANKS[new] < RANKS[old]:
            assert kind not in {Class.FIXED, Class.UNCHANGED, Class.NEW}
        if after.unexpected and not before.unexpected:
            assert kind in {Class.NEW_FAILURE, Class.UNEXPECTED_PASS, Class.FLAKY}
        if not after.unexpected and new == Ended.PASS != old:
            assert kind is Class.FIXED
        assert (kind is Class.UNCHANGED) == (old == new and not before.unexpected)
