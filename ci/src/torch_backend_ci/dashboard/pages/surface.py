# SPDX-License-Identifier: BSD-3-Clause
"""The checks of a surface, those that come out alike together and the worst first.

A surface of thousands has a list for each topic (the word after the slash), and its own page shows
what is bad and where the lists are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import Meta

from torch_backend_ci.dashboard import columns, documents, paths
from torch_backend_ci.dashboard.columns import Alike, Grid
from torch_backend_ci.dashboard.model import Run
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.stems import Stem, stems, topic_of
from torch_backend_ci.document import Natural, Part

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

#: From so many checks on, a surface has a list for each topic.
BIG = 800
#: Checks of a group that are named where all of them are named elsewhere.
MAX_NAMED = 200


class GroupPart(Part, frozen=True):
    """Checks that come out alike."""

    outcomes: Annotated[
        tuple[str | None, ...],
        Meta(description="One for each column; null where it does not have the checks."),
    ]
    checks: tuple[str, ...]


class TopicPart(Part, frozen=True):
    """A list of its own."""

    name: str
    checks: Natural
    bad: Annotated[Natural, Meta(description="How many are bad in a column.")]
    document: str


class Document(Part, tag_field="schema", tag=documents.schema("surface"), frozen=True):
    """The checks of a surface or of one of its topics: api/check/SURFACE.json."""

    name: str
    columns: tuple[documents.ColumnPart, ...]
    groups: Annotated[
        tuple[GroupPart, ...],
        Meta(description="Checks that come out alike; none where `topics` has them."),
    ]
    topics: Annotated[
        tuple[TopicPart, ...],
        Meta(description="The documents with the checks, if there are many."),
    ]


class Group(NamedTuple):
    """Checks that come out alike, as they are shown."""

    alike: Alike
    stems: list[Stem]
    left_out: int


class Topic(NamedTuple):
    """A list of its own."""

    name: str
    path: str
    checks: int
    bad: int


def pages(model: Model) -> Iterator[Page]:
    """A page for each surface, and for each topic of the big ones."""
    made = columns.of(model)
    for surface, ids in by_surface(model).items():
        topics = _topics(made, ids) if len(ids) >= BIG else {}
        context = {
            "heading": surface,
            "above": [],
            "groups": _groups(made, ids, bool(topics)),
            "topics": list(topics),
            "columns": _columns(model, surface),
        }
        document = _document(model, made, surface, [] if topics else ids, list(topics))
        yield _page(paths.of_surface(surface), f"Checks of {surface}", context, made, ids, document)
        for topic, mine in topics.items():
            yield _topic(model, made, surface, topic, mine)


def by_surface(model: Model) -> dict[str, list[str]]:
    """The ids of every check, sorted."""
    found: dict[str, list[str]] = defaultdict(list)
    for id, check in model.check_ids().items():
        found[check.surface].append(id)
    return {surface: sorted(found[surface]) for surface in sorted(found)}


def _topic(model: Model, made: Grid, surface: str, topic: Topic, ids: list[str]) -> Page:
    context = {
        "heading": topic.name,
        "above": [(surface, paths.of_surface(surface))],
        "groups": _groups(made, ids, False),
        "topics": [],
        "columns": [],
    }
    document = _document(model, made, topic.name, ids, [])
    return _page(topic.path, f"Checks of {topic.name}", context, made, ids, document)


def _page(
    path: str,
    title: str,
    context: dict[str, Any],
    made: Grid,
    ids: Sequence[str],
    document: Document,
) -> Page:
    numbers = {"count": len(ids), "bad": columns.count_bad(made, ids)}
    return Page(path, title, "surface.html", context | numbers, document)


def _groups(made: Grid, ids: Sequence[str], is_short: bool) -> list[Group]:
    """What is bad nowhere is left to the topics' lists, if there are any (`is_short`)."""
    found = columns.alike(made, ids)
    if not is_short:
        return [group(one, len(one.ids)) for one in found]
    return [group(one, MAX_NAMED) for one in found if one.bad or one.is_gone]


def group(alike: Alike, most: int) -> Group:
    """A group of which at most so many checks are named."""
    named = alike.ids[:most]
    return Group(alike, stems(named), len(alike.ids) - len(named))


def _topics(made: Grid, ids: Sequence[str]) -> dict[Topic, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for id in ids:
        found[topic_of(id)].append(id)
    return {
        Topic(topic, paths.of_topic(topic), len(mine), columns.count_bad(made, mine)): mine
        for topic, mine in found.items()
    }


def _columns(model: Model, surface: str) -> list[tuple[Run, Mapping[str, int]]]:
    """How many checks of the surface have which outcome, in each column that has any."""
    columns = (series.column for series in model.series.values())
    return [(run, run.surfaces[surface]) for run in columns if run and surface in run.surfaces]


def _document(
    model: Model, made: Grid, title: str, ids: Sequence[str], topics: Sequence[Topic]
) -> Document:
    groups: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for id in ids:
        groups[tuple(cell and cell.outcome for cell in made.rows[id])].append(id)
    return Document(
        name=title,
        columns=tuple(
            documents.ColumnPart(**documents.of_column(model.series[key])) for key in made.columns
        ),
        groups=tuple(GroupPart(outcomes, tuple(mine)) for outcomes, mine in groups.items()),
        topics=tuple(
            TopicPart(topic.name, topic.checks, topic.bad, paths.api(topic.path))
            for topic in topics
        ),
    )
