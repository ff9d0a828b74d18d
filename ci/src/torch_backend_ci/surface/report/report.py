# SPDX-License-Identifier: BSD-3-Clause
"""What is reported: the findings between two torches, and how they are grouped."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from torch_backend_ci.surface.diff import order
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity, Torch


@dataclass(frozen=True)
class Report:
    """Findings between two torches, sorted worst first."""

    before: Torch
    after: Torch
    findings: tuple[Finding, ...]
    not_compared: tuple[Domain, ...] = ()  # only one of the two was looked at for them
    hidden: int = 0  # cosmetic findings that were left out
    verdict: str = ""  # of a check: the worst, in a line
    notes: tuple[str, ...] = ()  # of a check: what was judged and what not
    not_covered: tuple[str, ...] = ()  # of a check: changed files that no surface covers

    @property
    def title(self) -> str:
        """Which torches."""
        return f"PyTorch {self.before.version} -> {self.after.version}"

    @property
    def counts(self) -> list[tuple[Severity, int]]:
        """How many findings of each severity, worst first."""
        counted = Counter(f.severity for f in self.findings)
        return [(severity, counted[severity]) for severity in Severity if counted[severity]]


def shown(report: Report, surfaces: Sequence[str] = (), *, cosmetic: bool = False) -> Report:
    """The report with only some surfaces (all, if none is named), and perhaps no cosmetic."""
    asked = [f for f in report.findings if not surfaces or f.surface in surfaces]
    kept = [f for f in asked if cosmetic or f.severity is not Severity.COSMETIC]
    return replace(report, findings=tuple(kept), hidden=report.hidden + len(asked) - len(kept))


def by_surface(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Findings grouped by surface: that of the worst finding first, and in each worst first."""
    ranked = sorted(findings, key=order)
    first: dict[str, int] = {}
    for place, finding in enumerate(ranked):
        first.setdefault(finding.surface, place)
    together = sorted(ranked, key=lambda f: first[f.surface])
    return [(surface, list(group)) for surface, group in groupby(together, lambda f: f.surface)]


def summary(report: Report) -> str:
    """The counts in words: "2 compile breaks, 1 silent break, 1 file not covered"."""
    words = [f"{n} {words_of(severity, n)}" for severity, n in report.counts] or ["no finding"]
    if missed := len(report.not_covered):
        words.append(f"{missed} file{'s' * (missed != 1)} not covered")
    return ", ".join(words)


def words_of(severity: Severity, count: int = 1) -> str:
    """A severity as people write it: "new capabilities"."""
    words = severity.value.replace("_", " ")
    if count == 1 or severity in {Severity.SEMANTIC, Severity.DEPRECATED, Severity.COSMETIC}:
        return words
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


def remarks(report: Report) -> list[str]:
    """What a reader must know of what is not shown."""
    said = list(report.notes)
    if report.not_compared:
        domains = ", ".join(domain.value for domain in report.not_compared)
        said.append(f"Not compared, as only one of the two was looked at for it: {domains}.")
    if report.hidden:
        many = "differences are" if report.hidden > 1 else "difference is"
        said.append(f"{report.hidden} cosmetic {many} not shown (--all shows them).")
    return said


def place(declaration: Declaration) -> str:
    """Where a declaration stands: FILE:LINE, or FILE."""
    line = f":{declaration.line}" if declaration.line else ""
    return f"{declaration.file}{line}"


def about(finding: Finding) -> str:
    """The message, less the name that stands in front of it anyway."""
    message = finding.message
    for name in (f"{finding.name}: ", f"{finding.name} "):
        message = message.removeprefix(name)
    return message


def probe(finding: Finding) -> str:
    """What the second opinion is; empty if nobody asked."""
    return f"probe: {finding.probe.replace('_', ' ')}" if finding.probe else ""


def users(finding: Finding) -> str:
    """Who uses it, as far as known; empty if nobody."""
    count = len(finding.used_by)
    many = "backend" if count == 1 else "backends"
    return f"used by {count} known {many}: {', '.join(finding.used_by)}" if count else ""


def plain(text: str) -> str:
    """Text on one line and without what steers a terminal or turns the direction of writing."""
    if text.isprintable():
        return " ".join(text.split())
    kept = (c if unicodedata.category(c) not in {"Cc", "Cf", "Cs"} else " " for c in text)
    return " ".join("".join(kept).split())
