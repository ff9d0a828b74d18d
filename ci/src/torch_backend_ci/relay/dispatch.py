# SPDX-License-Identifier: BSD-3-Clause
"""What the relay sent: which commit of PyTorch is to be tested, and on whose behalf.

Only repositories that gave the relay's app write access can be sent this, but branch names, titles
and labels in it are anybody's. What is taken out of it is a number, a commit or a word of a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from torch_backend_ci import document
from torch_backend_ci.document import Sha
from torch_backend_ci.errors import CiError
from torch_backend_ci.github.event import DispatchEvent, Event

PULL_REQUEST, PUSH = "pull_request", "push"
# Runs that were not dispatched: one callback, when they are completed.
SELF_REPORTED = NIGHTLY, PERIODIC = ("nightly", "periodic")
UPSTREAM = "pytorch/pytorch"

_MAX_SIZE = 65_535  # characters; GitHub takes no larger client_payload
# PyTorch's bots push such a tag to start further jobs for a PR.
_CIFLOW = re.compile(r"refs/tags/ciflow/[0-9A-Za-z_/-]+/([1-9][0-9]{0,9})")


class _Foreign(msgspec.Struct, frozen=True):
    """What others write: it may have keys that are not used here."""


class Repository(_Foreign, frozen=True):
    """A repository on GitHub."""

    full_name: Annotated[str, Meta(max_length=140)]


class Head(_Foreign, frozen=True):
    """The newest commit of a PR."""

    sha: Sha


class Label(_Foreign, frozen=True):
    """A label of a PR."""

    name: Annotated[str, Meta(max_length=100)]


class PullRequest(_Foreign, frozen=True):
    """A PR, as far as it is used."""

    number: Annotated[int, Meta(ge=1, le=2**32 - 1)]
    head: Head
    labels: tuple[Label, ...] = ()


class PullRequestPayload(_Foreign, frozen=True):
    """GitHub's event `pull_request`."""

    action: Literal["opened", "reopened", "synchronize", "closed"]
    repository: Repository
    pull_request: PullRequest


class PushPayload(_Foreign, frozen=True):
    """GitHub's event `push`."""

    ref: Annotated[str, Meta(min_length=1, max_length=1024)]
    after: Sha
    repository: Repository
    deleted: bool = False


class NightlyPayload(_Foreign, frozen=True):
    """What the relay says of a nightly or periodic build."""

    head_sha: Sha | UnsetType = UNSET
    repository: Repository | UnsetType = UNSET


_DeliveryId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern="^[0-9A-Za-z-]*$",
        description="Of the webhook that the relay got.",
    ),
]


class OfPullRequest(_Foreign, tag_field="event_type", tag=PULL_REQUEST, frozen=True):
    """A PR of PyTorch was opened or changed."""

    delivery_id: _DeliveryId
    payload: PullRequestPayload


class OfPush(_Foreign, tag_field="event_type", tag=PUSH, frozen=True):
    """Something was pushed to PyTorch."""

    delivery_id: _DeliveryId
    payload: PushPayload


class OfNightly(_Foreign, tag_field="event_type", tag=NIGHTLY, frozen=True):
    """A nightly build."""

    delivery_id: Annotated[Sha, Meta(description="The commit of PyTorch.")]
    payload: NightlyPayload


class OfPeriodic(OfNightly, tag_field="event_type", tag=PERIODIC, frozen=True):
    """A build that is made every few hours."""


#: The client_payload of a repository_dispatch that the relay sends, as far as it is used.
Sent = OfPullRequest | OfPush | OfNightly | OfPeriodic


@dataclass(frozen=True)
class Dispatch:
    """A dispatch that is what it should be."""

    event_type: str
    delivery_id: str
    upstream: str  # OWNER/NAME
    sha: str
    pull: int | None
    nothing_to_do: str | None  # why there is nothing to test; None: there is
    payload: Mapping[str, Any]  # as it came; it is handed back with each callback

    @property
    def torch(self) -> str:
        """Where a torch with this commit comes from: `source` (built) or the `nightly` wheel."""
        return "nightly" if self.event_type == NIGHTLY else "source"

    @property
    def is_told_once(self) -> bool:
        """Whether the relay hears of it only when it is over."""
        return self.event_type in SELF_REPORTED

    @property
    def envelope(self) -> dict[str, Any]:
        """The part of a callback that says what it answers."""
        return {
            "event_type": self.event_type,
            "delivery_id": self.delivery_id,
            "payload": self.payload,
        }


def parse(event: Event, upstream: str = UPSTREAM) -> Dispatch:
    """The dispatch that a workflow runs for; CiError if it is none of the relay's."""
    if not isinstance(event, DispatchEvent):
        raise CiError("this run was not dispatched by the relay: its event is another one")
    content = event.client_payload
    _require_small(content)
    if event.event_type not in _KINDS:
        kinds = ", ".join(_KINDS)
        raise CiError(f"the dispatch is malformed: its event_type is not one of: {kinds}")
    if content.get("event_type", event.event_type) != event.event_type:
        raise CiError("the dispatch is malformed: it says it is of two different types")
    try:
        sent = document.convert(content, _KINDS[event.event_type], "client_payload")
    except document.DocumentError as error:
        raise CiError(f"the dispatch is malformed: {error}") from None
    return _made(event.event_type, sent, content["payload"], upstream)


def self_report(event_type: str, sha: str, upstream: str = UPSTREAM) -> Dispatch:
    """What a nightly or periodic run reports on, which nobody dispatched."""
    payload = {"repository": {"full_name": upstream}, "head_sha": sha}
    content = {"event_type": event_type, "delivery_id": sha, "payload": payload}
    try:
        sent = document.convert(content, _KINDS[event_type], "--sha")
    except document.DocumentError as error:
        raise CiError(
            f"--sha must be the commit of PyTorch that was tested, in full: {error.problem}"
        ) from None
    return _made(event_type, sent, payload, upstream)


def _require_small(content: Mapping[str, Any]) -> None:
    try:
        size = len(json.dumps(content, separators=(",", ":"), allow_nan=False))
    except (ValueError, RecursionError) as error:
        raise CiError(f"the dispatch is malformed: {type(error).__name__}") from None
    if size > _MAX_SIZE:
        raise CiError(f"the dispatch is malformed: {size} characters, GitHub takes {_MAX_SIZE}")


def _made(event_type: str, sent: Sent, payload: Mapping[str, Any], upstream: str) -> Dispatch:
    repository = sent.payload.repository
    if repository is not UNSET and repository.full_name != upstream:
        raise CiError(f"the dispatch is of {repository.full_name[:80]!r}, not of {upstream}")
    sha, pull, nothing_to_do = _asked(sent)
    return Dispatch(event_type, sent.delivery_id, upstream, sha, pull, nothing_to_do, payload)


def _asked(sent: Sent) -> tuple[str, int | None, str | None]:
    """The commit, the PR that it is of, and why there is nothing to test."""
    if isinstance(sent, OfPullRequest):
        pull = sent.payload.pull_request
        closed = "the PR is closed" if sent.payload.action == "closed" else None
        return pull.head.sha, pull.number, closed
    if isinstance(sent, OfPush):
        tag, after = _CIFLOW.fullmatch(sent.payload.ref), sent.payload.after
        gone = sent.payload.deleted or not after.strip("0")
        return after, int(tag[1]) if tag else None, "the ref was deleted" if gone else None
    head = sent.payload.head_sha
    return sent.delivery_id if head is UNSET else head, None, None


_KINDS: Mapping[str, type[OfPullRequest] | type[OfPush] | type[OfNightly]] = {
    PULL_REQUEST: OfPullRequest,
    PUSH: OfPush,
    NIGHTLY: OfNightly,
    PERIODIC: OfPeriodic,
}
