# SPDX-License-Identifier: BSD-3-Clause
"""The page of a requirement: what is asked and why, who does it since when, and what checks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from torch_backend_ci.dashboard import columns, documents, paths, requirements
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.pages.surface import MAX_NAMED, group
from torch_backend_ci.dashboard.requirements import Stand
from torch_backend_ci.document import Part
from torch_conformance.spec.catalogue import Requirement

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model


class ColumnPart(documents.ColumnPart, kw_only=True, frozen=True):
    """What the run of a series says of the requirement."""

    standing: Annotated[
        documents.Standing | None,
        Meta(description="null: the run does not know the requirement."),
    ]
    since: Annotated[documents.RunPart | None, Meta(description="The first run of that standing.")]
    was: Annotated[documents.Standing | None, Meta(description="The standing before.")]


class BlockedPart(Part, frozen=True):
    """What no backend can do because of PyTorch."""

    issue: str
    torch: str | None


class Document(Part, tag_field="schema", tag=documents.schema("requirement"), frozen=True):
    """One requirement in every column: api/requirement/ID.json."""

    id: str
    surface: str
    level: documents.Level
    tier: documents.Tier
    statement: str
    reason: str
    needs: Annotated[
        tuple[str, ...], Meta(description="Capabilities without which it is not asked.")
    ]
    since: Annotated[str | None, Meta(description="Torch release.")]
    until: str | None
    link: Annotated[str, Meta(description="Where PyTorch says or does it.")]
    blocked_upstream: BlockedPart | None
    columns: tuple[ColumnPart, ...]
    checks: Annotated[tuple[str, ...], Meta(description="Ids of the checks of it.")]


#: What the document says as the catalogue does.
_SAME = ("id", "surface", "level", "tier", "statement", "reason", "needs", "since", "until")


def pages(model: Model) -> Iterator[Page]:
    """One for each requirement of the catalogue."""
    ids = requirements.checks(model)
    for requirement in model.requirements.values():
        yield _page(model, requirement, ids.get(requirement.id, []))


def _page(model: Model, requirement: Requirement, ids: Sequence[str]) -> Page:
    stands = requirements.stands(model, requirement.id)
    found = columns.alike(columns.of(model), ids)
    context = {
        "requirement": requirement,
        "stands": stands,
        "counts": requirements.counts(stands),
        "checks": len(ids),
        "groups": [group(one, MAX_NAMED) for one in found],
        "surfaces": sorted({id.partition("/")[0] for id in ids}),
    }
    path, title = paths.of_requirement(requirement.id), requirement.id
    return Page(path, title, "requirement.html", context, _document(requirement, stands, ids))


def _document(requirement: Requirement, stands: Sequence[Stand], ids: Sequence[str]) -> Document:
    blocked = requirement.blocked_upstream
    return Document(
        **{name: getattr(requirement, name) for name in _SAME},
        link=requirement.source.url,
        blocked_upstream=BlockedPart(blocked.issue, blocked.torch) if blocked else None,
        columns=tuple(map(_column, stands)),
        checks=tuple(ids),
    )


def _column(stand: Stand) -> ColumnPart:
    streak = stand.streak
    return ColumnPart(
        **documents.of_column(stand.series),
        standing=stand.now,
        since=documents.of_run(stand.since) if stand.since else None,
        was=streak.was if streak and stand.now else streak and streak.outcome,
    )
