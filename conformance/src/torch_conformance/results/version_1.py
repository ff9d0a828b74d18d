# SPDX-License-Identifier: BSD-3-Clause
"""Reports of version 1, in which a reason was a text: read as the classes of today.

This is the one place that knows how the suite once worded its reasons; its texts of today are
free to change.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from torch_conformance.results import report
from torch_conformance.results.report import Demand, Report, Run
from torch_conformance.spec.ids import REQUIREMENT_ID
from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.outcome import Outcome, is_unexpected
from torch_conformance.spec.reason import (
    Blocked,
    CannotLoadBackend,
    DeclaredUnsupported,
    DeviceGone,
    Environment,
    Excused,
    MissingCapability,
    NoReference,
    NotApplicable,
    Reason,
    Stated,
)
from torch_conformance.spec.result import (
    Attempt,
    CheckId,
    CheckResult,
    Count,
    Level,
    Number,
    Path,
    RequirementId,
    Seconds,
    Tier,
)

SCHEMA = "urn:torch-conformance:report:1"


class Waiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The entry of the expectations file that decided."""

    list: Literal["unsupported", "xfail", "flaky"]
    id: str


class CheckResult1(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A check in a report of version 1."""

    id: CheckId
    requirements: Annotated[tuple[RequirementId, ...], Meta(min_length=1)]
    surface: str
    tier: Tier
    level: Level
    outcome: Outcome
    duration_s: Seconds
    evidence: Path | None = None
    message: str | None = None
    reason: str | None = None
    waiver: Waiver | None = None
    repro: str | None = None
    attempts: tuple[Attempt, ...] = ()
    fallbacks: tuple[str, ...] = ()
    samples: Count | None = None
    shard: Number | None = None


class Report1(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A report of version 1."""

    schema: Literal["urn:torch-conformance:report:1"]
    complete: bool
    run: Run
    totals: dict[Outcome, Count]
    requirements: dict[RequirementId, Demand]
    checks: tuple[CheckResult1, ...]


def migrated(old: Report1) -> Report:
    """The same report as the classes of today."""
    return Report(
        schema=report.SCHEMA,
        complete=old.complete,
        run=old.run,
        totals=old.totals,
        requirements=old.requirements,
        checks=tuple(map(_check, old.checks)),
    )


def _check(old: CheckResult1) -> CheckResult:
    unexpected = is_unexpected(old.outcome, listed=old.waiver is not None)
    blames = _BLAMES.match(old.message or "") if unexpected else None
    return CheckResult(
        id=old.id,
        requirements=old.requirements,
        surface=old.surface,
        tier=old.tier,
        level=old.level,
        outcome=old.outcome,
        duration_s=old.duration_s,
        evidence=old.evidence,
        message=old.message if unexpected else None,
        blames=blames[1] if blames else None,  # type: ignore[arg-type]  # one of the sides
        mismatch=_mismatch(old.message) if unexpected else None,
        reason=_reason(old),
        repro=old.repro if unexpected else None,
        attempts=old.attempts,
        fallbacks=old.fallbacks,
        samples=old.samples,
        shard=old.shard,
    )


_BLAMES = re.compile(r"(harness|descriptor|backend) wrong: ")
_VALUES = re.compile(r".*\b(\d+) of (\d+) elements differ; first at ")
_ENTRY = re.compile(r"(.*) \((\S*)\)", re.DOTALL)
_FLAKY = re.compile(
    r"(.*) \((\S*)\); (?:passed this time|(fail|error|crash|timeout) this time: (.*))", re.DOTALL
)
_NEEDS = re.compile(r"needs capability ('[a-z0-9_]+'(?:, '[a-z0-9_]+')*)")
_DTYPE = re.compile(r"dtype ([a-z0-9_]+) is declared unsupported")
_APPLIES = re.compile(rf"({REQUIREMENT_ID.pattern}) applies (since|until) torch (.+)")


def _mismatch(message: str | None) -> Mismatch | None:
    """Version 1 distinguished differences of values from others, and nothing more."""
    found = _VALUES.match(message or "")
    if found is None:
        return None
    return Mismatch.ALL_VALUES if found[1] == found[2] else Mismatch.SOME_VALUES


def _reason(old: CheckResult1) -> Reason | None:
    if old.waiver:
        return _excused(old.waiver, old.reason or "")
    if old.reason is None or old.outcome is Outcome.PASS or is_unexpected(old.outcome, False):
        return None
    if old.outcome is Outcome.BLOCKED_UPSTREAM:
        issue, _, message = old.reason.partition("; ")
        return Blocked(issue=issue, message=message)
    return _stated(old.reason)


def _excused(waiver: Waiver, text: str) -> Excused:
    flaky = _FLAKY.fullmatch(text) if waiver.list == "flaky" else None
    if flaky:
        text, link, how, message = flaky.groups()
        observed = Outcome(how) if how else Outcome.PASS
        return Excused(
            list=waiver.list,
            entry=waiver.id,
            text=text,
            link=link,
            observed=observed,
            message=message or "",
        )
    entry = _ENTRY.fullmatch(text)
    text, link = entry.groups() if entry else (text, "")
    return Excused(list=waiver.list, entry=waiver.id, text=text, link=link)


_PREFIXES: tuple[tuple[str, type[NoReference | Environment | DeviceGone | CannotLoadBackend]], ...]
_PREFIXES = (
    ("the CPU gives nothing to compare with: ", NoReference),
    ("environment: ", Environment),
    ("device lost: ", DeviceGone),
    ("cannot load: ", CannotLoadBackend),
)


def _stated(text: str) -> Reason:
    if needs := _NEEDS.fullmatch(text):
        return MissingCapability(names=tuple(re.findall(r"\w+", needs[1])))
    if dtype := _DTYPE.fullmatch(text):
        return DeclaredUnsupported(dtype=dtype[1])
    if applies := _APPLIES.fullmatch(text):
        requirement, since_or_until, torch = applies.groups()
        return NotApplicable(requirement=requirement, **{since_or_until: torch})
    for prefix, kind in _PREFIXES:
        if text.startswith(prefix):
            return kind(text=text.removeprefix(prefix))
    return Stated(text=text)
