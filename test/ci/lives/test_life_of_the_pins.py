# SPDX-License-Identifier: BSD-3-Clause
"""Each week the pins are looked after: one PR for one pin, however many weeks it waits."""

from __future__ import annotations

import pytest

from lives.of_the_pins import NAME, PLAYS, Life
from lives.steps import left

pytestmark = pytest.mark.nightly


def test_every_week_ends_well(pins: Life) -> None:
    assert [week.runs["update-pins"].conclusion for week in pins.weeks] == ["success"] * 3


def test_every_pin_is_held_against_its_index_and_upstream(pins: Life) -> None:
    for week in pins.weeks:
        log = week.runs["update-pins"].log
        for version in ("2.11.0", "2.13.0", "2.15.0"):
            assert f"torch {version} is as pinned" in log


def test_a_release_is_proposed_in_a_pr_by_whom_the_secret_belongs_to(pins: Life) -> None:
    (pull,) = pins.weeks[0].newest
    assert pull.title == "Pin newest: torch 2.15.0 -> 2.16.0"
    assert pull.author == NAME
    assert "version: 2.16.0" in pins.weeks[0].pin


def test_a_week_without_a_release_changes_nothing(pins: Life) -> None:
    before, after = pins.weeks[:2]
    assert after.tip == before.tip
    for old, new in ((before.newest, after.newest), (before.nightly, after.nightly)):
        assert [pull.updated_at for pull in new] == [pull.updated_at for pull in old]


def test_the_next_release_takes_the_same_pr(pins: Life) -> None:
    (pull,) = pins.weeks[2].newest
    assert pull.number == pins.weeks[0].newest[0].number
    assert pull.title == "Pin newest: torch 2.15.0 -> 2.17.0"
    assert "version: 2.17.0" in pins.weeks[2].pin


def test_pins_that_people_move_are_left_to_people(pins: Life) -> None:
    refs = pins.stage.repository.refs
    moved = {ref for ref in refs if ref.startswith("refs/heads/pin/")}
    assert moved == {"refs/heads/pin/newest", "refs/heads/pin/nightly"}


def test_the_secret_is_never_printed(pins: Life) -> None:
    secret = pins.stage.hub.kept_secrets["PINS_TOKEN"]
    assert secret not in "".join(run.log for run in pins.stage.all_runs)


def test_every_step_of_its_workflows_is_played(pins: Life) -> None:
    assert left(PLAYS, pins.stage) == set()
