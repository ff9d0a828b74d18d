# SPDX-License-Identifier: BSD-3-Clause
"""How GitHub fails, for as many calls as wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from github_fake.handling import Reply

MESSAGES = {
    500: "Server Error",
    502: "Server Error",
    503: "Service Unavailable",
    504: "We couldn't respond to your request in time.",
}


@dataclass
class Fault:
    """One way to fail."""

    operation: str | None = None  # any
    times: int = 1
    after: int = 0  # so many calls go well first
    instead: Reply | None = None  # of doing it
    applied: bool = False  # it is done all the same: only the answer is lost
    rewrite: Callable[[Reply], None] | None = None  # of the true answer
    delay: float = 0.0  # seconds
    cut: int | None = None  # so many bytes of the body, then the connection closes
    raw: bytes | None = None  # instead of anything that is HTTP


@dataclass
class Faults:
    """Those that wait for their call."""

    waiting: list[Fault] = field(default_factory=list)

    def take(self, operation: str) -> Fault | None:
        """The first that fits; counts it down."""
        for fault in self.waiting:
            if fault.operation in (None, operation):
                if fault.after:
                    fault.after -= 1
                    return None
                fault.times -= 1
                if not fault.times:
                    self.waiting.remove(fault)
                return fault
        return None


def failure(status: int, headers: Mapping[str, str] | None = None, body: Any = None) -> Reply:
    """An answer with GitHub's words for that status."""
    message = MESSAGES.get(status, "Something went wrong")
    body = (
        {"message": message, "documentation_url": "", "status": str(status)}
        if body is None
        else body
    )
    return Reply(status, body, dict(headers or {}))


def primary_limit(reset_in: float) -> Reply:
    """The hourly limit is used up."""
    headers = {
        "x-ratelimit-limit": "1000",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": str(int(time.time() + reset_in)),
        "x-ratelimit-resource": "core",
    }
    return failure(403, headers, {"message": "API rate limit exceeded for installation ID 1."})


def secondary_limit(retry_after: int | None, status: int = 403) -> Reply:
    """Too much at a time."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    text = (
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    )
    return failure(status, headers, {"message": text})
