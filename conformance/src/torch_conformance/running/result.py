# SPDX-License-Identifier: BSD-3-Clause
"""What a worker tells the runner about one check."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from torch_conformance.spec.outcome import Outcome


@dataclass
class Result:
    """The raw result of one check, before expectations and requirements are applied."""

    id: str
    outcome: Outcome
    message: str = ""
    detail: str = ""
    output: str = ""
    """What was written while the check ran, if its outcome is bad."""
    duration: float = 0.0
    evidence: str | None = None
    samples: int | None = None
    repro: str | None = None
    fallbacks: list[str] = field(default_factory=list)
    """Operators that ran by CPU fallback while the check ran."""
    attempts: list[dict[str, Any]] = field(default_factory=list)
    """Outcome and message of every time the check ran, where it may have run several times."""
    flaky: str = ""
    """How the attempts differ, if they do."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "outcome": self.outcome.value}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Result:
        """The inverse of `to_json`."""
        return cls(**{**values, "outcome": Outcome(values["outcome"])})
