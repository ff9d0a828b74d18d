# SPDX-License-Identifier: BSD-3-Clause
"""How GitHub fails, for as many calls as wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from github_fake.handling import Reply
from github_fake.hosts import Closed, Sent

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

    @property
    def closes(self) -> bool:
        """Whether no answer comes at all."""
        return self.cut == 0 or self.raw is not None

    def sent(self, reply: Reply) -> Sent:
        """What of the reply arrives."""
        time.sleep(self.delay)
        if self.closes:
            raise Closed(self.raw or b"")
        return Sent(reply, self.cut)


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


class Failing:
    """What fails on order."""

    faults: Faults

    def fail_next(
        self,
        operation: str | None = None,
        status: int = 500,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        times: int = 1,
        after: int = 0,
        applied: bool = False,
    ) -> None:
        """An error answer; `applied`: though the operation was done."""
        reply = failure(status, headers, body)
        self.faults.waiting.append(Fault(operation, times, after, reply, applied))

    def limit_rate(
        self, operation: str | None = None, *, reset_in: float = 0, times: int = 1, after: int = 0
    ) -> None:
        """The primary rate limit."""
        self.faults.waiting.append(Fault(operation, times, after, primary_limit(reset_in)))

    def limit_secondary(
        self,
        operation: str | None = None,
        *,
        retry_after: int | None = 0,
        status: int = 403,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """The secondary rate limit; 403 or 429."""
        reply = secondary_limit(retry_after, status)
        self.faults.waiting.append(Fault(operation, times, after, reply))

    def close_connection(
        self,
        operation: str | None = None,
        *,
        body_bytes: int = 0,
        applied: bool = True,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """After so many bytes of the answer's body; 0: without any answer."""
        reply = None if applied else failure(500)
        fault = Fault(operation, times, after, reply, applied, cut=body_bytes)
        self.faults.waiting.append(fault)

    def babble(self, operation: str | None, said: bytes, *, times: int = 1) -> None:
        """Sends this instead of HTTP, and closes the connection."""
        self.faults.waiting.append(Fault(operation, times, raw=said))

    def slow(self, operation: str | None = None, *, seconds: float, times: int = 1) -> None:
        """Answers after a while."""
        self.faults.waiting.append(Fault(operation, times, delay=seconds))

    def rewrite(
        self,
        operation: str | None,
        change: Callable[[Reply], None],
        *,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """Lies: changes a true answer, its headers included, before it is sent."""
        self.faults.waiting.append(Fault(operation, times, after, rewrite=change))
