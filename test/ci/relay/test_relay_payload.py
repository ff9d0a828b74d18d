# SPDX-License-Identifier: BSD-3-Clause
"""The relay's dispatch: what is taken out of it, and that nothing forged gets through."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from github_fake import GitHubFake
from github_fake.payloads import all_examples
from relay_fake import SHA, RelayFake

from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError
from torch_backend_ci.github.event import DispatchEvent
from torch_backend_ci.pin import file as pins
from torch_backend_ci.relay import cli
from torch_backend_ci.relay.dispatch import parse

Event = dict[str, Any]
NOW = datetime(2026, 11, 26, 4, 23, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def pull_request() -> Event:
    return RelayFake().dispatch_pull_request()


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, Path]]:
    """Runs `relay payload` as a step for an event; its status and the file of its outputs."""

    def run(event: Any, *options: str, name: str = "repository_dispatch") -> tuple[int, Path]:
        file, outputs = tmp_path / "event.json", tmp_path / "outputs"
        file.write_text(event if isinstance(event, str) else json.dumps(event))
        outputs.write_text("")
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(file))
        monkeypatch.setenv("GITHUB_EVENT_NAME", name)
        monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
        monkeypatch.setattr(cli, "_now", lambda: NOW)
        return main(["relay", "payload", *options]), outputs

    return run


def outputs(file: Path) -> dict[str, str]:
    found = re.findall(r"^(\w+)<<(\w+)\n(.*)\n\2$", file.read_text(), re.M)
    return {name: value for name, _, value in found}


@pytest.mark.parametrize("action", ["opened", "reopened", "synchronize"])
def test_a_pull_request_names_its_head_and_number(
    step: Callable[..., tuple[int, Path]], action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    event = RelayFake().dispatch_pull_request(action)
    status, file = step(event)
    assert status == 0
    assert outputs(file) == {
        "run": "true",
        "reason": "",
        "event": "pull_request",
        "upstream": "pytorch/pytorch",
        "sha": SHA,
        "pull": "42",
        "torch": "source",
        "delivery_id": event["client_payload"]["delivery_id"],
        "started_at": "2026-11-26T04:23:00Z",
    }
    assert f"sha={SHA}\n" in capsys.readouterr().out


NOTHING: dict[str, tuple[Event, str]] = {
    "closed": (RelayFake().dispatch_pull_request("closed"), "the PR is closed"),
    "deleted": (RelayFake().dispatch_push(deleted=True), "the ref was deleted"),
    "zeros": (RelayFake().dispatch_push(after="0" * 40), "the ref was deleted"),
}


@pytest.mark.parametrize("case", NOTHING)
def test_where_there_is_nothing_to_test_nothing_is_run(
    step: Callable[..., tuple[int, Path]], case: str
) -> None:
    event, reason = NOTHING[case]
    status, file = step(event)
    assert status == 0
    assert (outputs(file)["run"], outputs(file)["reason"]) == ("false", reason)


@pytest.mark.parametrize(
    ("ref", "pull"),
    [
        ("refs/heads/main", ""),
        ("refs/tags/ciflow/trunk/1234", "1234"),
        ("refs/tags/ciflow/trunk/12;34", ""),
        ("refs/tags/v1/1234", ""),
    ],
)
def test_a_push_names_what_was_pushed_and_the_pull_request_of_a_ciflow_tag(
    step: Callable[..., tuple[int, Path]], ref: str, pull: str
) -> None:
    status, file = step(RelayFake().dispatch_push(ref))
    assert status == 0
    found = outputs(file)
    assert (found["event"], found["sha"], found["pull"]) == ("push", SHA, pull)


@pytest.mark.parametrize(("kind", "torch"), [("nightly", "nightly"), ("periodic", "source")])
def test_a_nightly_is_known_by_its_commit_and_has_a_wheel(
    step: Callable[..., tuple[int, Path]], kind: str, torch: str
) -> None:
    event = RelayFake().dispatch(kind, {"head_sha": SHA})
    event["client_payload"]["delivery_id"] = SHA
    status, file = step(event)
    assert status == 0
    found = outputs(file)
    assert (found["event"], found["sha"], found["torch"], found["run"]) == (
        *(kind, SHA, torch, "true"),
    )


def test_a_nightly_that_nobody_dispatched_is_of_the_commit_of_the_pin(
    step: Callable[..., tuple[int, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    development = pins.read("development")
    monkeypatch.setattr(pins, "read", {"nightly": development}.__getitem__)
    status, file = step({"schedule": "37 7 * * *"}, "--event-type=nightly", name="schedule")
    assert status == 0
    found = outputs(file)
    assert development.torch
    assert (found["event"], found["sha"], found["torch"], found["run"]) == (
        *("nightly", development.torch.git_version, "nightly", "true"),
    )


def test_a_day_without_a_nightly_has_nothing_to_report(
    step: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    status, file = step({}, "--event-type=nightly", name="schedule")
    assert (status, outputs(file)) == (2, {})
    assert "there is no nightly to test" in capsys.readouterr().err


def test_a_periodic_run_is_of_the_last_good_commit_of_pytorch(
    step: Callable[..., tuple[int, Path]], github_fake: GitHubFake
) -> None:
    upstream = github_fake.world.add_repository("pytorch/pytorch", {"a": "b"})
    main_ = upstream.refs["refs/heads/main"]
    upstream.refs["refs/heads/viable/strict"] = main_
    status, file = step({}, "--event-type=periodic", name="schedule")
    assert status == 0
    found = outputs(file)
    assert (found["event"], found["sha"], found["torch"]) == ("periodic", main_, "source")
    del upstream.refs["refs/heads/viable/strict"]
    assert step({}, "--event-type=periodic", name="schedule")[0] == 2


@pytest.mark.parametrize("kind", ["pull_request", "push"])
def test_real_webhooks_are_understood(step: Callable[..., tuple[int, Path]], kind: str) -> None:
    relay = RelayFake()
    examples = [
        example
        for example in all_examples(kind)
        if kind == "push" or example["action"] in ("opened", "reopened", "synchronize", "closed")
    ]
    assert len(examples) > 2
    for example in examples:
        upstream = example["repository"]["full_name"]
        status, file = step(relay.dispatch(kind, example), f"--upstream={upstream}")
        assert status == 0
        found = outputs(file)
        assert found["event"] == kind
        assert found["pull"] == str(example.get("number", ""))
        is_over = example.get("action") == "closed" or example.get("deleted", False)
        assert found["run"] == ("false" if is_over else "true")


def test_no_text_that_somebody_chose_gets_out(
    step: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "x;touch /tmp/owned `id` $(id) ${{ github.token }}\n::add-mask::\nrun=false"
    event = RelayFake().dispatch_pull_request()
    pull = event["client_payload"]["payload"]["pull_request"]
    pull["head"]["ref"] = pull["base"]["ref"] = pull["title"] = pull["body"] = evil
    pull["labels"] = [{"name": evil[:90]}]
    status, file = step(event)
    assert status == 0
    assert outputs(file)["run"] == "true"
    shown = file.read_text() + "".join(capsys.readouterr())
    assert not any(word in shown for word in ("touch", "add-mask", "github.token", "false"))


def at(path: str, value: Any) -> Callable[[Event], None]:
    """An edit of one field of the client's payload; a value of `...` takes it away."""
    *folders, last = path.split(".")

    def edit(event: Event) -> None:
        target = event["client_payload"]
        for key in folders:
            target = target[key]
        if value is ...:
            del target[last]
        else:
            target[last] = value

    return edit


FORGED: dict[str, tuple[Callable[[Event], None], str]] = {
    "a command for a commit": (at("payload.pull_request.head.sha", "a; rm -rf /"), "head.sha"),
    "a short commit": (at("payload.pull_request.head.sha", SHA[:39]), "head.sha"),
    "a commit in capitals": (at("payload.pull_request.head.sha", "A" * 40), "head.sha"),
    "a commit and a line": (at("payload.pull_request.head.sha", SHA + "\n"), "head.sha"),
    "no commit": (at("payload.pull_request.head", {}), "required key 'sha' is missing"),
    "a number that is text": (at("payload.pull_request.number", "42"), "number"),
    "number true": (at("payload.pull_request.number", True), "number"),
    "number zero": (at("payload.pull_request.number", 0), "number"),
    "a huge number": (at("payload.pull_request.number", 10**30), "number"),
    "a fraction": (at("payload.pull_request.number", 4.2), "number"),
    "a foreign repository": (
        at("payload.repository.full_name", "evil/pytorch"),
        "of 'evil/pytorch', not of pytorch/pytorch",
    ),
    "another case": (at("payload.repository.full_name", "PyTorch/pytorch"), "not of"),
    "no repository": (at("payload.repository", ...), "required key 'repository' is missing"),
    "an unknown action": (at("payload.action", "labeled"), "'labeled' is not one of"),
    "no action": (at("payload.action", None), "action"),
    "labels that are no list": (at("payload.pull_request.labels", {"name": "x"}), "labels"),
    "a delivery with a path": (at("delivery_id", "../../etc/passwd"), "delivery_id"),
    "a delivery with a line": (at("delivery_id", "a\nrun=true"), "delivery_id"),
    "an endless delivery": (at("delivery_id", "a" * 65), "delivery_id"),
    "a delivery of the wrong kind": (at("delivery_id", 7), "delivery_id"),
    "another type": (at("event_type", "push"), "two different types"),
    "an unknown type": (at("event_type", "workflow_run"), "two different types"),
    "a payload that is a list": (at("payload", []), "payload"),
    "no payload": (at("payload", ...), "payload"),
    "too large": (at("payload.pull_request.body", "x" * 70_000), "GitHub takes 65535"),
    "not a number of JSON": (at("payload.pull_request.body", float("nan")), "ValueError"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_dispatch_is_refused_and_sets_nothing(
    step: Callable[..., tuple[int, Path]],
    pull_request: Event,
    case: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    edit, words = FORGED[case]
    event = copy.deepcopy(pull_request)
    edit(event)
    status, file = step(event)
    said = capsys.readouterr()
    assert status == 2
    assert file.read_text() == ""
    assert said.out == ""
    assert words in said.err
    assert len(said.err.splitlines()) == 1 and len(said.err) < 400


@pytest.mark.parametrize(
    "event", ["{", "[]", '{"client_payload": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_what_is_no_event_is_refused(step: Callable[..., tuple[int, Path]], event: str) -> None:
    assert step(event)[0] == 2


def test_a_type_that_is_not_the_one_it_was_sent_under_is_refused(
    step: Callable[..., tuple[int, Path]],
    pull_request: Event,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert step(pull_request | {"action": "push"})[0] == 2
    assert "two different types" in capsys.readouterr().err


def test_a_workflow_that_was_not_dispatched_is_told_so(
    step: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert step({}, name="schedule")[0] == 2
    assert "not dispatched by the relay" in capsys.readouterr().err


def test_a_test_upstream_can_be_named(
    step: Callable[..., tuple[int, Path]], pull_request: Event
) -> None:
    event = copy.deepcopy(pull_request)
    event["client_payload"]["payload"]["repository"]["full_name"] = "octo-org/pytorch"
    assert step(event, "--upstream=octo-org/pytorch")[0] == 0
    assert step(event)[0] == 2


def test_a_payload_nested_deeper_than_python_likes_is_a_problem_not_a_crash() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"head": deep}
    content = {"event_type": "push", "delivery_id": "x", "payload": deep}
    with pytest.raises(CiError, match="RecursionError"):
        parse(DispatchEvent("octo-org/backend", "push", content))


def test_the_documents_show_what_is_printed(
    step: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[3] / "docs" / "ci" / "relay.md"
    shown = re.search(
        r"^\$ torch-backend-ci relay payload\n(.*?)^```", page.read_text(), re.M | re.S
    )
    assert step(RelayFake().dispatch_pull_request())[0] == 0
    assert shown and capsys.readouterr().out == shown[1]


def test_each_output_is_explained_by_the_help(
    step: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    _, file = step(RelayFake().dispatch_pull_request())
    with pytest.raises(SystemExit):
        main(["relay", "payload", "--help"])
    explained = re.findall(r"^  (\w+)  +\w", capsys.readouterr().out, re.M)
    assert outputs(file).keys() <= set(explained)
