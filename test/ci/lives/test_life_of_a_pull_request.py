# SPDX-License-Identifier: BSD-3-Clause
"""A PR is judged, its author told in one comment that follows the fix, and others by the feed."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
import yaml
from stage.machine import ROOT

from lives.of_a_pull_request import HEADER, LABELS, PLAYS, PYTHON, Life
from lives.steps import left

pytestmark = pytest.mark.nightly

BOT = "github-actions[bot]"


def test_main_leaves_a_baseline_behind(pull_request: Life) -> None:
    assert pull_request.begun["pr"].conclusion == "success"
    assert pull_request.begun["pr-report"].conclusion == "success"
    assert pull_request.file("results", "baseline/development-sim.json.gz")


def test_labels_are_defined_as_their_file_has_them(pull_request: Life) -> None:
    assert pull_request.begun["label"].conclusion == "success"
    wanted = {label["name"] for label in yaml.safe_load((ROOT / LABELS).read_text())}
    assert {label.name for label in pull_request.stage.repository.labels} == wanted


def test_the_suite_runs_in_shards_for_real(pull_request: Life) -> None:
    shards = pull_request.opened.runs["pr"].jobs["suite"].legs
    assert len(shards) == 2
    assert all("backend puone: " in shard.log and " passed" in shard.log for shard in shards)
    assert "1/2" in shards[0].name


def test_the_shards_of_a_pr_are_cut_by_the_durations_of_main(pull_request: Life) -> None:
    first, second = (m.runs["pr"] for m in (pull_request.opened, pull_request.fixed))
    assert "no such file yet" in pull_request.begun["pr"].leg("suite").log
    assert "no such file yet" not in first.leg("suite").log + second.leg("suite").log


def test_the_gate_finds_the_regression_and_what_it_may_come_from(pull_request: Life) -> None:
    assert pull_request.opened.runs["pr"].jobs["gate"].result == "failure"
    assert "new failure: memory/" in pull_request.opened.gate
    assert "since c10::Allocator::raw_deleter has become pure virtual" in pull_request.opened.gate


def test_a_red_shard_is_the_gates_business(pull_request: Life) -> None:
    assert pull_request.opened.runs["pr"].jobs["suite"].result == "success"


def test_labels_come_from_the_files_and_from_the_findings(pull_request: Life) -> None:
    labels = pull_request.opened.labels
    assert {"surface: allocator", "reference-backend: touched"} <= set(labels)
    assert "impact: compile-break" in labels


def test_labels_are_never_taken_away(pull_request: Life) -> None:
    assert set(pull_request.opened.labels) <= set(pull_request.fixed.labels)


def test_the_check_run_is_of_the_head_of_the_pr(pull_request: Life) -> None:
    checks = pull_request.fixed.checks
    assert [check.conclusion for check in checks] == ["failure", "success"]
    assert checks[1].head_sha == pull_request.head


def test_one_comment_tells_the_author_and_follows_the_fix(pull_request: Life) -> None:
    (opened,), (fixed,) = pull_request.opened.comments, pull_request.fixed.comments
    assert opened.author == BOT
    assert opened.id == fixed.id
    assert "regression" in opened.body and "c10::Allocator::raw_deleter" in opened.body
    assert "regression" not in fixed.body and "raw_deleter" not in fixed.body
    assert pull_request.head[:12] in fixed.body


def test_after_the_fix_the_gate_is_green(pull_request: Life) -> None:
    assert pull_request.fixed.runs["pr"].conclusion == "success"


def test_the_merge_is_told_downstream(pull_request: Life) -> None:
    assert pull_request.merged.runs["feed"].conclusion == "success"
    feed = json.loads(pull_request.file("feed", "feed.json") or b"")
    (entry,) = feed["entries"]
    assert (entry["pr"], entry["surfaces"]) == (pull_request.number, ["accelerator"])
    (finding,) = entry["findings"]
    assert finding["name"] == "torch.accelerator.memory_reserved"
    assert (finding["before"], finding["after"]) == (
        "def memory_reserved(device_index: _device_t = None, /) -> int",
        "def memory_reserved(device_index: _device_t, /) -> int",
    )
    assert finding["hint"]


def test_the_feed_is_there_for_readers_of_feeds_too(pull_request: Life) -> None:
    feed = ElementTree.fromstring(pull_request.file("feed", "feed.atom") or b"")
    assert len(feed.findall("{http://www.w3.org/2005/Atom}entry")) == 1


def test_a_push_that_is_no_merge_makes_no_entry(pull_request: Life) -> None:
    assert "is of no pull request" in pull_request.begun["feed"].log


def test_the_half_that_runs_code_of_the_pr_has_no_right_to_write(pull_request: Life) -> None:
    fake = pull_request.stage.fake
    writers = {call.actor for call in fake.calls if call.writes}
    assert writers == {BOT}
    rights = [token.permissions or {} for token in fake.tokens.values()][1:]
    assert {frozenset(right.items()) for right in rights} >= {frozenset({("contents", "read")})}
    judged = pull_request.opened.runs["pr"]
    assert "did " not in judged.log


def test_no_secret_and_no_token_is_ever_printed(pull_request: Life) -> None:
    logs = "".join(run.log for run in pull_request.stage.all_runs)
    assert not [token for token in pull_request.stage.fake.tokens if token in logs]


def test_files_of_pytorch_are_judged_by_where_they_lie(pull_request: Life) -> None:
    log = pull_request.opened.runs["label"].log
    assert f"{HEADER} matches" in log
    assert f"{PYTHON} matches" in log


def test_every_step_of_its_workflows_is_played(pull_request: Life) -> None:
    assert left(PLAYS, pull_request.stage) == set()
