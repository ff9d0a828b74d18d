# SPDX-License-Identifier: BSD-3-Clause
"""Conformance levels: how much of PyTorch may rely on a backend, by the rules of `levels.yaml`.

The verdict is computed from a report alone, and only from one of a complete run of the standard
selection; whatever else was run has no level, not a low one.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from torch_conformance.spec.ids import REQUIREMENT_ID
from torch_conformance.spec.outcome import Outcome, is_bad

FILE = Path(__file__).parent / "levels.yaml"

Record = Mapping[str, Any]

_NEEDS = re.compile(r"needs capability ((?:'[a-z0-9_]+'(?:, )?)+)")
# Reasons that the descriptor and the catalogue give, in the words of `Judge.plan`.
_NOT_ASKED = re.compile(
    r"dtype [a-z0-9_]+ is declared unsupported|"
    rf"{REQUIREMENT_ID.pattern} applies (since|until) torch "
)


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


def assess(content: Mapping[str, Any]) -> Verdict:
    """The verdict on a report."""
    run = content["run"]
    lacking = {name for name, entry in run["capabilities"].items() if not entry["value"]}
    unassessed = _why_not(content)
    if unassessed:
        return Verdict(None, "none", unassessed, (), tuple(sorted(lacking)), {})
    records = _by_requirement(content["checks"])
    steps = tuple(_steps(content["requirements"], records, run["capabilities"]))
    standings = {
        id: standing(records.get(id, ()), lacking - _demanded()) for id in content["requirements"]
    }
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
        tuple(sorted(lacking)),
        standings,
    )


def _demanded() -> set[str]:
    """The capabilities that any level demands."""
    return {name for level in every() for name in level.capabilities}


def _why_not(content: Mapping[str, Any]) -> str | None:
    run = content["run"]
    if not content["complete"]:
        return "the run is incomplete"
    if run["options"]["shard"] is not None:
        return f"this is shard {run['options']['shard']} of a run; merge the shards first"
    if run["selection"] is None:
        return "the report does not say what was selected"
    if run["selection"]["differs_by"]:
        return f"not the standard selection, but {', '.join(run['selection']['differs_by'])}"
    return None


def _by_requirement(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for id in record["requirements"]:
            found[id].append(record)
    return found


def _steps(
    requirements: Mapping[str, Mapping[str, str]],
    records: Mapping[str, list[Record]],
    capabilities: Mapping[str, Any],
) -> Iterator[Step]:
    demanded: set[str] = set()
    for level in every():
        demanded |= set(level.capabilities)
        yield _step(level, demanded, requirements, records, capabilities)


def _step(
    level: Level,
    demanded: set[str],
    requirements: Mapping[str, Mapping[str, str]],
    records: Mapping[str, list[Record]],
    capabilities: Mapping[str, Any],
) -> Step:
    excusing = {
        n for n, entry in capabilities.items() if not entry["value"] and "broken" not in entry
    } - demanded
    mine = {id: entry for id, entry in requirements.items() if entry["tier"] in level.tiers}
    standings = {id: standing(records.get(id, ()), excusing) for id in mine}
    must = [id for id in mine if mine[id]["level"] == "must"]
    should = [id for id in mine if mine[id]["level"] == "should"]
    verified = [id for id in must if standings[id] is Standing.VERIFIED]
    blockers = [
        Blocker(f"capability {name}", _why_missing(capabilities.get(name, {})))
        for name in level.capabilities
        if not capabilities.get(name, {}).get("value")
    ]
    claims = [id for id in mine if id.startswith(CLAIMS) and standings[id] in CONTRADICTED]
    blockers += [
        _blocker(id, standings[id], records.get(id, []))
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
        tuple(id for id in not_asked if any(excusing & needed(r) for r in records.get(id, ()))),
        sum(standings[id] is Standing.VERIFIED for id in should),
        len(should),
        standings,
    )


def _why_missing(capability: Mapping[str, Any]) -> str:
    """Why a level is blocked by a capability that it demands."""
    if "broken" in capability:
        return f"broken, and the level demands it: {capability['broken']}"
    return "not there, which the level demands"


def standing(records: Iterable[Record], excusing: set[str]) -> Standing:
    """What the records of one requirement say; `excusing` capabilities may be absent."""
    kinds = {_kind(record, excusing) for record in records}
    for found in (Standing.BROKEN, Standing.WAIVED, Standing.VERIFIED):
        if found in kinds:
            return found
    return Standing.NOT_ASKED if kinds == {Standing.NOT_ASKED} else Standing.UNTESTED


def _kind(record: Record, excusing: set[str]) -> Standing:
    """What one record says about each of its requirements."""
    outcome = Outcome(record["outcome"])
    if is_bad(record):
        return Standing.BROKEN
    if "waiver" in record:
        return Standing.WAIVED
    if outcome is Outcome.PASS:
        return Standing.VERIFIED
    if outcome is Outcome.BLOCKED_UPSTREAM:
        return Standing.NOT_ASKED
    return Standing.NOT_ASKED if could_not_be_asked(record, excusing) else Standing.UNTESTED


def needed(record: Record) -> set[str]:
    """The missing capabilities that make a check unsupported."""
    named = _NEEDS.fullmatch(record["reason"])
    return set(re.findall(r"'([a-z0-9_]+)'", named[1])) if named else set()


def claims_absence(record: Record) -> bool:
    """Whether a check is unsupported for want of something that a report or catalogue tells of."""
    if record["outcome"] != Outcome.UNSUPPORTED or "waiver" in record:
        return False
    return bool(needed(record) or _NOT_ASKED.match(record["reason"]))


def could_not_be_asked(record: Record, excusing: set[str]) -> bool:
    """Whether a check was not asked for a reason that lies outside of the check."""
    if record["outcome"] != Outcome.UNSUPPORTED:
        return False
    if needed(record):
        return bool(excusing & needed(record))
    return _NOT_ASKED.match(record["reason"]) is not None


def _blocker(id: str, found: Standing, records: list[Record]) -> Blocker:
    kinds = {
        Standing.BROKEN: is_bad,
        Standing.WAIVED: lambda r: _kind(r, set()) is Standing.WAIVED,
        Standing.UNTESTED: lambda r: True,
    }
    mine = sorted(r["id"] for r in records if kinds[found](r))
    return Blocker(id, str(found), len(mine), mine[0] if mine else None)
