# SPDX-License-Identifier: BSD-3-Clause
"""The result of one check, as the runner, the report, the gate and the dashboard know it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from torch_conformance.spec.catalogue import LEVELS, TIERS
from torch_conformance.spec.ids import ID, REQUIREMENT_ID
from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.outcome import Outcome, is_unexpected
from torch_conformance.spec.reason import Blocked, Excused, Reason


def _one_of(names: tuple[str, ...]) -> Meta:
    return Meta(pattern=f"^({'|'.join(names)})$")


CheckId = Annotated[str, Meta(pattern=f"^{ID.pattern}$")]
RequirementId = Annotated[str, Meta(pattern=f"^{REQUIREMENT_ID.pattern}$")]
Tier = Annotated[str, _one_of(TIERS)]
Level = Annotated[str, _one_of(LEVELS)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0)]
Number = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0)]
Path = Literal["native", "composite", "fallback"]
#: Which side a failure of the smoke tier blames.
Side = Literal["harness", "descriptor", "backend"]


class Attempt(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One of several times that a check ran."""

    outcome: Outcome
    message: str | None = None
    round: Number | None = None
    """Number of the round of --verify."""
    seed: int | None = None
    """Seed of the round: --verify-seed."""

    @property
    def unexpected(self) -> bool:
        """Whether it was not as it should be; no expectation is applied to a flaky one."""
        return is_unexpected(self.outcome, listed=False)

    def __str__(self) -> str:
        first, _, _ = (self.message or "").partition("\n")
        return f"{self.outcome} {first}".rstrip()


class CheckResult(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """How one check ended, judged by requirements, upstream issues and expectations."""

    id: CheckId
    requirements: Annotated[tuple[RequirementId, ...], Meta(min_length=1)]
    surface: str
    tier: Tier
    """The first tier of the requirements."""
    level: Level
    """The strictest level of the requirements."""
    outcome: Outcome
    duration_s: Seconds
    evidence: Path | None = None
    """How the device executed it, where the check found out."""
    message: str | None = None
    """What is wrong, for outcomes that are unexpected."""
    blames: Side | None = None
    """Which side is wrong, where the check can tell."""
    mismatch: Mismatch | None = None
    """In what a result differs from the expected one, where the check failed by that."""
    reason: Reason | None = None
    """Why it did not pass although nothing is wrong."""
    repro: str | None = None
    """Code or a command that repeats a failure."""
    attempts: tuple[Attempt, ...] = ()
    """Every time that the check ran, if it may have run several times. One: it was not run again,
    because enough of its cause or of the run were."""
    fallbacks: tuple[str, ...] = ()
    """Operators that ran by CPU fallback during the check."""
    samples: Count | None = None
    """Verifications inside the check."""
    shard: Number | None = None
    """Number of the shard that ran the check, in a merged report."""

    @property
    def excused(self) -> Excused | None:
        """The entry of the expectations that decided the outcome, if one did."""
        return self.reason if isinstance(self.reason, Excused) else None

    @property
    def unexpected(self) -> bool:
        """Whether it makes a run red."""
        return is_unexpected(self.outcome, listed=self.excused is not None)

    @property
    def text(self) -> str:
        """For people: what is wrong, or why it did not pass."""
        return self.message or (str(self.reason) if self.reason else "")

    @property
    def observed(self) -> str:
        """What the check itself said when it failed, also where that was excused."""
        if isinstance(self.reason, Blocked | Excused):
            return self.reason.message
        return self.message or ""
