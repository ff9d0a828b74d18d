# SPDX-License-Identifier: BSD-3-Clause
"""The vocabulary of outcomes, and the exceptions a check ends with besides AssertionError."""

from __future__ import annotations

from enum import Enum


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
"""Outcomes that make a run red whatever the expectations say."""

BAD_UNLESS_LISTED = frozenset({Outcome.FLAKY})
"""Outcomes that make a run red unless an entry of the expectations decided them."""

EXECUTED = frozenset(Outcome) - {
    Outcome.NOT_RUN,
    Outcome.UNSUPPORTED,
    Outcome.BLOCKED_UPSTREAM,
}
"""Outcomes that need the body of the check to have run; a run with none of them is a failure."""


def is_unexpected(outcome: Outcome, listed: bool) -> bool:
    """Whether an outcome makes a run red; `listed`: an entry of the expectations decided it."""
    return outcome in BAD or (outcome in BAD_UNLESS_LISTED and not listed)


class CheckError(Exception):
    """Something in a check raised; the text tells type and message of what it was."""


class LoadProblem(str, Enum):
    """What is known of why a backend does not load, beside what Python or torch say of it."""

    NO_DEVICE = "no_device"
    WRONG_TORCH = "wrong_torch"
    NO_TORCH = "no_torch"
    TOO_SLOW = "too_slow"
    DIED = "died"


class CannotLoad(Exception):
    """The backend could not be brought up; the text is the reason shown to the user."""

    def __init__(self, text: str, problem: LoadProblem | None = None) -> None:
        super().__init__(text)
        self.problem = problem
