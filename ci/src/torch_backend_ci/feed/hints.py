# SPDX-License-Identifier: BSD-3-Clause
"""What to do about a finding: the hint of its rule, else that of hints.yaml."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from torch_backend_ci.surface.diff.rules import anywhere
from torch_backend_ci.surface.model import Domain, Finding, Severity

FILE = Path(__file__).with_name("hints.yaml")
ANYWHERE = "anywhere"  # rules that every domain has


def of(finding: Finding) -> str | None:
    """The migration hint; None for a rule that this version of the code does not know."""
    return finding.hint or listed(finding.domain, finding.rule, finding.severity)


def listed(domain: Domain, rule: str, severity: Severity) -> str | None:
    """What hints.yaml says."""
    table = ANYWHERE if rule in anywhere.RULES else domain.value
    by_rule: Mapping[str, str] = _hints()["by_rule"].get(table, {})
    by_severity: Mapping[str, str] = _hints()["by_severity"]
    return by_rule.get(rule) or by_severity.get(severity.value)


@functools.cache
def _hints() -> Any:
    return yaml.load(FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)
