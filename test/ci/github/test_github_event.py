# SPDX-License-Identifier: BSD-3-Clause
"""The event of a workflow: read as GitHub sends it, refused in any other form."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from github_fake.payloads import all_examples

from torch_backend_ci.errors import CiError
from torch_backend_ci.github import event

SHA, OTHER = "a" * 40, "b" * 40
REPOSITORY = {"full_name": "pytorch/pytorch", "default_branch": "main"}
PULL = {
    "action": "opened",
    "repository": REPOSITORY,
    "pull_request": {
        "number": 7,
        "head": {"sha": SHA, "ref": "fix", "repo": {"full_name": "someone/pytorch"}},
        "base": {"sha": OTHER, "ref": "main"},
        "merged": False,
        "merge_commit_sha": None,
    },
}
RUN = {
    "action": "completed",
    "repository": REPOSITORY,
    "workflow_run": {
        "id": 5,
        "run_attempt": 1,
        "event": "pull_request",
        "conclusion": "failure",
        "head_sha": SHA,
        "head_branch": "fix",
        "head_repository": None,
    },
}
PUSH = {
    "ref": "refs/heads/main",
    "before": SHA,
    "after": OTHER,
    "repository": REPOSITORY,
    "created": False,
    "deleted": False,
    "forced": True,
}
EVENTS: dict[str, dict[str, Any]] = {"pull_request": PULL, "workflow_run": RUN, "push": PUSH}


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(document)
    *folders, last = path.split(".")
    at = document
    for key in folders:
        at = at[key]
    at[last] = value
    return document


def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes) -> event.Event:
    file = tmp_path / "event.json"
    file.write_bytes(data)
    monkeypatch.setenv("GITHUB_EVENT_NAME", name)
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(file))
    return event.load()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pull_request", event.PullRequestEvent),
        ("push", event.PushEvent),
        ("workflow_run", event.WorkflowRunEvent),
        ("repository_dispatch", event.DispatchEvent),
    ],
)
def test_githubs_own_examples_are_read(name: str, kind: type) -> None:
    examples = all_examples(name)
    assert examples
    for example in examples:
        read = event.parse(name, example)
        assert isinstance(read, kind)
        assert not isinstance(read, event.OtherEvent)
        assert read.repository == example["repository"]["full_name"]


def test_a_pull_request_of_a_fork_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = load(tmp_path, monkeypatch, "pull_request_target", json.dumps(PULL).encode())
    assert read == event.PullRequestEvent(
        repository="pytorch/pytorch",
        action="opened",
        number=7,
        head_sha=SHA,
        head_ref="fix",
        head_repo="someone/pytorch",
        base_sha=OTHER,
        base_ref="main",
        merged=False,
        merge_commit_sha=None,
    )
    assert read.from_fork


def test_a_fork_that_is_gone_is_a_fork() -> None:
    read = event.parse("pull_request", changed(PULL, "pull_request.head.repo", None))
    assert isinstance(read, event.PullRequestEvent)
    assert read.head_repo is None and read.from_fork


def test_a_push_knows_whether_it_went_to_the_default_branch() -> None:
    read = event.parse("push", PUSH)
    assert isinstance(read, event.PushEvent) and read.to_default_branch and read.forced
    read = event.parse("push", changed(PUSH, "ref", "refs/tags/main"))
    assert isinstance(read, event.PushEvent) and not read.to_default_branch


def test_a_run_of_a_workflow_is_read() -> None:
    read = event.parse("workflow_run", RUN)
    assert isinstance(read, event.WorkflowRunEvent)
    assert (read.run_id, read.conclusion, read.head_repo) == (5, "failure", None)


def test_a_dispatch_keeps_its_payload_as_it_is() -> None:
    sent = {"action": "pr", "repository": REPOSITORY, "client_payload": {"a": [1]}}
    read = event.parse("repository_dispatch", sent)
    assert read == event.DispatchEvent("pytorch/pytorch", "pr", {"a": [1]})
    with pytest.raises(CiError, match="client_payload is not an object"):
        event.parse("repository_dispatch", {**sent, "client_payload": "x"})


def test_events_that_say_nothing_here_are_named() -> None:
    assert event.parse("schedule", {}) == event.OtherEvent("schedule")


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("pull_request", "pull_request.number", "7"),
        ("pull_request", "pull_request.number", True),
        ("pull_request", "pull_request.number", -1),
        ("pull_request", "pull_request.number", 7.0),
        ("pull_request", "pull_request.head.sha", "a" * 39),
        ("pull_request", "pull_request.head.sha", SHA + "\n"),
        ("pull_request", "pull_request.head.sha", "A" * 40),
        ("pull_request", "pull_request.head.ref", "a\n::set-output name=x::y"),
        ("pull_request", "pull_request.head.ref", "x" * 2000),
        ("pull_request", "pull_request.head.ref", None),
        ("pull_request", "pull_request.head.repo", {"full_name": "../../evil"}),
        ("pull_request", "pull_request.head.repo", {"full_name": "a/b/c"}),
        ("pull_request", "pull_request.head.repo", "a/b"),
        ("pull_request", "pull_request.merged", "false"),
        ("pull_request", "pull_request", [1]),
        ("pull_request", "action", "opened; rm -rf /"),
        ("pull_request", "repository.full_name", "pytorch/.."),
        ("workflow_run", "workflow_run.id", 0),
        ("workflow_run", "workflow_run.run_attempt", None),
        ("workflow_run", "workflow_run.head_sha", 5),
        ("workflow_run", "workflow_run.conclusion", "SUCCESS\r\n"),
        ("push", "after", "main"),
        ("push", "forced", 1),
    ],
)
def test_a_field_in_another_form_is_refused_by_its_name(name: str, path: str, value: Any) -> None:
    with pytest.raises(CiError, match=rf"event {name} is malformed: {path}") as refused:
        event.parse(name, changed(EVENTS[name], path, value))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b'"x"', b"[" * 100_000, b'{"a":'])
def test_what_is_no_json_object_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    with pytest.raises(CiError, match="is not JSON"):
        load(tmp_path, monkeypatch, "push", data)


def test_an_event_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event, "_MAX_SIZE", 100)
    with pytest.raises(CiError, match="more than"):
        load(tmp_path, monkeypatch, "push", b" " * 101)


def test_outside_of_a_workflow_there_is_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_EVENT_PATH", raising=False)
    with pytest.raises(CiError, match="GITHUB_EVENT_NAME"):
        event.load()
    monkeypatch.setenv("GITHUB_EVENT_NAME", "push")
    monkeypatch.setenv("GITHUB_EVENT_PATH", "/nonexistent/event.json")
    with pytest.raises(CiError, match="No such file"):
        event.load()
