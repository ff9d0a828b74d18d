# SPDX-License-Identifier: BSD-3-Clause
"""All requirements by surface, with who meets them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

from torch_backend_ci.dashboard import documents, paths, requirements
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.document import Natural, Part
from torch_conformance.spec.catalogue import Requirement
from torch_conformance.spec.chapters import chapters

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model


class RequirementPart(Part, frozen=True):
    """One requirement, and who meets it."""

    id: str
    surface: str
    level: documents.Level
    tier: documents.Tier
    statement: str
    checks: Natural
    standings: Annotated[
        Mapping[documents.Standing, tuple[documents.KeyPart, ...]],
        Meta(description="The columns by what they say."),
    ]
    document: str


class Document(Part, tag_field="schema", tag=documents.schema("requirements"), frozen=True):
    """All requirements: api/requirement/index.json."""

    requirements: tuple[RequirementPart, ...]


class Row(NamedTuple):
    """One requirement."""

    requirement: Requirement
    checks: int
    now: dict[str, list[Key]]
    """The columns by what they say."""


def pages(model: Model) -> Iterator[Page]:
    """The list."""
    ids = requirements.checks(model)
    rows = [
        Row(one, len(ids.get(one.id, ())), requirements.now(model, one.id))
        for one in model.requirements.values()
    ]
    by_surface = {
        surface: [row for row in rows if row.requirement.surface == surface]
        for surface in dict.fromkeys((*chapters(), *(row.requirement.surface for row in rows)))
    }
    context = {
        "surfaces": {surface: mine for surface, mine in by_surface.items() if mine},
        "columns": sum(series.column is not None for series in model.series.values()),
        "count": len(rows),
    }
    document = Document(tuple(map(_entry, rows)))
    yield Page(paths.REQUIREMENTS, "Requirements", "requirements.html", context, document)


def _entry(row: Row) -> RequirementPart:
    it = row.requirement
    return RequirementPart(
        id=it.id,
        surface=it.surface,
        level=it.level,
        tier=it.tier,
        statement=it.statement,
        checks=row.checks,
        standings={
            standing: tuple(documents.KeyPart(**documents.of_key(key)) for key in keys)
            for standing, keys in row.now.items()
        },
        document=paths.api(paths.of_requirement(it.id)),
    )
