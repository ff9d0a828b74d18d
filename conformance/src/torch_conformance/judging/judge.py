# SPDX-License-Identifier: BSD-3-Clause
"""The judgement of checks: what the runner found, by requirements, issues and expectations."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from torch_conformance.authoring.check import Check
from torch_conformance.expectations import Expectations
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import MEANING, Capabilities, State, describe_broken
from torch_conformance.spec.catalogue import LEVELS, TIERS, Requirement
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import BAD, Outcome, is_unexpected
from torch_conformance.spec.reason import (
    Blocked,
    DeclaredUnsupported,
    Excused,
    MissingCapability,
    NotApplicable,
    Reason,
)
from torch_conformance.spec.result import CheckResult
from torch_conformance.spec.versions import version_in

# What is made of operators that ran by CPU fallback, and the capability that counts them.
FALLBACK_POLICIES = ALLOW, WARN, FORBID = ("allow", "warn", "forbid")
COUNTER = "fallback_counter"
# Checks before a worker is replaced: a new one costs 0.3 s of CPU time on puone, as much as thirty
# of most checks, and much more where there is a real device.
CHUNK = 1000
# What stands in a report where an exception has no text.
NOTHING_SAID = "nothing was said"


@dataclass(frozen=True)
class Verification:
    """How many rounds to run, and the seed of the first; those of the others follow by one."""

    rounds: int
    seed: int

    @property
    def seeds(self) -> range:
        """The seeds of the rounds."""
        return range(self.seed, self.seed + self.rounds)


@dataclass(frozen=True)
class Options:
    """How to run: isolation, processes, seed."""

    isolate: str = "chunk"
    workers: int = 1
    chunk: int = CHUNK
    seed: int = 0
    dtypes: tuple[str, ...] = ("standard",)
    fallback: str = ALLOW
    reruns: int = 0
    stops_early: bool = False
    verify: Verification | None = None
    diagnose: bool = False
    """Whether a crash of a new cause is repeated to find out what it was."""


@dataclass(frozen=True)
class Judged:
    """The result of a check, and what the runner said, of which the terminal shows more."""

    result: CheckResult
    raw: Result

    def changed(self, **fields: object) -> Judged:
        """With other fields of the result."""
        return replace(self, result=msgspec.structs.replace(self.result, **fields))


Emit = Callable[[Judged], None]


@dataclass
class Plan:
    """The checks of a run by what is known before it: to run, or already decided."""

    run: list[Check] = field(default_factory=list)
    decided: list[Result] = field(default_factory=list)


def needs(check: Check, catalogue: Mapping[str, Requirement]) -> list[str]:
    """The capabilities that a check needs."""
    requirements = [catalogue[id] for id in check.requirements]
    needed = [*check.needs, *(need for r in requirements for need in r.needs)]
    dtype = dict(check.arguments).get("dtype")
    return list(dict.fromkeys([*needed, *([dtype] if dtype in MEANING else [])]))


class Judge:
    """Turns raw results into results: requirements, upstream issues and expectations applied."""

    def __init__(
        self,
        descriptor: Descriptor,
        catalogue: dict[str, Requirement],
        expectations: Expectations,
        torch_version: str,
        repro: Callable[[str], str],
        fallback: str = ALLOW,
    ) -> None:
        self._descriptor = descriptor
        self._catalogue = catalogue
        self._expectations = expectations
        self._torch_version = torch_version
        self._repro = repro
        self._fallback = fallback
        self._today = datetime.date.today()

    def plan(self, checks: Iterable[Check], capabilities: Capabilities) -> Plan:
        """Set apart the checks that need what the backend or this torch does not have.

        A check that needs a broken capability fails without running.
        """
        plan = Plan()
        for check in checks:
            decided = self._decided(check, capabilities)
            if decided is None:
                plan.run.append(check)
            else:
                plan.decided.append(decided)
        return plan

    def _decided(self, check: Check, capabilities: Capabilities) -> Result | None:
        reason = self._why_unsupported(check, capabilities)
        if reason is not None:
            return Result(check.id, Outcome.UNSUPPORTED, reason=reason)
        broken = [name for name in needs(check, self._catalogue) if name in capabilities.broken]
        if broken:
            text = "; ".join(describe_broken(name, capabilities.broken[name]) for name in broken)
            return Result(check.id, Outcome.FAIL, text)
        return None

    def judge(self, check: Check, raw: Result) -> Judged:
        """The result of one check; called once for each time that a check ran."""
        outcome, message, reason = self._outcome(check, raw)
        unexpected = is_unexpected(outcome, listed=isinstance(reason, Excused))
        requirements = [self._catalogue[id] for id in check.requirements]
        result = CheckResult(
            id=check.id,
            requirements=check.requirements,
            surface=check.surface,
            tier=min((r.tier for r in requirements), key=TIERS.index),
            level=min((r.level for r in requirements), key=LEVELS.index),
            outcome=outcome,
            duration_s=round(raw.duration, 6),
            evidence=raw.evidence,  # type: ignore[arg-type]  # one of the words, by `evidence`
            message=message or NOTHING_SAID if unexpected else None,
            blames=raw.blames if unexpected else None,  # type: ignore[arg-type]  # by `blames`
            mismatch=raw.mismatch if unexpected else None,
            reason=reason,
            repro=raw.repro or self._repro(check.id) if unexpected else None,
            fallbacks=tuple(raw.fallbacks),
            samples=raw.samples,
        )
        return Judged(result, raw)

    def _outcome(self, check: Check, raw: Result) -> tuple[Outcome, str, Reason | None]:
        """Outcome, what is wrong, and why nothing is wrong where that is so."""
        outcome, message = raw.outcome, raw.message
        if outcome is Outcome.PASS and raw.fallbacks and self._fallback == FORBID:
            outcome = Outcome.FAIL
            message = f"ran by CPU fallback: {', '.join(raw.fallbacks)}"
        if outcome in BAD - {Outcome.DEVICE_LOST}:
            issue = next(self.issues(check), None)
            if issue:
                return Outcome.BLOCKED_UPSTREAM, "", Blocked(issue=issue, message=message)
        expectation = self._expectations.find(check.id)
        if expectation is None:
            return outcome, message, raw.reason
        judged, message, excused = expectation.judge(outcome, message, self._today)
        return judged, message, excused or raw.reason

    def issues(self, check: Check) -> Iterator[str]:
        """The issues of PyTorch that prevent a check with this torch."""
        for requirement in (self._catalogue[id] for id in check.requirements):
            blocked = requirement.blocked_upstream
            if blocked and self._applies(blocked.torch):
                yield blocked.issue

    def _applies(self, specifier: str | None) -> bool:
        return specifier is None or version_in(specifier, self._torch_version)

    def _why_unsupported(self, check: Check, capabilities: Capabilities) -> Reason | None:
        requirements = [self._catalogue[id] for id in check.requirements]
        dtype = dict(check.arguments).get("dtype")
        needed = needs(check, self._catalogue)
        missing = tuple(n for n in needed if capabilities.state(n) is State.ABSENT)
        if missing:
            return MissingCapability(names=missing)
        for requirement in requirements:
            if requirement.since and not self._applies(f">={requirement.since}"):
                return NotApplicable(requirement=requirement.id, since=requirement.since)
            if requirement.until and not self._applies(f"<{requirement.until}"):
                return NotApplicable(requirement=requirement.id, until=requirement.until)
        if dtype is not None and dtype in self._descriptor.dtypes.unsupported:
            return DeclaredUnsupported(dtype=dtype)
        return None
