# SPDX-License-Identifier: BSD-3-Clause
"""What a worker tells the runner about one check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.reason import Reason


@dataclass
class Result:
    """The raw result of one check, before expectations and requirements are applied."""

    id: str
    outcome: Outcome
    message: str = ""
    """What is wrong, for outcomes that are."""
    detail: str = ""
    output: str = ""
    """What was written while the check ran, if its outcome is bad."""
    duration: float = 0.0
    evidence: str | None = None
    samples: int | None = None
    repro: str | None = None
    fallbacks: list[str] = field(default_factory=list)
    """Operators that ran by CPU fallback while the check ran."""
    reason: Reason | None = None
    """Why there is no other outcome, for those that are not wrong."""
    blames: str | None = None
    """Which side is wrong, where the check can tell."""
    mismatch: Mismatch | None = None
    """In what a result differs from the expected one, where the check failed by that."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Result:
        """The inverse of `to_json`."""
        return msgspec.convert(values, cls)
