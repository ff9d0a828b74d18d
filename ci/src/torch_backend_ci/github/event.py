# SPDX-License-Identifier: BSD-3-Clause
"""The event that a workflow runs for: the file GITHUB_EVENT_PATH, as far as it is used here.

GitHub writes the file, but strangers choose much of what is in it (branch names, titles): every
field taken has the form it must have, or the event is refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_backend_ci.errors import CiError
from torch_backend_ci.github.access import is_repository_name

_MAX_SIZE = 32 << 20  # bytes; GitHub's webhooks end at 25 MB
_MAX_TEXT = 1024  # characters of a field

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_WORD = re.compile(r"[a-z_]+")


@dataclass(frozen=True)
class PullRequestEvent:
    """`pull_request` and `pull_request_target`."""

    repository: str  # OWNER/NAME of the base
    action: str  # opened, synchronize, closed ...
    number: int
    head_sha: str
    head_ref: str
    head_repo: str | None  # None: the fork is gone
    base_sha: str
    base_ref: str
    merged: bool
    merge_commit_sha: str | None

    @property
    def from_fork(self) -> bool:
        """Whether the change comes from another repository."""
        return self.head_repo != self.repository


@dataclass(frozen=True)
class PushEvent:
    """`push`: `before` and `after` are all zeros where the ref was made or deleted."""

    repository: str
    ref: str  # refs/heads/main
    before: str
    after: str
    default_branch: str
    created: bool
    deleted: bool
    forced: bool

    @property
    def to_default_branch(self) -> bool:
        """Whether it is the default branch that was pushed to."""
        return self.ref == f"refs/heads/{self.default_branch}"


@dataclass(frozen=True)
class WorkflowRunEvent:
    """`workflow_run`: another workflow of this repository was requested, or has ended."""

    repository: str
    action: str
    run_id: int
    run_attempt: int
    event: str  # what that run was for
    conclusion: str | None  # None: it has not ended
    head_sha: str
    head_branch: str | None
    head_repo: str | None
    default_branch: str


@dataclass(frozen=True)
class DispatchEvent:
    """`repository_dispatch`: somebody with write access sent it; the payload is theirs."""

    repository: str
    event_type: str
    client_payload: Mapping[str, Any]


@dataclass(frozen=True)
class OtherEvent:
    """`schedule`, `workflow_dispatch` and what else has nothing that is used here."""

    name: str


Event = PullRequestEvent | PushEvent | WorkflowRunEvent | DispatchEvent | OtherEvent


def load() -> Event:
    """The event of this run; CiError where there is none, or it is malformed."""
    name, path = os.environ.get("GITHUB_EVENT_NAME"), os.environ.get("GITHUB_EVENT_PATH")
    if not name or not path:
        raise CiError("no event: GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are set in a workflow")
    return parse(name, read(Path(path)))


def read(path: Path) -> dict[str, Any]:
    """The event as it was sent."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_SIZE + 1)
    except OSError as error:
        raise CiError(f"the event {path}: {error.strerror}") from error
    if len(data) > _MAX_SIZE:
        raise CiError(f"the event {path} has more than {_MAX_SIZE >> 20} MiB")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CiError(f"the event {path} is not JSON: {type(error).__name__}") from error
    if not isinstance(document, dict):
        raise CiError(f"the event {path} is not JSON object")
    return document


def parse(name: str, payload: Mapping[str, Any]) -> Event:
    """The payload of an event of that name."""
    parser = _PARSERS.get(name)
    return parser(_Fields(name, payload)) if parser else OtherEvent(name)


class _Fields:
    """A payload, asked for fields by their path: `pull_request.head.sha`."""

    def __init__(self, event: str, payload: Mapping[str, Any]) -> None:
        self._event, self._payload = event, payload

    def at(self, path: str) -> Any:
        """What stands there, None if nothing does."""
        value: Any = self._payload
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def text(self, path: str, form: re.Pattern[str] | None = None) -> str:
        value = self.at(path)
        if not isinstance(value, str) or not 0 < len(value) <= _MAX_TEXT:
            raise self._malformed(path, "is not a short text")
        if not value.isprintable() or (form and not form.fullmatch(value)):
            raise self._malformed(path, f"cannot be {value[:80]!r}")
        return value

    def maybe_text(self, path: str, form: re.Pattern[str] | None = None) -> str | None:
        return None if self.at(path) is None else self.text(path, form)

    def number(self, path: str) -> int:
        value = self.at(path)
        if type(value) is not int or value <= 0:
            raise self._malformed(path, "is not a positive number")
        return value

    def flag(self, path: str) -> bool:
        value = self.at(path)
        if not isinstance(value, bool):
            raise self._malformed(path, "is neither true nor false")
        return value

    def repository(self, path: str = "repository.full_name") -> str:
        name = self.text(path)
        if not is_repository_name(name):
            raise self._malformed(path, "is not OWNER/NAME")
        return name

    def maybe_repository(self, path: str) -> str | None:
        return None if self.at(path) is None else self.repository(f"{path}.full_name")

    def mapping(self, path: str) -> Mapping[str, Any]:
        value = self.at(path)
        if not isinstance(value, dict):
            raise self._malformed(path, "is not an object")
        return value

    def _malformed(self, path: str, why: str) -> CiError:
        return CiError(f"the event {self._event} is malformed: {path} {why}")


def _pull_request(fields: _Fields) -> PullRequestEvent:
    return PullRequestEvent(
        repository=fields.repository(),
        action=fields.text("action", _WORD),
        number=fields.number("pull_request.number"),
        head_sha=fields.text("pull_request.head.sha", _SHA),
        head_ref=fields.text("pull_request.head.ref"),
        head_repo=fields.maybe_repository("pull_request.head.repo"),
        base_sha=fields.text("pull_request.base.sha", _SHA),
        base_ref=fields.text("pull_request.base.ref"),
        merged=fields.flag("pull_request.merged"),
        merge_commit_sha=fields.maybe_text("pull_request.merge_commit_sha", _SHA),
    )


def _push(fields: _Fields) -> PushEvent:
    return PushEvent(
        repository=fields.repository(),
        ref=fields.text("ref"),
        before=fields.text("before", _SHA),
        after=fields.text("after", _SHA),
        default_branch=fields.text("repository.default_branch"),
        created=fields.flag("created"),
        deleted=fields.flag("deleted"),
        forced=fields.flag("forced"),
    )


def _workflow_run(fields: _Fields) -> WorkflowRunEvent:
    return WorkflowRunEvent(
        repository=fields.repository(),
        action=fields.text("action", _WORD),
        run_id=fields.number("workflow_run.id"),
        run_attempt=fields.number("workflow_run.run_attempt"),
        event=fields.text("workflow_run.event", _WORD),
        conclusion=fields.maybe_text("workflow_run.conclusion", _WORD),
        head_sha=fields.text("workflow_run.head_sha", _SHA),
        head_branch=fields.maybe_text("workflow_run.head_branch"),
        head_repo=fields.maybe_repository("workflow_run.head_repository"),
        default_branch=fields.text("repository.default_branch"),
    )


def _dispatch(fields: _Fields) -> DispatchEvent:
    return DispatchEvent(
        repository=fields.repository(),
        event_type=fields.text("action"),
        client_payload=fields.mapping("client_payload"),
    )


_PARSERS: dict[str, Callable[[_Fields], Event]] = {
    "pull_request": _pull_request,
    "pull_request_target": _pull_request,
    "push": _push,
    "workflow_run": _workflow_run,
    "repository_dispatch": _dispatch,
}
