# SPDX-License-Identifier: BSD-3-Clause
"""What changes in PyTorch for backends, step by step, beside the checks that began to fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ci.dashboard import documents, paths, steps
from ci.dashboard.page import Page
from ci.dashboard.pages import step as step_page
from ci.dashboard.steps import OnBackend, TorchStep
from ci.surface.model import Severity
from ci.surface.report.report import words_of

if TYPE_CHECKING:
    from ci.dashboard.read import Model


SHOWN = [severity for severity in Severity if severity is not Severity.COSMETIC]


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
    document = {
        "schema": documents.schema("upstream"),
        "steps": [_document(_row(step)) for step in [*found, *unread]],
    }
    yield Page(paths.UPSTREAM, "Upstream", "upstream.html", context, document)
    for step in found:
        yield step_page.page(step)


def _row(step: TorchStep) -> Row:
    counts = (
        {severity.value: count for severity, count in step.report.counts} if step.report else {}
    )
    return Row(step, counts, {one.backend: one for one in step.backends})


def _document(row: Row) -> dict[str, Any]:
    step = row.step
    page = paths.api(paths.of_step(step.before, step.after)) if step.report else None
    return {
        "before": step.before,
        "after": step.after,
        "document": page,
        "findings": row.counts if step.report else None,
        "backends": [_of_backend(one) for one in step.backends],
    }


def _of_backend(one: OnBackend) -> dict[str, Any]:
    return {
        "backend": one.backend,
        "began_to_fail": len(one.failing),
        "naming": one.naming,
        "standing": one.standing,
        "unlike": list(one.unlike),
    }
