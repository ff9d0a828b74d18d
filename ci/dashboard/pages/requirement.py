# SPDX-License-Identifier: BSD-3-Clause
"""The page of a requirement: what is asked and why, who does it since when, and what checks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ci.dashboard import columns, documents, paths, requirements
from ci.dashboard.page import Page
from ci.dashboard.pages.surface import MAX_NAMED, group
from ci.dashboard.requirements import Stand
from torch_conformance.spec.catalogue import Requirement

if TYPE_CHECKING:
    from ci.dashboard.read import Model


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


def _document(
    requirement: Requirement, stands: Sequence[Stand], ids: Sequence[str]
) -> dict[str, Any]:
    said = asdict(requirement)
    source = said.pop("source")
    return {
        "schema": documents.schema("requirement"),
        **said,
        "link": source["url"],
        "columns": [_column(stand) for stand in stands],
        "checks": list(ids),
    }


def _column(stand: Stand) -> dict[str, Any]:
    streak = stand.streak
    return {
        **documents.of_column(stand.series),
        "standing": stand.now,
        "since": documents.of_run(stand.since) if stand.since else None,
        "was": streak.was if streak and stand.now else streak and streak.outcome,
    }
