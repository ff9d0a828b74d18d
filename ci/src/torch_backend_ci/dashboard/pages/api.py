# SPDX-License-Identifier: BSD-3-Clause
"""api/index.json: what there is for programs. And the schemas of the documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from torch_backend_ci import schema
from torch_backend_ci.dashboard import documents, paths
from torch_backend_ci.dashboard.model import Series
from torch_backend_ci.dashboard.page import File
from torch_backend_ci.dashboard.pages import compare
from torch_backend_ci.dashboard.pairs import Pair
from torch_backend_ci.dashboard.render import encode
from torch_backend_ci.document import Part, Time, stamp

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

#: Of what there is one document.
SINGLE = {
    "overview": paths.OVERVIEW,
    "requirements": paths.REQUIREMENTS,
    "checks": paths.CHECKS,
    "search": paths.SEARCH,
    "upstream": paths.UPSTREAM,
    "blocked": paths.BLOCKED,
}


class BackendPart(Part, frozen=True):
    """A backend."""

    name: str
    document: str
    badge: str
    endpoint: Annotated[str, Meta(description="For https://shields.io/badges/endpoint-badge.")]


class SeriesPart(documents.KeyPart, kw_only=True, frozen=True):
    """A series and its runs."""

    column: Annotated[
        documents.RunPart | None,
        Meta(description="The run that stands for the series: its newest aligned one."),
    ]
    runs: Annotated[tuple[str, ...], Meta(description="Ids of the aligned runs, oldest first.")]
    others: Annotated[
        tuple[str, ...],
        Meta(description="Ids of the runs that count for nothing, oldest first."),
    ]


class TemplatesPart(Part, frozen=True):
    """Documents of what there is too much of to be listed.

    Put in the id of a run, or the topic of a check: its id up to the first colon.
    """

    run: str
    topic: str


class StepPart(Part, frozen=True):
    """From one torch to another."""

    before: str
    after: str
    document: str


class ComparisonPart(Part, frozen=True):
    """Two runs, by their ids."""

    old: str
    new: str
    document: str


class Document(Part, tag_field="schema", tag=documents.schema("index"), frozen=True):
    """What there is on this site for programs; all paths are from its root."""

    newest: Annotated[
        Time | None,
        Meta(description="When the newest run of the store started; null for an empty store."),
    ]
    documents: Annotated[Mapping[str, str], Meta(description="Of what there is one document.")]
    backends: tuple[BackendPart, ...]
    series: tuple[SeriesPart, ...]
    templates: TemplatesPart
    requirements: Annotated[Mapping[str, str], Meta(description="By id.")]
    surfaces: Annotated[Mapping[str, str], Meta(description="By name.")]
    steps: tuple[StepPart, ...]
    comparisons: tuple[ComparisonPart, ...]
    feed: Annotated[str, Meta(description="Of regressions, as Atom.")]
    schemas: Annotated[
        Mapping[str, str],
        Meta(description="Of the documents, by what they say of themselves in `schema`."),
    ]


def pages(model: Model) -> Iterator[File]:
    """The list, and the schemas."""
    yield File(paths.API, encode(index(model)))
    for kind in kinds():
        yield File(paths.of_schema(kind), schema.file(f"dashboard:{kind}").read_bytes())


def kinds() -> list[str]:
    """The kinds of documents that have a schema."""
    return sorted(
        file.name.removesuffix(schema.SUFFIX)
        for file in (schema.FOLDER / "dashboard").glob(f"*{schema.SUFFIX}")
    )


def index(model: Model) -> Document:
    """What there is; paths are from the root of the site."""
    return Document(
        newest=stamp(model.newest) if model.newest else None,
        documents={name: paths.api(path) for name, path in SINGLE.items()},
        backends=tuple(map(_backend, model.backends)),
        series=tuple(map(_series, model.series.values())),
        templates=TemplatesPart(run="api/run/{id}.json", topic=paths.of_topic_document("{topic}")),
        requirements={id: paths.api(paths.of_requirement(id)) for id in model.requirements},
        surfaces={name: paths.api(paths.of_surface(name)) for name in _surfaces(model)},
        steps=tuple(_step(one.before, one.after) for one in model.findings),
        comparisons=tuple(map(_comparison, compare.wanted(model))),
        feed=paths.FEED,
        schemas={documents.schema(kind): paths.of_schema(kind) for kind in kinds()},
    )


def _backend(name: str) -> BackendPart:
    return BackendPart(
        name=name,
        document=paths.api(paths.of_backend(name)),
        badge=paths.of_badge(name),
        endpoint=paths.of_endpoint(name),
    )


def _series(series: Series) -> SeriesPart:
    return SeriesPart(
        **documents.of_key(series.key),
        column=documents.of_run(series.column) if series.column else None,
        runs=tuple(run.id[:12] for run in series.runs),
        others=tuple(run.id[:12] for run in series.others),
    )


def _step(before: str, after: str) -> StepPart:
    return StepPart(before, after, paths.api(paths.of_step(before, after)))


def _comparison(pair: Pair) -> ComparisonPart:
    document = paths.api(paths.of_comparison(*pair))
    return ComparisonPart(pair.old.id[:12], pair.new.id[:12], document)


def _surfaces(model: Model) -> list[str]:
    return sorted({check.surface for check in model.check_ids().values()})
