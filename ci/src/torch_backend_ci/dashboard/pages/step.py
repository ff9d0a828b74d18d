# SPDX-License-Identifier: BSD-3-Clause
"""A page for a step from one torch to another: every finding, and what began to fail with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from torch_backend_ci.dashboard import causes, documents, paths
from torch_backend_ci.dashboard.causes import Cause
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.steps import OnBackend, TorchStep
from torch_backend_ci.document import Part
from torch_backend_ci.feed import hints
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.model import Declaration, Finding
from torch_backend_ci.surface.report.report import about, by_surface, place, summary, words_of

MOST_CHECKS = 8
"""Checks of one backend that are named at a finding."""
MOST_SUSPECTS = 4
LONGEST = 1_000
"""Characters of a declaration; the document has all."""


class DeclarationPart(Part, frozen=True):
    """How a declaration was, or is."""

    text: str
    place: Annotated[str, Meta(description="FILE:LINE in the torch tree.")]


class FindingPart(Part, frozen=True):
    """A difference between the two torches."""

    identity: Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
    rule: str
    severity: str
    surface: str
    domain: str
    name: str
    message: str
    before: DeclarationPart | None
    after: DeclarationPart | None
    concerns: tuple[str, ...]
    hint: str | None
    used_by: Annotated[
        tuple[str, ...], Meta(description="Known backends that use the declaration.")
    ]
    failing: Annotated[
        Mapping[str, tuple[str, ...]],
        Meta(description="By backend the checks whose failure names this."),
    ]


class FailingPart(Part, frozen=True):
    """A check that began to fail."""

    check: str
    before: str
    after: str
    detail: str
    named: Annotated[
        tuple[str, ...],
        Meta(description="Identities of the findings that its message names."),
    ]
    parts: Annotated[
        tuple[str, ...],
        Meta(
            description="If it names none: the parts of PyTorch that it stands on and that changed."
        ),
    ]
    mended: Annotated[
        bool, Meta(description="Whether it is not bad in the newest run with the newer torch.")
    ]


class BackendPart(Part, frozen=True):
    """A backend, with both torches."""

    backend: str
    old: documents.RunPart
    new: documents.RunPart
    unlike: documents.Unlike
    besides: Annotated[tuple[str, ...], Meta(description="What differs besides torch, and may.")]
    failing: tuple[FailingPart, ...]


class Document(Part, tag_field="schema", tag=documents.schema("step"), frozen=True):
    """What changed in PyTorch's surface between two torches, and which checks began to fail."""

    before: str
    after: str
    findings: Annotated[tuple[FindingPart, ...], Meta(description="Worst first.")]
    backends: tuple[BackendPart, ...]


@dataclass(frozen=True)
class Told:
    """A finding as it is shown."""

    finding: Finding
    severity: str
    what: str
    hint: str | None
    lines: tuple[tuple[str, str, str], ...]
    """The declaration before and after: sign, text, place."""
    failing: tuple[tuple[str, tuple[str, ...], int], ...]
    """By backend the checks whose failure names it: some of them, and how many more."""


@dataclass(frozen=True)
class Suspected:
    """Checks that began to fail alike, and the findings that they name."""

    cause: Cause
    named: tuple[Finding, ...]
    parts: tuple[str, ...]
    """The parts of PyTorch that they stand on, if they name no finding."""


def page(step: TorchStep) -> Page:
    """The page of a step of which there are findings."""
    if step.report is None:
        raise ValueError(f"no findings from torch {step.before} to {step.after}")
    report = step.report
    titles = {surface.name: surface.title for surface in catalogue.load().surfaces}
    context = {
        "step": step,
        "summary": summary(report),
        "room": causes.ROOM,
        "surfaces": [
            (
                name,
                titles.get(name, ""),
                [told(step, finding) for finding in findings],
                stand(step, name),
            )
            for name, findings in by_surface(report.findings)
        ],
        "severities": [(severity.value, words_of(severity, 2)) for severity, _ in report.counts],
        "counts": Counter((f.surface, f.severity.value) for f in report.findings),
        "backends": [(one, suspected(step, one)) for one in step.backends],
    }
    title = f"torch {step.before} to {step.after}"
    return Page(paths.of_step(step.before, step.after), title, "step.html", context, document(step))


def told(step: TorchStep, finding: Finding) -> Told:
    """A finding with all that is known of it."""
    sides = (("-", finding.before), ("+", finding.after))
    failing = step.suspected.get(finding.identity, {})
    return Told(
        finding,
        words_of(finding.severity),
        about(finding),
        hints.of(finding),
        tuple((sign, side.text[:LONGEST], place(side)) for sign, side in sides if side),
        tuple(
            (backend, tuple(ids[:MOST_CHECKS]), len(ids[MOST_CHECKS:]))
            for backend, ids in failing.items()
        ),
    )


def stand(step: TorchStep, part: str) -> list[tuple[str, int]]:
    """By backend how many of the checks that began to fail stand on a part of PyTorch."""
    counts = ((one.backend, sum(part in f.parts for f in one.failing)) for one in step.backends)
    return [(backend, count) for backend, count in counts if count]


def suspected(step: TorchStep, one: OnBackend) -> list[Suspected]:
    """What began to fail on a backend, by cause, each with what it is perhaps since."""
    findings = {f.identity: f for f in step.report.findings} if step.report else {}
    by_id = {failing.change.id: failing for failing in one.failing}
    results = {failing.change.id: failing.result for failing in one.failing}
    found = []
    for cause in causes.of_comparison((failing.change for failing in one.failing), results):
        named = _ranked(identity for id in cause.ids for identity in by_id[id].named)
        parts = _ranked(part for id in cause.ids for part in by_id[id].parts)
        found.append(Suspected(cause, tuple(findings[identity] for identity in named), parts))
    return found


def _ranked(suspects: Iterable[str]) -> tuple[str, ...]:
    return tuple(suspect for suspect, _ in Counter(suspects).most_common(MOST_SUSPECTS))


def document(step: TorchStep) -> Document:
    """The step for programs."""
    findings = step.report.findings if step.report else ()
    return Document(
        before=step.before,
        after=step.after,
        findings=tuple(_finding(step, finding) for finding in findings),
        backends=tuple(map(_backend, step.backends)),
    )


def _finding(step: TorchStep, finding: Finding) -> FindingPart:
    return FindingPart(
        identity=finding.identity,
        rule=finding.rule,
        severity=finding.severity.value,
        surface=finding.surface,
        domain=finding.domain.value,
        name=finding.name,
        message=finding.message,
        before=_declaration(finding.before),
        after=_declaration(finding.after),
        concerns=finding.concerns,
        hint=hints.of(finding),
        used_by=finding.used_by,
        failing={
            name: tuple(ids) for name, ids in step.suspected.get(finding.identity, {}).items()
        },
    )


def _declaration(declaration: Declaration | None) -> DeclarationPart | None:
    return DeclarationPart(declaration.text, place(declaration)) if declaration else None


def _backend(one: OnBackend) -> BackendPart:
    return BackendPart(
        backend=one.backend,
        old=documents.of_run(one.pair.old),
        new=documents.of_run(one.pair.new),
        unlike=tuple(one.unlike),
        besides=tuple(one.besides),
        failing=tuple(
            FailingPart(
                check=failing.change.id,
                before=failing.change.old,
                after=failing.change.new,
                detail=failing.change.detail,
                named=tuple(failing.named),
                parts=tuple(failing.parts),
                mended=failing.is_mended,
            )
            for failing in one.failing
        ),
    )
