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
from typing import Any

from ci.errors import CiError
from ci.github.event import DispatchEvent, Event
from ci.relay import schema

PULL_REQUEST, PUSH = "pull_request", "push"
# Runs that were not dispatched: one callback, when they are completed.
SELF_REPORTED = NIGHTLY, PERIODIC = ("nightly", "periodic")
UPSTREAM = "pytorch/pytorch"

_MAX_SIZE = 65_535  # characters; GitHub takes no larger client_payload
# PyTorch's bots push such a tag to start further jobs for a PR.
_CIFLOW = re.compile(r"refs/tags/ciflow/[0-9A-Za-z_/-]+/([1-9][0-9]{0,9})")


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
        return "nightly" if self.is_told_once else "source"

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
    problem = schema.problem("dispatch", content)
    if problem:
        raise CiError(f"the dispatch is malformed: client_payload.{problem}")
    if content["event_type"] != event.event_type:
        raise CiError("the dispatch is malformed: it says it is of two different types")
    payload: Mapping[str, Any] = content["payload"]
    named = payload.get("repository", {}).get("full_name", upstream)
    if named != upstream:
        raise CiError(f"the dispatch is of {named[:80]!r}, not of {upstream}")
    return _KINDS[event.event_type](content, upstream)


def self_report(event_type: str, sha: str, upstream: str = UPSTREAM) -> Dispatch:
    """What a nightly or periodic run reports on, which nobody dispatched."""
    payload = {"repository": {"full_name": upstream}, "head_sha": sha}
    content = {"event_type": event_type, "delivery_id": sha, "payload": payload}
    problem = schema.problem("dispatch", content)
    if problem:
        raise CiError(f"--sha must be the commit of PyTorch that was tested, in full: {problem}")
    return _nightly(content, upstream)


def _require_small(content: Mapping[str, Any]) -> None:
    try:
        size = len(json.dumps(content, separators=(",", ":"), allow_nan=False))
    except (ValueError, RecursionError) as error:
        raise CiError(f"the dispatch is malformed: {type(error).__name__}") from None
    if size > _MAX_SIZE:
        raise CiError(f"the dispatch is malformed: {size} characters, GitHub takes {_MAX_SIZE}")


def _pull_request(content: Mapping[str, Any], upstream: str) -> Dispatch:
    pull = content["payload"]["pull_request"]
    is_closed = content["payload"]["action"] == "closed"
    number, sha = pull["number"], pull["head"]["sha"]
    return _made(content, upstream, sha, number, "the PR is closed" if is_closed else None)


def _push(content: Mapping[str, Any], upstream: str) -> Dispatch:
    payload = content["payload"]
    tag = _CIFLOW.fullmatch(payload["ref"])
    is_gone = payload.get("deleted", False) or not payload["after"].strip("0")
    number, why = int(tag[1]) if tag else None, "the ref was deleted" if is_gone else None
    return _made(content, upstream, payload["after"], number, why)


def _nightly(content: Mapping[str, Any], upstream: str) -> Dispatch:
    sha = content["payload"].get("head_sha", content["delivery_id"])
    return _made(content, upstream, sha, None, None)


def _made(
    content: Mapping[str, Any], upstream: str, sha: str, pull: int | None, why: str | None
) -> Dispatch:
    return Dispatch(
        content["event_type"], content["delivery_id"], upstream, sha, pull, why, content["payload"]
    )


_KINDS = {PULL_REQUEST: _pull_request, PUSH: _push, NIGHTLY: _nightly, PERIODIC: _nightly}
