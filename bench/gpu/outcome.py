# SPDX-License-Identifier: BSD-3-Clause
"""How a step ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DONE, FAILED, NOT_RUN = "done", "failed", "not run"


@dataclass(frozen=True)
class Outcome:
    """A status, the reason for any but `done`, and what the step found, as plain values."""

    status: str
    reason: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status


def done(**data: Any) -> Outcome:
    """The step did all it is for."""
    return Outcome(DONE, data=data)


def failed(reason: str, **data: Any) -> Outcome:
    """The step found something wrong, or did not come to its end."""
    return Outcome(FAILED, reason, data)


def not_run(reason: str) -> Outcome:
    """What the step needs is not there."""
    return Outcome(NOT_RUN, reason)
