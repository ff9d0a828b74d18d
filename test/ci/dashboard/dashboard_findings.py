# SPDX-License-Identifier: BSD-3-Clause
"""Findings between torches, as they are in a store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import dashboard_oracle
from synthetic import Content

from torch_backend_ci.dashboard.model import Findings
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity, Torch
from torch_backend_ci.surface.report import json as findings_json
from torch_backend_ci.surface.report.report import Report


def finding(
    name: str = "c10::Allocator::copy_data",
    surface: str = "allocator",
    severity: Severity = Severity.SILENT_BREAK,
    message: str = "c10::Allocator::copy_data takes `bytes` first.",
    hint: str | None = None,
) -> Finding:
    """One that concerns whoever overrides a method."""
    before, after = (
        Declaration(Domain.CPP, "method", name, surface, f"void {name}({argument})", "a.h", 12)
        for argument in ("int", "long")
    )
    return Finding(
        "virtual_signature_changed",
        severity,
        surface,
        Domain.CPP,
        name,
        message,
        before,
        after,
        concerns=("overriders",),
        hint=hint,
        used_by=("torch_npu",),
    )


def between(
    before: str, after: str, *found: Finding, git: tuple[str | None, str | None] = (None, None)
) -> Findings:
    """The document of a step."""
    report = Report(Torch(before, git[0]), Torch(after, git[1]), found)
    text = findings_json.render(report)
    id = hashlib.sha256(text.encode()).hexdigest()
    return Findings(id, before, after, json.loads(text))


def model(reports: Iterable[Content], *findings: Findings) -> Model:
    """The model of a store with these."""
    made = dashboard_oracle.model(reports)
    made.findings = findings
    return made
