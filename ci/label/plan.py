# SPDX-License-Identifier: BSD-3-Clause
"""Which labels a PR deserves, each with its reasons. Pure: from values to values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci.changed_files import ChangedFile
from ci.errors import CiError
from ci.label.globs import match
from ci.label.rules import Label, Rules
from ci.surface.model import Finding, Severity


@dataclass(frozen=True)
class Touched:
    """The PR changes a file of the label."""

    file: str  # as it is called now
    path: str  # the name that the glob matches: before a renaming it may have been another
    glob: str


@dataclass(frozen=True)
class Found:
    """The PR has a finding that the label stands for."""

    rule: str
    severity: Severity
    surface: str
    name: str  # of the declaration
    message: str
    identity: str


@dataclass(frozen=True)
class Clean:
    """The PR was examined, and no finding is worse than what the label stands for."""

    findings: int


Reason = Touched | Found | Clean


@dataclass(frozen=True)
class PlannedLabel:
    """A label that the PR is to have, and why; there is always a reason."""

    name: str
    reasons: tuple[Reason, ...]


def plan(
    files: Iterable[ChangedFile], findings: Sequence[Finding] | None, rules: Rules
) -> tuple[PlannedLabel, ...]:
    """The labels in the order of labels.yml; no impact is claimed where `findings` are None."""
    files = sorted(set(files), key=lambda file: (file.name, file.previous or ""))
    found = sorted({f.identity: f for f in findings or ()}.values(), key=_order)
    of_concern = [f for f in found if f.severity is not Severity.COSMETIC]
    if unknown := {f.surface for f in of_concern} - rules.surfaces:
        raise CiError(f"no label for the findings' surface {', '.join(sorted(unknown))}")
    by_label: dict[str, list[Reason]] = {
        label.name: [*_touched(label, files), *_found(label, of_concern)] for label in rules.labels
    }
    if findings is not None:
        impact, reasons = _impact(rules, found)
        by_label[impact.name] = reasons
    return tuple(PlannedLabel(name, tuple(why)) for name, why in by_label.items() if why)


def _order(finding: Finding) -> tuple[object, ...]:
    return finding.severity.rank, finding.surface, finding.name, finding.rule, finding.identity


def _touched(label: Label, files: Iterable[ChangedFile]) -> Iterator[Touched]:
    for file in files:
        hits = ((path, match(label.paths, path)) for path in file.names)
        if hit := next(((path, glob) for path, glob in hits if glob), None):
            yield Touched(file.name, hit[0], hit[1].text)


def _found(label: Label, findings: Iterable[Finding]) -> Iterator[Found]:
    return (_reason(finding) for finding in findings if finding.surface == label.surface)


def _impact(rules: Rules, findings: Sequence[Finding]) -> tuple[Label, list[Reason]]:
    """The first, that is the worst, label that stands for the severity of a finding."""
    impacts = [label for label in rules.labels if label.severities]
    for label in impacts[:-1]:
        if reasons := [_reason(f) for f in findings if f.severity in label.severities]:
            return label, list(reasons)
    return impacts[-1], [Clean(len(findings))]


def _reason(finding: Finding) -> Found:
    return Found(
        finding.rule,
        finding.severity,
        finding.surface,
        finding.name,
        finding.message,
        finding.identity,
    )
