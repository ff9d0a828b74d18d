# SPDX-License-Identifier: BSD-3-Clause
"""Every night each torch is tried, the nightly of the day too, and compared with last night."""

from __future__ import annotations

from lives.of_a_night import NIGHTLY, PLAYS, Life
from lives.steps import left


def test_the_first_night_has_nothing_to_compare_with_and_is_kept(night: Life) -> None:
    assert night.first["nightly"].conclusion == "success"
    assert "there is no run to compare with" in night.first["nightly"].log


def test_the_suite_has_the_nightly_that_was_found_once(night: Life) -> None:
    run = night.first["nightly"]
    assert NIGHTLY in run.leg("pin").log
    (leg,) = (leg for leg in run.jobs["suite"].legs if leg.matrix["pin"] == "nightly")
    assert "installing the torch of ci/pins/nightly.yaml" in leg.log


def test_results_are_kept_by_day_and_as_the_last_ones(night: Life) -> None:
    folders = {path.split("/")[1] for path in night.kept}
    assert len(folders) == 2 and "latest" in folders
    assert {f"nightly/latest/{lane}-sim.json.gz" for lane in ("oldest", "nightly")} <= night.kept


def test_the_second_night_tells_what_got_worse_and_is_red(night: Life) -> None:
    store = night.second["nightly"].leg("store")
    assert night.second["nightly"].conclusion == "failure"
    assert "new failure: memory/" in store.log
    assert "regression" in store.summary


def test_a_red_night_is_kept_all_the_same(night: Life) -> None:
    published = night.second["nightly"].leg("store").steps[-1]
    assert published.outcome == "success"
    assert "branch results" in published.log


def test_the_second_night_is_cut_by_the_durations_of_the_first(night: Life) -> None:
    assert "no such file yet" in night.first["nightly"].leg("suite").log
    assert "no such file yet" not in night.second["nightly"].leg("suite").log


def test_every_step_of_its_workflows_is_played(night: Life) -> None:
    assert left(PLAYS, night.stage) == set()
