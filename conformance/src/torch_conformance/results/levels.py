# SPDX-License-Identifier: BSD-3-Clause
"""Conformance levels: how much of PyTorch may rely on a backend, by the rules of `levels.yaml`.

The verdict is computed from a report alone, and only from one of a complete run of the standard
selection; whatever else was run has no level, not a low one.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import yaml

from torch_conformance.results.report import Capability, Demand, Report
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.reason import DeclaredUnsupported, MissingCapability, NotApplicable
from torch_conformance.spec.result import CheckResult

FILE = Path(__file__).parent / "levels.yaml"


class Standing(str, Enum):
    """What a run says about one requirement."""

    VERIFIED = "verified"
    BROKEN = "broken"
    WAIVED = "waived"
    UNTESTED = "untested"
    NOT_ASKED = "not asked"

    def __str__(self) -> str:
        return self.value


BLOCKING = (Standing.BROKEN, Standing.WAIVED, Standing.UNTESTED)
# What the descriptor claims excuses musts, so a wrong claim blocks although it is not a must.
CLAIMS = "CLAIM-"
CONTRADICTED = (Standing.BROKEN, Standing.WAIVED)


@dataclass(frozen=True)
class Level:
    """One entry of `levels.yaml`."""

    name: str
    title: str
    promise: str
    tiers: tuple[str, ...]
    capabilities: dict[str, str]


@dataclass(frozen=True)
class Blocker:
    """What stands between a backend and a level: a requirement, or a capability it lacks."""

    what: str
    why: str
    checks: int = 0
    example: str | None = None

    def __str__(self) -> str:
        of = f" ({self.checks} checks, such as {self.example})" if self.example else ""
        return f"{self.what} is {self.why}{of}"


@dataclass(frozen=True)
class Step:
    """How far a backend is with one level, apart from the levels before it."""

    level: Level
    blockers: tuple[Blocker, ...]
    verified: int
    must: int
    not_asked: tuple[str, ...]
    excused: tuple[str, ...]
    """Those of `not_asked` for want of absent capabilities."""
    should_verified: int
    should: int
    standings: Mapping[str, Standing]
    """Of every requirement of the level's own tiers, what the run says."""


@dataclass(frozen=True)
class Verdict:
    """The level of a backend; `name` is None if no level is reached or the run cannot have one."""

    name: str | None
    title: str
    unassessed: str | None
    """Why the run says nothing about levels, or None if it does."""
    steps: tuple[Step, ...]
    without: tuple[str, ...]
    """Capabilities that the backend lacks."""
    standings: Mapping[str, Standing]
    """Of each requirement what the run says; empty if it says nothing about levels."""

    def __str__(self) -> str:
        if self.unassessed:
            return f"not assessed: {self.unassessed}"
        without = f" (without {', '.join(self.without)})" if self.name and self.without else ""
        return f"{self.title}{without}"

    @property
    def next(self) -> Step | None:
        """The first level that is not reached."""
        if self.unassessed:
            return None
        return next((step for step in self.steps if step.blockers), None)


@functools.cache
def every() -> tuple[Level, ...]:
    """The levels, in their order."""
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return tuple(
        Level(name, e["title"], e["promise"], tuple(e["tiers"]), e["capabilities"])
        for name, e in entries.items()
    )


def assess(report: Report) -> Verdict:
    """The verdict on a report."""
    lacking = tuple(report.run.absent)
    unassessed = _why_not(report)
    if unassessed:
        return Verdict(None, "none", unassessed, (), lacking, {})
    results = _by_requirement(report.checks)
    steps = tuple(_steps(report.requirements, results, report.run.capabilities))
    excusing = set(lacking) - _demanded()
    standings = {id: standing(results.get(id, ()), excusing) for id in report.requirements}
    for step in steps:
        standings |= step.standings
    reached = None
    for step in steps:
        if step.blockers:
            break
        reached = step.level
    return Verdict(
        reached.name if reached else None,
        reached.title if reached else "none",
        None,
        steps,
        lacking,
        standings,
    )


def _demanded() -> set[str]:
    """The capabilities that any level demands."""
    return {name for level in every() for name in level.capabilities}


def _why_not(report: Report) -> str | None:
    run = report.run
    if not report.complete:
        return "the run is incomplete"
    if run.options.shard is not None:
        return f"this is shard {run.options.shard} of a run; merge the shards first"
    if run.selection is None:
        return "the report does not say what was selected"
    if run.selection.differs_by:
        return f"not the standard selection, but {', '.join(run.selection.differs_by)}"
    return None


def _by_requirement(results: Iterable[CheckResult]) -> dict[str, list[CheckResult]]:
    found: dict[str, list[CheckResult]] = defaultdict(list)
    for result in results:
        for id in result.requirements:
            found[id].append(result)
    return found


def _steps(
    requirements: Mapping[str, Demand],
    results: Mapping[str, list[CheckResult]],
    capabilities: Mapping[str, Capability],
) -> Iterator[Step]:
    demanded: set[str] = set()
    for level in every():
        demanded |= set(level.capabilities)
        yield _step(level, demanded, requirements, results, capabilities)


def _step(
    level: Level,
    demanded: set[str],
    requirements: Mapping[str, Demand],
    results: Mapping[str, list[CheckResult]],
    capabilities: Mapping[str, Capability],
) -> Step:
    absent = {name for name, entry in capabilities.items() if not entry.value and not entry.broken}
    excusing = absent - demanded
    mine = {id: demand for id, demand in requirements.items() if demand.tier in level.tiers}
    standings = {id: standing(results.get(id, ()), excusing) for id in mine}
    must = [id for id in mine if mine[id].level == "must"]
    should = [id for id in mine if mine[id].level == "should"]
    verified = [id for id in must if standings[id] is Standing.VERIFIED]
    blockers = [
        Blocker(f"capability {name}", _why_missing(capabilities.get(name)))
        for name in level.capabilities
        if name not in capabilities or not capabilities[name].value
    ]
    claims = [id for id in mine if id.startswith(CLAIMS) and standings[id] in CONTRADICTED]
    blockers += [
        _blocker(id, standings[id], results.get(id, []))
        for id in sorted([*must, *claims])
        if standings[id] in BLOCKING
    ]
    not_asked = tuple(sorted(id for id in must if standings[id] is Standing.NOT_ASKED))
    if not verified:
        blockers.append(Blocker(level.title, "without a verified must-level requirement"))
    return Step(
        level,
        tuple(blockers),
        len(verified),
        len(must),
        not_asked,
        tuple(id for id in not_asked if any(map(_lacks, results.get(id, ())))),
        sum(standings[id] is Standing.VERIFIED for id in should),
        len(should),
        standings,
    )


def _why_missing(capability: Capability | None) -> str:
    """Why a level is blocked by a capability that it demands."""
    if capability is not None and capability.broken:
        return f"broken, and the level demands it: {capability.broken}"
    return "not there, which the level demands"


def standing(results: Iterable[CheckResult], excusing: set[str]) -> Standing:
    """What the results of one requirement say; `excusing` capabilities may be absent."""
    kinds = {_kind(result, excusing) for result in results}
    for found in (Standing.BROKEN, Standing.WAIVED, Standing.VERIFIED):
        if found in kinds:
            return found
    return Standing.NOT_ASKED if kinds == {Standing.NOT_ASKED} else Standing.UNTESTED


def _kind(result: CheckResult, excusing: set[str]) -> Standing:
    """What one result says about each of its requirements."""
    if result.unexpected:
        return Standing.BROKEN
    if result.excused:
        return Standing.WAIVED
    if result.outcome is Outcome.PASS:
        return Standing.VERIFIED
    if result.outcome is Outcome.BLOCKED_UPSTREAM:
        return Standing.NOT_ASKED
    return Standing.NOT_ASKED if could_not_be_asked(result, excusing) else Standing.UNTESTED


def claims_absence(result: CheckResult) -> bool:
    """Whether a check is unsupported for want of something that a report or catalogue tells of."""
    return result.outcome is Outcome.UNSUPPORTED and isinstance(
        result.reason, MissingCapability | NotApplicable | DeclaredUnsupported
    )


def could_not_be_asked(result: CheckResult, excusing: set[str]) -> bool:
    """Whether a check was not asked for a reason that lies outside of the check."""
    if isinstance(result.reason, MissingCapability):
        return claims_absence(result) and not excusing.isdisjoint(result.reason.names)
    return claims_absence(result)


def _lacks(result: CheckResult) -> bool:
    """Whether a check was not asked for want of capabilities."""
    return isinstance(result.reason, MissingCapability)


def _blocker(id: str, found: Standing, results: list[CheckResult]) -> Blocker:
    kinds: dict[Standing, Callable[[CheckResult], bool]] = {
        Standing.BROKEN: lambda r: r.unexpected,
        Standing.WAIVED: lambda r: r.excused is not None and not r.unexpected,
        Standing.UNTESTED: lambda r: True,
    }
    mine = sorted(r.id for r in results if kinds[found](r))
    return Blocker(id, str(found), len(mine), mine[0] if mine else None)
