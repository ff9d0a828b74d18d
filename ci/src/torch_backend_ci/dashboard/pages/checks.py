# SPDX-License-Identifier: BSD-3-Clause
"""All surfaces: how many checks each has, and how they come out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

from torch_backend_ci.dashboard import columns, documents, paths
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.pages.surface import by_surface
from torch_backend_ci.document import Natural, Part

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model


class SurfacePart(Part, frozen=True):
    """One surface, over all columns."""

    name: str
    checks: Natural
    bad: Annotated[Natural, Meta(description="How many are bad in a column.")]
    requirements: Natural
    totals: Annotated[
        documents.Counts,
        Meta(description="How many results of all columns had each outcome."),
    ]
    document: str


class Document(Part, tag_field="schema", tag=documents.schema("checks"), frozen=True):
    """All surfaces: api/checks.json."""

    surfaces: tuple[SurfacePart, ...]


class Surface(NamedTuple):
    """One surface, over all columns."""

    name: str
    checks: int
    bad: int
    """How many of them are bad in a column."""
    requirements: int
    totals: dict[str, int]
    """How many results of the columns had each outcome."""


def pages(model: Model) -> Iterator[Page]:
    """The list of surfaces."""
    found = [_surface(model, name, ids) for name, ids in by_surface(model).items()]
    document = Document(
        tuple(SurfacePart(*one, paths.api(paths.of_surface(one.name))) for one in found)
    )
    context = {
        "surfaces": found,
        "columns": sum(series.column is not None for series in model.series.values()),
    }
    yield Page(paths.CHECKS, "Checks", "checks.html", context, document)


def _surface(model: Model, name: str, ids: list[str]) -> Surface:
    made = columns.of(model)
    totals: Counter[str] = Counter()
    for series in model.series.values():
        if series.column:
            totals.update(series.column.surfaces.get(name, {}))
    return Surface(
        name,
        len(ids),
        columns.count_bad(made, ids),
        sum(requirement.surface == name for requirement in model.requirements.values()),
        {outcome: count for outcome, count in totals.items() if count},
    )
