# SPDX-License-Identifier: BSD-3-Clause
"""One run of the suite against one backend: from checks to records of the report."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch_conformance.authoring.check import Check
from torch_conformance.expectations import Expectation, Expectations
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import MEANING, Capabilities, State, describe_broken
from torch_conformance.spec.catalogue import LEVELS, TIERS, Requirement
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import BAD, Outcome, is_bad
from torch_conformance.spec.versions import version_in

Record = dict[str, Any]
Emit = Callable[[Result], None]

# What is made of operators that ran by CPU fallback, and the capability that counts them.
FALLBACK_POLICIES = ALLOW, WARN, FORBID = ("allow", "warn", "forbid")
COUNTER = "fallback_counter"


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
    chunk: int = 50
    seed: int = 0
    dtypes: tuple[str, ...] = ("standard",)
    fallback: str = ALLOW
    reruns: int = 0
    stops_early: bool = False
    verify: Verification | None = None
    diagnose: bool = False
    """Whether a crash of a new cause is repeated to find out what it was."""


@dataclass
class Plan:
    """The checks of a run by what is known before it: to run, or already decided."""

    run: list[Check] = field(default_factory=list)
    decided: list[Result] = field(default_factory=list)


class Judge:
    """Turns raw results into records: requirements, upstream gaps and expectations applied."""

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
        reason = self._unsupported_reason(check, capabilities)
        if reason is not None:
            return Result(check.id, Outcome.UNSUPPORTED, reason)
        broken = [name for name in self._needs(check) if name in capabilities.broken]
        if broken:
            text = "; ".join(describe_broken(name, capabilities.broken[name]) for name in broken)
            return Result(check.id, Outcome.FAIL, text)
        return None

    def _needs(self, check: Check) -> list[str]:
        """The capabilities that a check needs."""
        requirements = [self._catalogue[id] for id in check.requirements]
        needs = [*check.needs, *(need for r in requirements for need in r.needs)]
        dtype = dict(check.arguments).get("dtype")
        return list(dict.fromkeys([*needs, *([dtype] if dtype in MEANING else [])]))

    def record(self, check: Check, result: Result) -> Record:
        """The record of one check as the report has it."""
        outcome, message, waiver = self._outcome(check, result)
        if result.flaky:
            outcome, message, waiver = Outcome.FLAKY, result.flaky, None
        requirements = [self._catalogue[id] for id in check.requirements]
        record: Record = {
            "id": check.id,
            "requirements": list(check.requirements),
            "surface": check.surface,
            "tier": min((r.tier for r in requirements), key=TIERS.index),
            "level": min((r.level for r in requirements), key=LEVELS.index),
            "outcome": outcome.value,
            "evidence": result.evidence,
            "duration_s": round(result.duration, 6),
        }
        if waiver:
            record["waiver"] = {"list": waiver.kind, "id": waiver.id}
        if message or outcome is not Outcome.PASS:
            record["message" if is_bad(record) else "reason"] = message or "nothing was said"
        if is_bad(record):
            record["repro"] = result.repro or self._repro(check.id)
        if result.attempts:
            record["attempts"] = result.attempts
        if result.fallbacks:
            record["fallbacks"] = result.fallbacks
        if result.samples is not None:
            record["samples"] = result.samples
        return record

    def _outcome(self, check: Check, result: Result) -> tuple[Outcome, str, Expectation | None]:
        """Outcome and message, and the entry of the expectations that excused the check."""
        outcome, message = result.outcome, result.message
        if outcome is Outcome.PASS and result.fallbacks and self._fallback == FORBID:
            outcome = Outcome.FAIL
            message = f"ran by CPU fallback: {', '.join(result.fallbacks)}"
        if outcome in BAD - {Outcome.DEVICE_LOST}:
            issue = next(self._issues(check), None)
            if issue:
                return Outcome.BLOCKED_UPSTREAM, f"{issue}; {message}", None
        expectation = self._expectations.find(check.id)
        if expectation is None:
            return outcome, message, None
        judged, message = expectation.judge(outcome, message, self._today)
        waived = judged is not outcome and judged not in BAD
        return judged, message, expectation if waived else None

    def is_blocked(self, check: Check, reason: str) -> bool:
        """Whether `reason` is that of a check which PyTorch itself prevents."""
        issue = next(self._issues(check), None)
        return issue is not None and reason.startswith(f"{issue}; ")

    def _issues(self, check: Check) -> Iterator[str]:
        for requirement in (self._catalogue[id] for id in check.requirements):
            blocked = requirement.blocked_upstream
            if blocked and self._applies(blocked.torch):
                yield blocked.issue

    def _applies(self, specifier: str | None) -> bool:
        return specifier is None or version_in(specifier, self._torch_version)

    def _unsupported_reason(self, check: Check, capabilities: Capabilities) -> str | None:
        requirements = [self._catalogue[id] for id in check.requirements]
        dtype = dict(check.arguments).get("dtype")
        missing = [n for n in self._needs(check) if capabilities.state(n) is State.ABSENT]
        if missing:
            return f"needs capability {', '.join(repr(name) for name in missing)}"
        for requirement in requirements:
            if requirement.since and not self._applies(f">={requirement.since}"):
                return f"{requirement.id} applies since torch {requirement.since}"
            if requirement.until and not self._applies(f"<{requirement.until}"):
                return f"{requirement.id} applies until torch {requirement.until}"
        if dtype in self._descriptor.unsupported_dtypes:
            return f"dtype {dtype} is declared unsupported"
        return None
