# SPDX-License-Identifier: BSD-3-Clause
"""A report as rows of the two relations (schema.py)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from torch_backend_ci.results import accept
from torch_conformance.results import levels
from torch_conformance.results.locations import without_folders
from torch_conformance.results.reader import Document
from torch_conformance.results.report import totals
from torch_conformance.spec.reason import Blocked
from torch_conformance.spec.result import CheckResult

MAX_TEXT = 4000
"""Characters of a message, reason or repro that are kept."""
MAX_FALLBACKS = 100
MAX_OPERATOR = 200
"""Characters of an operator's name that are kept."""
DIGITS = 3
"""Of a check's duration. The rest is noise, and half of the size of a store."""
EVIDENCE: tuple[Literal["native", "composite", "fallback"], ...] = (
    "native",
    "composite",
    "fallback",
)

Row = dict[str, Any]


def run(report: Document) -> Row:
    """The row of the run."""
    return _said(report) | _judged(report) | _counted(report)


def results(report: Document) -> Iterator[Row]:
    """A row for each check, in the order of the report."""
    for result in report.checks:
        excused = result.excused
        yield {
            "run": report.sha256,
            "check_id": result.id,
            "surface": result.surface,
            "tier": result.tier,
            "level": result.level,
            "requirements": result.requirements,
            "outcome": result.outcome.value,
            "evidence": result.evidence,
            "duration_s": float(f"{result.duration_s:.{DIGITS}g}"),
            "message": _cut(result.message),
            "reason": _cut(str(result.reason)) if result.reason else None,
            "issue": _issue(result),
            "mismatch": result.mismatch and result.mismatch.value,
            "repro": _cut(result.repro),
            "fallbacks": _fallbacks(result),
            "waiver_list": excused.list if excused else None,
            "waiver_id": _cut(excused.entry) if excused else None,
            "samples": result.samples,
        }


def _said(report: Document) -> Row:
    """What the report says itself."""
    run, chosen = report.run, report.run.selection
    return {
        "id": report.sha256,
        "backend": accept.label(run),
        "line": accept.line(run.torch.version),
        "name": run.backend,
        "device_type": run.device_type,
        "torch": run.torch.version,
        "torch_git": run.torch.git,
        "suite": run.suite,
        "suite_commit": run.source.commit,
        "suite_digest": run.source.digest,
        "python": run.python,
        "platform": run.platform,
        # Reports of an earlier suite tell whole paths.
        "driver": json.dumps(without_folders(run.driver)) if run.driver else None,
        "devices": run.devices,
        "seed": run.seed,
        "options": msgspec.json.encode(run.options).decode(),
        "started": accept.started(run).strftime("%Y-%m-%d %H:%M:%S.%f"),
        "duration_s": run.duration_s,
        "complete": report.complete,
        "selected": chosen.checks if chosen else None,
        "differs_by": chosen.differs_by if chosen else [],
        "cannot_load": _cut(run.cannot_load),
        "capabilities": {
            name: {"value": entry.value, "source": entry.source}
            for name, entry in run.capabilities.items()
        },
        "broken": {
            name: _cut(entry.broken) for name, entry in run.capabilities.items() if entry.broken
        },
        "descriptor": run.descriptor.sha256 if run.descriptor else None,
        "expectations": run.expectations.sha256 if run.expectations else None,
        "shards": len(run.merged or ()),
    }


def _judged(report: Document) -> Row:
    """What the conformance levels say of it."""
    verdict = levels.assess(report.report)
    return {
        "why_not": _cut(verdict.unassessed),
        "level": verdict.name,
        "title": verdict.title,
        "steps": [_step(step) for step in verdict.steps],
        "without": verdict.without,
        "standings": {id: str(found) for id, found in verdict.standings.items()},
    }


def _step(step: levels.Step) -> Row:
    return {
        "name": step.level.name,
        "title": step.level.title,
        "verified": step.verified,
        "must": step.must,
        "should_verified": step.should_verified,
        "should": step.should,
        "blockers": [vars(blocker) for blocker in step.blockers],
    }


def _counted(report: Document) -> Row:
    surfaces: dict[str, Counter[str]] = defaultdict(Counter)
    for result in report.checks:
        surfaces[result.surface][result.outcome.value] += 1
    evidence = Counter(result.evidence for result in report.checks)
    return {
        "totals": {outcome.value: count for outcome, count in totals(report.checks).items()},
        "evidence": {kind: evidence[kind] for kind in EVIDENCE},
        "surfaces": surfaces,
        "bad": sum(result.unexpected for result in report.checks),
        "stored": len(report.checks),
    }


def _issue(result: CheckResult) -> str | None:
    return _cut(result.reason.issue) if isinstance(result.reason, Blocked) else None


def _fallbacks(result: CheckResult) -> list[str]:
    found = result.fallbacks
    kept = [name[:MAX_OPERATOR] for name in found[:MAX_FALLBACKS]]
    return [*kept, f"... and {len(found) - len(kept)} more"] if len(found) > len(kept) else kept


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n[{len(text) - MAX_TEXT:,} more characters are in the report only.]"
