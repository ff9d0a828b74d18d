# SPDX-License-Identifier: BSD-3-Clause
"""Which labels a PR deserves, each with its reasons. Pure: from values to values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from torch_backend_ci.changed_files import ChangedFile
from torch_backend_ci.document import Natural, Part
from torch_backend_ci.errors import CiError
from torch_backend_ci.label.globs import match
from torch_backend_ci.label.rules import Label, Rules
from torch_backend_ci.surface.model import Finding, Severity


class Touched(Part, tag_field="kind", tag="path", frozen=True):
    """The PR changes a file of the label."""

    file: Annotated[str, Meta(description="As it is called now.")]
    path: Annotated[str, Meta(description="The name that matches: now, or before a renaming.")]
    glob: str


class Found(Part, tag_field="kind", tag="finding", frozen=True):
    """The PR has a finding that the label stands for."""

    rule: str
    severity: Severity
    surface: str
    name: Annotated[str, Meta(description="Of the declaration.")]
    message: str
    identity: Annotated[str, Meta(description="As in findings.schema.json.")]


class Clean(Part, tag_field="kind", tag="clean", frozen=True):
    """No finding of the PR is worse than what the label stands for."""

    findings: Natural


class NotCovered(Part, tag_field="kind", tag="not_covered", frozen=True):
    """The PR changes a file of which nobody can say what it does to backends."""

    file: str


Reason = Touched | Found | Clean | NotCovered


class PlannedLabel(Part, frozen=True):
    """A label that the PR is to have, and why; there is always a reason."""

    name: Annotated[str, Meta(min_length=1, max_length=50)]
    reasons: Annotated[tuple[Reason, ...], Meta(min_length=1)]


class Plan(Part, tag_field="schema_version", tag=1, frozen=True):
    """The labels that `torch-backend-ci label plan` prints, in the order of label/labels.yaml."""

    labels: tuple[PlannedLabel, ...]


def plan(
    files: Iterable[ChangedFile],
    findings: Sequence[Finding] | None,
    rules: Rules,
    not_covered: Iterable[str] = (),
) -> tuple[PlannedLabel, ...]:
    """The labels in the order of labels.yml; no impact is claimed where `findings` are None.

    `not_covered` are the changed files of which having no findings says nothing.
    """
    files = sorted(set(files), key=lambda file: (file.name, file.previous or ""))
    found = sorted({f.identity: f for f in findings or ()}.values(), key=_order)
    of_concern = [f for f in found if f.severity is not Severity.COSMETIC]
    if unknown := {f.surface for f in of_concern} - rules.surfaces:
        raise CiError(f"no label for the findings' surface {', '.join(sorted(unknown))}")
    by_label: dict[str, list[Reason]] = {
        label.name: [*_touched(label, files), *_found(label, of_concern)] for label in rules.labels
    }
    if findings is not None:
        impact, reasons = _impact(rules, found, sorted(set(not_covered)))
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


def _impact(
    rules: Rules, findings: Sequence[Finding], not_covered: Sequence[str]
) -> tuple[Label, list[Reason]]:
    """The first, that is the worst, label that stands for the severity of a finding; the last one,
    that there is no impact, only if everything is covered."""
    impacts = [label for label in rules.labels if label.severities]
    for label in impacts[:-1]:
        if reasons := [_reason(f) for f in findings if f.severity in label.severities]:
            return label, list(reasons)
    if not_covered:
        (unknown,) = (label for label in rules.labels if label.not_covered)
        return unknown, [NotCovered(file) for file in not_covered]
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
