# SPDX-License-Identifier: BSD-3-Clause
"""The report as SARIF 2.1.0, for code scanning: places are paths of PyTorch's repository."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from torch_backend_ci.surface.diff.rules import rule_of
from torch_backend_ci.surface.model import Domain, Finding, Severity
from torch_backend_ci.surface.report.report import Report, plain, remarks
from torch_backend_ci.torch_tree.layout import to_repository

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "surfaceFinding/v1"  # raised whenever Finding.identity means something else
LEVELS = {
    Severity.COMPILE_BREAK: "error",
    Severity.SILENT_BREAK: "error",
    Severity.REBUILD: "warning",
    Severity.SEMANTIC: "warning",
    Severity.NEW_CAPABILITY: "note",
    Severity.DEPRECATED: "note",
    Severity.COSMETIC: "none",
}


def render(report: Report) -> str:
    """The report as a SARIF log of one run."""
    ids = sorted({_rule_id(finding) for finding in report.findings})
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "surface-diff", "rules": [_rule(id_) for id_ in ids]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, ids) for finding in report.findings],
        "properties": {"before": report.before.version, "after": report.after.version},
    }
    if remarks(report):
        run["properties"]["remarks"] = remarks(report)
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1) + "\n"


def _rule_id(finding: Finding) -> str:
    return f"{finding.domain.value}/{finding.rule}"


def _rule(id_: str) -> dict[str, Any]:
    domain, _, name = id_.partition("/")
    rule = rule_of(Domain(domain), name)
    described: dict[str, Any] = {
        "id": id_,
        "shortDescription": {"text": name.replace("_", " ")},
        "fullDescription": {"text": rule.message},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": [rule.severity.value, *rule.concerns]},
    }
    return {**described, "help": {"text": rule.hint}} if rule.hint else described


def _result(finding: Finding, ids: list[str]) -> dict[str, Any]:
    id_ = _rule_id(finding)
    return {
        "ruleId": id_,
        "ruleIndex": ids.index(id_),
        "level": LEVELS[finding.severity],
        "message": {"text": plain(finding.message)},
        "locations": [_location(finding)],
        "partialFingerprints": {FINGERPRINT: finding.identity},
        "properties": {
            "surface": finding.surface,
            "severity": finding.severity.value,
            "before": finding.before.text if finding.before else None,
            "after": finding.after.text if finding.after else None,
            "usedBy": list(finding.used_by),
        },
    }


def _location(finding: Finding) -> dict[str, Any]:
    """The declaration's name, and its place now or, if it is gone, where it was."""
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": finding.name}]}
    declaration = finding.after or finding.before
    path = to_repository(declaration.file) if declaration else None
    if declaration and path:
        physical: dict[str, Any] = {"artifactLocation": {"uri": quote(path)}}
        if declaration.line:
            physical["region"] = {"startLine": declaration.line}
        location["physicalLocation"] = physical
    return location
