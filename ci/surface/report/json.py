# SPDX-License-Identifier: BSD-3-Clause
"""The report for programs: schema/findings.schema.json says what is in it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

from ci.errors import CiError
from ci.surface.model import SCHEMA_VERSION, Declaration, Domain, Finding, Severity, Torch
from ci.surface.report.report import Report

SCHEMA = Path(__file__).parents[1] / "schema" / "findings.schema.json"


def render(report: Report) -> str:
    """The report as JSON, one line per finding."""
    head = {
        "schema_version": SCHEMA_VERSION,
        "before": _torch(report.before),
        "after": _torch(report.after),
        "not_compared": [domain.value for domain in report.not_compared],
        "hidden": report.hidden,
        "verdict": report.verdict,
        "notes": list(report.notes),
    }
    lines = [json.dumps(_finding(finding), sort_keys=True) for finding in report.findings]
    body = ",\n".join(lines)
    findings = f"[\n{body}\n]" if lines else "[]"
    return json.dumps(head, indent=1)[:-2] + f',\n "findings": {findings}\n}}\n'


def read(path: Path) -> Report:
    """The report in a file; CiError if it is not one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CiError(f"{path}: not a report of findings: {error}") from error
    return parse(document, str(path))


def parse(document: Any, path: str) -> Report:
    """The report that plain values are; CiError if they are none."""
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version is not None and version != SCHEMA_VERSION:
        raise CiError(
            f"{path}: findings of schema version {version}; this is {SCHEMA_VERSION}. "
            "Make the report anew with `surface diff --format json`."
        )
    if wrong := next(_validator().iter_errors(document), None):
        place = "/".join(map(str, wrong.absolute_path)) or "the document"
        raise CiError(f"{path}: not a report of findings: {place}: {wrong.message[:200]}")
    return Report(
        before=Torch(**document["before"]),
        after=Torch(**document["after"]),
        findings=tuple(map(_read_finding, document["findings"])),
        not_compared=tuple(map(Domain, document["not_compared"])),
        hidden=document["hidden"],
        verdict=document["verdict"],
        notes=tuple(document["notes"]),
    )


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _torch(torch: Torch) -> dict[str, Any]:
    return {"version": torch.version, "git_version": torch.git_version}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "identity": finding.identity,
        "rule": finding.rule,
        "severity": finding.severity.value,
        "surface": finding.surface,
        "domain": finding.domain.value,
        "name": finding.name,
        "message": finding.message,
        "before": _declaration(finding.before),
        "after": _declaration(finding.after),
        "concerns": list(finding.concerns),
        "hint": finding.hint,
        "used_by": list(finding.used_by),
        "probe": finding.probe,
    }


def _declaration(declaration: Declaration | None) -> dict[str, Any] | None:
    if declaration is None:
        return None
    return {
        "kind": declaration.kind,
        "name": declaration.name,
        "surface": declaration.surface,
        "text": declaration.text,
        "file": declaration.file,
        "line": declaration.line,
        "facts": dict(declaration.facts),
    }


def _read_finding(document: dict[str, Any]) -> Finding:
    domain = Domain(document["domain"])
    before, after = (
        Declaration(domain=domain, **document[side]) if document[side] else None
        for side in ("before", "after")
    )
    return Finding(
        rule=document["rule"],
        severity=Severity(document["severity"]),
        surface=document["surface"],
        domain=domain,
        name=document["name"],
        message=document["message"],
        before=before,
        after=after,
        concerns=tuple(document["concerns"]),
        hint=document["hint"],
        used_by=tuple(document["used_by"]),
        probe=document["probe"],
    )
