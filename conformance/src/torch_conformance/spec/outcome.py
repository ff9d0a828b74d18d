# SPDX-License-Identifier: BSD-3-Clause
"""The vocabulary of outcomes, and the exceptions a check ends with besides AssertionError."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """How one check ended. The string values are the ones in reports and expectations."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    DEVICE_LOST = "device_lost"
    XFAIL = "xfail"
    XPASS = "xpass"
    FLAKY = "flaky"
    UNSUPPORTED = "unsupported"
    BLOCKED_UPSTREAM = "blocked_upstream"
    NOT_RUN = "not_run"

    def __str__(self) -> str:
        return self.value


BAD = frozenset(
    {
        Outcome.FAIL,
        Outcome.ERROR,
        Outcome.CRASH,
        Outcome.TIMEOUT,
        Outcome.DEVICE_LOST,
        Outcome.XPASS,
    }
)
"""Outcomes that make a run red; so does a flaky one that no expectation lists, see `is_bad`."""

EXECUTED = frozenset(Outcome) - {
    Outcome.NOT_RUN,
    Outcome.UNSUPPORTED,
    Outcome.BLOCKED_UPSTREAM,
}
"""Outcomes that need the body of the check to have run; a run with none of them is a failure."""


def is_bad(record: Mapping[str, Any]) -> bool:
    """Whether the record of a check makes a run red."""
    outcome = Outcome(record["outcome"])
    return outcome in BAD or (outcome is Outcome.FLAKY and "waiver" not in record)


class Unsupported(Exception):
    """Raised by a check (or on its behalf) when the backend lacks what the check needs."""


class CheckError(Exception):
    """Something in a check raised; the text tells type and message of what it was."""


class CannotLoad(Exception):
    """The backend could not be brought up; the text is the reason shown to the user."""
