# SPDX-License-Identifier: BSD-3-Clause
"""A report as rows of the two relations (schema.py)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from ci.results import accept
from torch_conformance.results import levels
from torch_conformance.results.locations import without_folders
from torch_conformance.results.reader import Document, Record
from torch_conformance.results.report import totals
from torch_conformance.spec.outcome import is_bad

MAX_TEXT = 4000
"""Characters of a message, reason or repro that are kept."""
MAX_FALLBACKS = 100
MAX_OPERATOR = 200
"""Characters of an operator's name that are kept."""
DIGITS = 3
"""Of a check's duration. The rest is noise, and half of the size of a store."""
EVIDENCE = ("native", "composite", "fallback")

Row = dict[str, Any]


def run(report: Document) -> Row:
    """The row of the run."""
    return _said(report) | _judged(report) | _counted(report)


def results(report: Document) -> Iterator[Row]:
    """A row for each check, in the order of the report."""
    for record in report.checks:
        waiver = record.get("waiver") or {}
        yield {
            "run": report.sha256,
            "check_id": record["id"],
            "surface": record["surface"],
            "tier": record["tier"],
            "level": record["level"],
            "requirements": record["requirements"],
            "outcome": record["outcome"],
            "evidence": record.get("evidence"),
            "duration_s": float(f"{record['duration_s']:.{DIGITS}g}"),
            "message": _cut(record.get("message")),
            "reason": _cut(record.get("reason")),
            "repro": _cut(record.get("repro")),
            "fallbacks": _fallbacks(record),
            "waiver_list": waiver.get("list"),
            "waiver_id": _cut(waiver.get("id")),
            "samples": record.get("samples"),
        }


def _said(report: Document) -> Row:
    """What the report says itself."""
    run = report.run
    selection = run["selection"] or {}
    return {
        "id": report.sha256,
        "backend": accept.label(run),
        "line": accept.line(run["torch"]["version"]),
        "name": run["backend"],
        "device_type": run["device_type"],
        "torch": run["torch"]["version"],
        "torch_git": run["torch"]["git"],
        "suite": run["suite"],
        "suite_commit": run["source"]["commit"],
        "suite_digest": run["source"]["digest"],
        "python": run["python"],
        "platform": run["platform"],
        # Reports of an earlier suite tell whole paths.
        "driver": json.dumps(without_folders(run["driver"])) if run.get("driver") else None,
        "devices": run.get("devices", []),
        "seed": run["seed"],
        "options": json.dumps(run["options"]),
        "started": accept.started(run).strftime("%Y-%m-%d %H:%M:%S.%f"),
        "duration_s": run["duration_s"],
        "complete": report.complete,
        "selected": selection.get("checks"),
        "differs_by": selection.get("differs_by", []),
        "cannot_load": _cut(run.get("cannot_load")),
        "capabilities": {
            name: {"value": entry["value"], "source": entry["source"]}
            for name, entry in run["capabilities"].items()
        },
        "descriptor": (run["descriptor"] or {}).get("sha256"),
        "expectations": (run["expectations"] or {}).get("sha256"),
        "shards": len(run.get("merged", [])),
    }


def _judged(report: Document) -> Row:
    """What the conformance levels say of it."""
    verdict = levels.assess(report.content)
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
    for record in report.checks:
        surfaces[record["surface"]][record["outcome"]] += 1
    evidence = Counter(record.get("evidence") for record in report.checks)
    return {
        "totals": totals(report.checks),
        "evidence": {kind: evidence[kind] for kind in EVIDENCE},
        "surfaces": surfaces,
        "bad": sum(map(is_bad, report.checks)),
        "stored": len(report.checks),
    }


def _fallbacks(record: Record) -> list[str]:
    found = record.get("fallbacks", [])
    kept = [name[:MAX_OPERATOR] for name in found[:MAX_FALLBACKS]]
    return [*kept, f"... and {len(found) - len(kept)} more"] if len(found) > len(kept) else kept


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n[{len(text) - MAX_TEXT:,} more characters are in the report only.]"
