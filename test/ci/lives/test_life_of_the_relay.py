# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's relay sends what happens there, and is told what the suite says of it."""

from __future__ import annotations

from typing import Any

import pytest

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


def test_a_nightly_is_told_once_when_it_is_over(relay: Life) -> None:
    assert relay.nightly["relay"].conclusion == "success"
    assert [callback["status"] for callback in told(relay)[2:]] == ["completed"]
    assert "ci pin update nightly: success" in relay.nightly["relay"].leg("suite").log


def test_only_the_jobs_that_tell_may_say_who_they_are(relay: Life) -> None:
    run = relay.opened["relay"]
    assert len(relay.relay.tokens) == 3
    assert "id-token" not in run.leg("suite").log


def test_every_step_of_its_workflows_is_played(relay: Life) -> None:
    assert left(PLAYS, relay.stage) == set()
