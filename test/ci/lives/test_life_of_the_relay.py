# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's relay sends what happens there, and is told what the suite says of it."""

from __future__ import annotations

from typing import Any

import pytest
from small_torch import COMMIT

from lives.of_the_relay import PLAYS, Life
from lives.steps import left

pytestmark = pytest.mark.nightly


def told(life: Life) -> list[dict[str, Any]]:
    return [callback["workflow"] for callback in life.relay.callbacks]


def test_a_pr_is_told_to_have_begun_and_to_be_completed(relay: Life) -> None:
    assert relay.opened["relay"].conclusion == "success"
    first, second = told(relay)[:2]
    assert (first["status"], second["status"]) == ("in_progress", "completed")
    assert second["conclusion"] == "success"
    assert first["run_id"] == second["run_id"]
    assert first["started_at"] and second["started_at"] is None


def test_the_counts_are_those_of_a_run_of_the_suite(relay: Life) -> None:
    counts = told(relay)[1]["test_results"]
    assert counts["passed"] > 30
    assert counts["failed"] == 0


def test_the_suite_runs_with_the_commit_of_pytorch_that_was_sent(relay: Life) -> None:
    log = relay.opened["relay"].leg("suite").log
    assert "make torch TORCH_SOURCE=pytorch: success" in log


def test_a_closed_pr_is_none_of_our_business(relay: Life) -> None:
    run = relay.closed["relay"]
    assert run.jobs["payload"].outputs["run"] == "false"
    assert {job.result for name, job in run.jobs.items() if name != "payload"} == {"skipped"}


def test_a_nightly_is_told_once_when_it_is_over_and_the_dashboard_shows_it(relay: Life) -> None:
    assert relay.nightly["relay"].conclusion == "success"
    assert "ci pin update nightly: success" in relay.nightly["relay"].leg("payload").log
    assert relay.nightly["relay"].jobs["begun"].result == "skipped"
    (shown,) = relay.relay.shown("nightly")
    assert (shown["conclusion"], shown["sha"]) == ("success", COMMIT)


def test_a_periodic_run_is_of_pytorch_s_last_good_commit(relay: Life) -> None:
    assert relay.periodic["relay"].conclusion == "success"
    assert "make torch TORCH_SOURCE=pytorch: success" in relay.periodic["relay"].leg("suite").log
    (shown,) = relay.relay.shown("periodic")
    assert (shown["conclusion"], shown["sha"]) == ("success", relay.viable)


def test_nothing_is_run_by_the_clock_before_the_relay_lists_the_repository(relay: Life) -> None:
    assert {job.result for job in relay.unlisted["relay"].jobs.values()} == {"skipped"}


def test_a_red_suite_ends_red_and_is_told_as_a_failure(relay: Life) -> None:
    run = relay.red["relay"]
    assert run.jobs["suite"].result == "failure"
    assert run.jobs["completed"].result == "success"
    begun, completed = told(relay)[-5:-3]
    assert (begun["status"], completed["conclusion"]) == ("in_progress", "failure")
    assert completed["test_results"]["failed"] > 0


def test_a_re_run_finds_the_suite_and_is_told_as_another_attempt(relay: Life) -> None:
    assert relay.again.attempt == 2
    assert {"suite", "completed"} <= {n for n, j in relay.again.jobs.items() if j.legs}
    refused, begun, completed = relay.relay.callbacks[-3:]
    assert refused["workflow"] == completed["workflow"]
    assert [c["workflow"]["run_attempt"] for c in (begun, completed)] == ["2", "2"]
    states = {key[3]: state for key, state in relay.relay.state.items() if key[2] and key[3] > 1}
    assert states == {2: "completed"}


def test_only_the_jobs_that_tell_may_say_who_they_are(relay: Life) -> None:
    run = relay.opened["relay"]
    assert "id-token" not in run.leg("suite").log
    tokens = [t for t in relay.stage.fake.tokens.values() if (t.permissions or {}).get("id_token")]
    assert tokens


def test_every_step_of_its_workflows_is_played(relay: Life) -> None:
    assert left(PLAYS, relay.stage) == set()
