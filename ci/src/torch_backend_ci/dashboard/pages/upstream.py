# SPDX-License-Identifier: BSD-3-Clause
"""What changes in PyTorch for backends, step by step, beside the checks that began to fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

from torch_backend_ci.dashboard import documents, paths, steps
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.pages import step as step_page
from torch_backend_ci.dashboard.steps import OnBackend, TorchStep
from torch_backend_ci.document import Natural, Part
from torch_backend_ci.surface.model import Severity
from torch_backend_ci.surface.report.report import words_of

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model


SHOWN = [severity for severity in Severity if severity is not Severity.COSMETIC]


class BackendPart(Part, frozen=True):
    """A backend, with both torches."""

    backend: str
    began_to_fail: Annotated[
        Natural,
        Meta(
            description="Checks that were not bad with the older torch and are with the newer one."
        ),
    ]
    lasting: Annotated[
        Natural, Meta(description="How many of these are bad in the newest run, too.")
    ]
    naming: Annotated[Natural, Meta(description="How many of these name a finding.")]
    standing: Annotated[
        Natural,
        Meta(
            description="How many of these name none, and stand on a part of PyTorch that changed."
        ),
    ]
    unlike: documents.Unlike


class StepPart(Part, frozen=True):
    """From one torch to another."""

    before: str
    after: str
    document: Annotated[
        str | None,
        Meta(description="Of the step, from the root of the site; null without findings."),
    ]
    findings: Annotated[
        documents.Counts | None,
        Meta(description="How many of each severity; null if nobody looked."),
    ]
    backends: tuple[BackendPart, ...]


class Document(Part, tag_field="schema", tag=documents.schema("upstream"), frozen=True):
    """What changed in PyTorch for backends, step by step."""

    steps: Annotated[
        tuple[StepPart, ...], Meta(description="Newest first; those without findings last.")
    ]


class Row(NamedTuple):
    """A step in the table."""

    step: TorchStep
    counts: dict[str, int]
    """Findings by severity."""
    backends: dict[str, OnBackend]


def pages(model: Model) -> Iterator[Page]:
    """The page of all steps, and a page for each of which there are findings."""
    found, unread = list(steps.between(model)), list(steps.unread(model))
    context = {
        "releases": [_row(step) for step in found if not step.is_nightly],
        "nightly": [_row(step) for step in found if step.is_nightly],
        "unread": [_row(step) for step in unread],
        "severities": [(severity.value, words_of(severity, 2)) for severity in SHOWN],
        "backends": model.backends,
    }
    document = Document(tuple(_document(_row(step)) for step in [*found, *unread]))
    yield Page(paths.UPSTREAM, "Upstream", "upstream.html", context, document)
    for step in found:
        yield step_page.page(step)


def _row(step: TorchStep) -> Row:
    counts = (
        {severity.value: count for severity, count in step.report.counts} if step.report else {}
    )
    return Row(step, counts, {one.backend: one for one in step.backends})


def _document(row: Row) -> StepPart:
    step = row.step
    return StepPart(
        before=step.before,
        after=step.after,
        document=paths.api(paths.of_step(step.before, step.after)) if step.report else None,
        findings=row.counts if step.report else None,
        backends=tuple(map(_of_backend, step.backends)),
    )


def _of_backend(one: OnBackend) -> BackendPart:
    unlike = tuple(one.unlike)
    counts = (len(one.failing), one.lasting, one.naming, one.standing)
    return BackendPart(one.backend, *counts, unlike)
