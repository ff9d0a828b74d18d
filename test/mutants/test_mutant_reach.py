# SPDX-License-Identifier: BSD-3-Clause
"""What a run of the suite recorded decides which checks a mutant meets, and in which order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mutants import reach

LINES = [
    ["", 0, [1], []],
    ["probe/privateuse1", 0.1, [2], ["aten::add"]],
    ["copy/wide", 0.5, [3, 4, 5], []],
    ["copy/slow", 9.0, [3], ["aten::cat"]],
    ["copy/quick", 0.1, [3], ["aten::sub"]],
    ["copy/quick", 0.0, [4], ["aten::mul"]],
]


def seen(plan: reach.Plan) -> tuple[list[str], int]:
    return plan.checks, plan.skipped


@pytest.fixture
def covered(tmp_path: Path) -> reach.Coverage:
    log = tmp_path / "0.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return reach.load([log], {"copy/wide", "copy/slow", "copy/quick"})


def test_what_ran_on_the_cpu_is_known_of_each_check(covered: reach.Coverage) -> None:
    assert covered.fallbacks == {
        "copy/slow": frozenset({"aten::cat"}),
        "copy/quick": frozenset({"aten::sub", "aten::mul"}),
    }


def test_a_check_that_is_left_out_reaches_nothing(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    covered = reach.load([log], {"copy/wide", "copy/slow", "copy/quick"}, without=["copy/wide"])
    assert covered.checks_for(3) == ["copy/slow", "copy/quick"]
    assert covered.checks_for(5) == []


def test_checks_that_reach_little_else_come_first(covered: reach.Coverage) -> None:
    assert covered.checks_for(3) == ["copy/slow", "copy/quick", "copy/wide"]
    assert covered.checks_for(4) == ["copy/quick", "copy/wide"]
    assert covered.checks_for(9) == []


def test_the_checks_of_the_chapters_that_own_the_source_come_first(
    tmp_path: Path,
) -> None:
    log = tmp_path / "0.log"
    lines = [["", 0, [4]], ["copy/a", 0.1, [3]], ["event/a", 0.5, [3, 4]], ["event/b", 0.1, [4]]]
    log.write_text("".join(json.dumps([*line, []]) + "\n" for line in lines))
    covered = reach.load([log], {"copy/a", "event/a", "event/b"})
    assert covered.checks_for(3, ["event"]) == ["event/a", "copy/a"]
    assert covered.checks_for(3, ["copy"]) == ["copy/a", "event/a"]
    covered.always.add(3)
    assert covered.checks_for(3, ["event"]) == ["event/a", "event/b", "copy/a"]


def test_what_a_start_or_a_probe_reaches_meets_every_check(covered: reach.Coverage) -> None:
    for mutant in (1, 2):
        assert covered.checks_for(mutant) == ["copy/quick", "copy/wide", "copy/slow"]


def test_checks_that_start_an_interpreter_come_last_for_what_every_start_reaches(
    covered: reach.Coverage,
) -> None:
    covered.always.add(3)
    assert covered.checks_for(3) == ["copy/quick", "copy/wide", "copy/slow"]


def test_the_checks_of_a_mutant_end_where_its_time_ends(covered: reach.Coverage) -> None:
    assert seen(covered.plan(3, limit=60)) == (["copy/slow", "copy/quick", "copy/wide"], 0)
    assert seen(covered.plan(3, limit=9.2)) == (["copy/slow", "copy/quick"], 1)
    assert seen(covered.plan(3, limit=1)) == ([], 3)


def test_each_name_has_its_turn_before_one_has_a_second() -> None:
    covered = reach.Coverage(
        {id: frozenset({3}) for id in ("copy/a:x", "copy/a:y", "copy/b", "event/c")},
        {"copy/a:x": 0.1, "copy/a:y": 0.2, "copy/b": 0.5, "event/c": 0.1},
        by_mutant={3: ["copy/a:x", "copy/a:y", "copy/b", "event/c"]},
    )
    assert covered.checks_for(3, ["copy"]) == ["copy/a:x", "copy/b", "copy/a:y", "event/c"]


def test_owners_leave_half_of_the_time_to_others_and_have_all_of_it() -> None:
    seconds = {"copy/a": 3.0, "copy/b": 4.0, "event/c": 2.0, "event/d": 2.5}
    covered = reach.Coverage(
        {id: frozenset({3}) for id in seconds}, seconds, by_mutant={3: list(seconds)}
    )
    assert seen(covered.plan(3, 3, ["copy"])) == (["copy/a"], 3)
    assert seen(covered.plan(3, 4, ["copy"])) == (["copy/a", "event/c"], 2)
    assert seen(covered.plan(3, 7, ["copy"])) == (["copy/a", "copy/b", "event/c"], 1)
    assert seen(covered.plan(3, 12, ["copy"])) == (["copy/a", "copy/b", "event/c", "event/d"], 0)


def test_what_may_run_once_in_a_process_meets_all_checks_of_its_owners() -> None:
    seconds = {"copy/a:x": 0.2, "copy/a:y": 0.1, "copy/b": 0.4, "copy/slow": 3.0, "event/c": 0.1}
    covered = reach.Coverage({"event/c": frozenset({3})}, seconds, by_mutant={3: ["event/c"]})
    ordered = ["event/c", "copy/a:y", "copy/b", "copy/a:x", "copy/slow"]
    assert covered.plan(3, 60, ["copy"]) == reach.Plan(ordered, reached=1, skipped=0)
    assert covered.plan(3, 1, ["copy"]).checks == ordered[:4]
    assert covered.plan(3, 60).checks == ["event/c"]


def test_what_many_checks_reach_meets_no_others() -> None:
    many = {f"event/{n}": 0.1 for n in range(reach.FEW)}
    covered = reach.Coverage(
        {id: frozenset({3}) for id in many},
        {**many, "copy/a": 0.1},
        by_mutant={3: list(many)},
    )
    assert "copy/a" not in covered.plan(3, 60, ["copy"]).checks
