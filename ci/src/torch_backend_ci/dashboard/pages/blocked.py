# SPDX-License-Identifier: BSD-3-Clause
"""The state of PrivateUse1 itself: what no backend can do because of PyTorch, issue by issue."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from torch_backend_ci.dashboard import documents, paths
from torch_backend_ci.dashboard.model import Key, Result, Run
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.read import Model, line_order
from torch_backend_ci.document import Part
from torch_conformance.spec.catalogue import Requirement
from torch_conformance.spec.outcome import Outcome

BLOCKED = Outcome.BLOCKED_UPSTREAM.value
MOST_SAID = 300
"""Characters of a reason."""
MOST_REASONS = 12
MOST_CHECKS = 12
"""Checks of an issue that the page names; the document has all."""
_ON_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/([0-9]+)")


class RequirementPart(Part, frozen=True):
    """A requirement that an issue holds up."""

    id: str
    statement: str
    torch: Annotated[
        str | None, Meta(description="The versions in which it is blocked; null for all.")
    ]


class CellPart(documents.KeyPart, kw_only=True, frozen=True):
    """A check in the column of a series."""

    outcome: str
    reason: str
    since: Annotated[
        documents.RunPart | None,
        Meta(
            description="The first of the runs that say blocked_upstream without a break; null if "
            "the column does not."
        ),
    ]


class CheckPart(Part, frozen=True):
    """A check that an issue holds up."""

    id: str
    series: tuple[CellPart, ...]


class IssuePart(Part, frozen=True):
    """Something in PyTorch that is in the way."""

    issue: Annotated[str, Meta(description="Its address; empty if a report names none.")]
    requirements: tuple[RequirementPart, ...]
    holding: Annotated[
        tuple[documents.KeyPart, ...],
        Meta(description="Series whose column says blocked_upstream."),
    ]
    gone: Annotated[
        tuple[documents.KeyPart, ...],
        Meta(
            description="Series whose column does not, of backends that have another whose column "
            "does."
        ),
    ]
    checks: tuple[CheckPart, ...]


class Document(Part, tag_field="schema", tag=documents.schema("blocked"), frozen=True):
    """What no backend can do because of PyTorch, issue by issue."""

    issues: tuple[IssuePart, ...]


@dataclass(frozen=True)
class Cell:
    """A check in the column of a series."""

    outcome: str
    reason: str
    since: Run | None
    """The first run of those that say blocked upstream without a break, if the column does."""


@dataclass(frozen=True)
class Place:
    """How the checks of an issue come out in one series."""

    counts: Mapping[str, int]
    since: Run | None
    """Since when the first of them says blocked upstream; None if none does."""


@dataclass(frozen=True)
class Issue:
    """Something in PyTorch that is in the way."""

    link: str
    requirements: tuple[Requirement, ...]
    """Those that the catalogue says it holds up."""
    checks: Mapping[str, Mapping[Key, Cell]]

    @property
    def name(self) -> str:
        """As people write it: `pytorch/pytorch#195815`."""
        found = _ON_GITHUB.fullmatch(self.link)
        return f"{found[1]}#{found[2]}" if found else self.link or "No issue is named"

    @functools.cached_property
    def places(self) -> Mapping[Key, Place]:
        """The series whose columns have some of its checks, sorted as the series of the store."""
        cells: dict[Key, list[Cell]] = defaultdict(list)
        for by_series in self.checks.values():
            for key, cell in by_series.items():
                cells[key].append(cell)
        return {key: _place(found) for key, found in cells.items()}

    @property
    def lines(self) -> list[str]:
        """The release lines of torch in which its checks were run."""
        return sorted({key.line for key in self.places}, key=line_order)

    @property
    def backends(self) -> list[str]:
        """The backends on which they were run."""
        return sorted({key.backend for key in self.places})

    @property
    def holding(self) -> list[Key]:
        """The series in which it is still in the way."""
        return [key for key, place in self.places.items() if BLOCKED in place.counts]

    @property
    def gone(self) -> list[Key]:
        """The series in which its checks pass, of backends that have it with an older torch."""
        first: dict[str, tuple[object, ...]] = {}
        for key in self.holding:
            first.setdefault(key.backend, line_order(key.line))
        return [
            key
            for key, place in self.places.items()
            if key.backend in first
            and line_order(key.line) > first[key.backend]
            and BLOCKED not in place.counts
            and Outcome.PASS.value in place.counts
        ]

    @property
    def reasons(self) -> list[tuple[str, list[Key]]]:
        """What the blocked checks say, each with the series that say so."""
        found: dict[str, list[Key]] = {}
        for cells in self.checks.values():
            for key, cell in cells.items():
                if cell.outcome == BLOCKED and key not in found.setdefault(cell.reason, []):
                    found[cell.reason].append(key)
        return list(found.items())[:MOST_REASONS]


def pages(model: Model) -> Iterator[Page]:
    """The page."""
    found = list(issues(model))
    context = {"issues": found, "most": MOST_CHECKS}
    document = Document(tuple(map(_document, found)))
    yield Page(paths.BLOCKED, "Blocked upstream", "blocked.html", context, document)


def issues(model: Model) -> Iterator[Issue]:
    """What the catalogue knows of, and what reports name besides; sorted by link."""
    model.read_ahead([one.column for one in model.series.values() if one.column])
    latest = {key: model.latest(key) for key, one in model.series.items() if one.column}
    since = {key: _since(model, key) for key in latest}
    requirements, checks = _known(model)
    for results in latest.values():
        for id, result in results.items():
            if result.outcome == BLOCKED:
                checks[result.issue or ""].add(id)
    for link in sorted(checks):
        cells = {
            id: {
                key: _cell(results[id], since[key].get(id, model.series[key].runs[0]))
                for key, results in latest.items()
                if id in results
            }
            for id in sorted(checks[link])
        }
        yield Issue(link, tuple(requirements[link]), {id: of for id, of in cells.items() if of})


def _known(model: Model) -> tuple[dict[str, list[Requirement]], dict[str, set[str]]]:
    """By issue: the requirements that the catalogue says it holds up, and their checks."""
    requirements: dict[str, list[Requirement]] = defaultdict(list)
    issue_of: dict[str, str] = {}
    for one in model.requirements.values():
        if one.blocked_upstream:
            requirements[one.blocked_upstream.issue].append(one)
            issue_of[one.id] = one.blocked_upstream.issue
    checks: dict[str, set[str]] = defaultdict(set, {link: set() for link in requirements})
    for id, check in model.check_ids().items():
        for requirement in issue_of.keys() & set(check.requirements):
            checks[issue_of[requirement]].add(id)
    return requirements, checks


def _since(model: Model, key: Key) -> dict[str, Run]:
    """The run in which a check became blocked for the last time; none where it always was."""
    found: dict[str, Run] = {}
    for change in model.changes(key):  # newest first
        if change.after == BLOCKED != change.before:
            found.setdefault(change.check, model.series[key].runs[change.run])
    return found


def _place(cells: list[Cell]) -> Place:
    since = [cell.since for cell in cells if cell.since]
    counts = Counter(cell.outcome for cell in cells)
    return Place(counts, min(since, key=lambda run: run.started, default=None))


def _cell(result: Result, since: Run) -> Cell:
    blocked = result.outcome == BLOCKED
    said = result.reason or result.message or ""
    return Cell(result.outcome, said[:MOST_SAID], since if blocked else None)


def _document(issue: Issue) -> IssuePart:
    return IssuePart(
        issue=issue.link,
        requirements=tuple(
            RequirementPart(one.id, one.statement, one.blocked_upstream.torch)
            for one in issue.requirements
            if one.blocked_upstream
        ),
        holding=tuple(documents.KeyPart(**documents.of_key(key)) for key in issue.holding),
        gone=tuple(documents.KeyPart(**documents.of_key(key)) for key in issue.gone),
        checks=tuple(
            CheckPart(id, tuple(_of_cell(key, cell) for key, cell in cells.items()))
            for id, cells in issue.checks.items()
        ),
    )


def _of_cell(key: Key, cell: Cell) -> CellPart:
    return CellPart(
        **documents.of_key(key),
        outcome=cell.outcome,
        reason=cell.reason,
        since=documents.of_run(cell.since) if cell.since else None,
    )
