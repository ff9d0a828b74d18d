# SPDX-License-Identifier: BSD-3-Clause
"""The page of a backend: its level with each release line of torch, blockers, history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

from msgspec import Meta, structs

from torch_backend_ci.dashboard import documents, paths, tally
from torch_backend_ci.dashboard.causes import Failure
from torch_backend_ci.dashboard.chart import Chart, trend
from torch_backend_ci.dashboard.model import Result, Run, Series, Step
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.document import Natural, Part
from torch_conformance.results.causes import grouped

#: Newest runs in the charts and in the table beside them.
MAX_CHARTED = 365
MAX_RUNS = 30


class CausePart(Part, frozen=True):
    """Bad checks whose messages agree."""

    text: Annotated[str, Meta(description="What is left of the messages without what varies.")]
    checks: Annotated[tuple[str, ...], Meta(min_length=1)]
    repro: Annotated[str | None, Meta(description="Of the first.")]


class ColumnPart(Part, frozen=True):
    """The newest complete run of a series."""

    run: str
    levels: Annotated[tuple[documents.LevelPart, ...], Meta(description="Lowest first.")]
    standings: Annotated[
        Mapping[str, str], Meta(description="Of each requirement what the run says.")
    ]
    surfaces: Annotated[
        Mapping[str, documents.Counts],
        Meta(description="How many checks of each surface had which outcome."),
    ]
    evidence: Annotated[documents.Counts, Meta(description="How many checks had which.")]
    without: Annotated[tuple[str, ...], Meta(description="Capabilities that the backend lacks.")]
    causes: Annotated[
        tuple[CausePart, ...],
        Meta(description="Bad checks whose messages agree, most first."),
    ]


class RunPart(documents.RunPart, kw_only=True, frozen=True):
    """A run that counts."""

    suite: str
    level: Annotated[str | None, Meta(description="The highest that was reached; null: none.")]
    verified: Annotated[Natural, Meta(description="MUST requirements, of all levels.")]
    bad: Annotated[Natural, Meta(description="Checks.")]


class OtherPart(documents.RunPart, kw_only=True, frozen=True):
    """A run that does not count."""

    why_not: str


class SeriesPart(Part, kw_only=True, frozen=True):
    """The backend with one release line of torch."""

    line: documents.Line
    column: Annotated[
        ColumnPart | None,
        Meta(description="The newest complete run; null: there is none yet."),
    ]
    stale: Annotated[
        documents.StalePart | None,
        Meta(description="Null: the column is of the newest night, or not there."),
    ]
    runs: Annotated[
        tuple[RunPart, ...],
        Meta(description="Complete runs of the standard selection, oldest first."),
    ]
    others: Annotated[
        tuple[OtherPart, ...], Meta(description="Runs that do not count, oldest first.")
    ]


class Document(Part, tag_field="schema", tag=documents.schema("backend"), frozen=True):
    """One backend with every release line of torch: api/backend/NAME/index.json."""

    backend: str
    series: tuple[SeriesPart, ...]


@dataclass(frozen=True)
class Cause:
    """Bad checks of the newest run whose messages agree."""

    text: str
    checks: tuple[str, ...]
    repro: str | None


@dataclass(frozen=True)
class Era:
    """Consecutive runs that reached the same level."""

    first: Run
    last: Run
    runs: int


@dataclass(frozen=True)
class View:
    """What the page shows of one series that has a column."""

    series: Series
    run: Run
    next: Step | None
    """The first level that is not met."""
    charts: tuple[Chart, ...]
    causes: tuple[Cause, ...]
    eras: tuple[Era, ...]
    """Newest first."""


def pages(model: Model) -> Iterator[Page]:
    """One for each backend."""
    for name in model.backends:
        yield _page(model, name, [s for key, s in model.series.items() if key.backend == name])


def _page(model: Model, name: str, series: Sequence[Series]) -> Page:
    views = [_view(model, s) for s in series if s.column]
    return Page(
        path=paths.of_backend(name),
        title=name,
        template="backend.html",
        context={
            "series": series,
            "views": views,
            "known": model.requirements,
            "most": MAX_RUNS,
            "verified": tally.verified,
            "must": tally.must,
            "surfaces": _surfaces(views),
            "requirements": _requirements(model, views),
        },
        data=_document(name, series, views),
    )


def _view(model: Model, series: Series) -> View:
    run = series.runs[-1]
    return View(
        series=series,
        run=run,
        next=next((step for step in run.steps if step.blockers), None),
        charts=_charts(series.runs[-MAX_CHARTED:]),
        causes=tuple(causes(model.bad(run))),
        eras=tuple(eras(series.runs)),
    )


def _charts(runs: Sequence[Run]) -> tuple[Chart, ...]:
    if len(runs) < 2:
        return ()
    verified, bad = map(tally.verified, runs), [run.bad for run in runs]
    return (
        trend("MUST requirements verified", "good", runs, list(verified)),
        trend("Unexpected results", "bad", runs, bad),
    )


def causes(bad: Mapping[str, Result]) -> Iterator[Cause]:
    """Bad results, grouped as the suite's own summary does it; most frequent first."""
    for text, group in grouped(Failure.of(bad)):
        yield Cause(text, tuple(one.id for one in group), bad[group[0].id].repro)


def eras(runs: Sequence[Run]) -> Iterator[Era]:
    """When which level was reached, newest first."""
    for _, group in groupby(reversed(runs), key=lambda run: run.level):
        same = list(group)
        yield Era(first=same[-1], last=same[0], runs=len(same))


def _surfaces(views: Sequence[View]) -> list[tuple[str, list[Mapping[str, int]]]]:
    names = sorted({name for view in views for name in view.run.surfaces})
    return [(name, [view.run.surfaces.get(name, {}) for view in views]) for name in names]


def _requirements(model: Model, views: Sequence[View]) -> list[tuple[str, list[tuple[Any, Any]]]]:
    """Surfaces with their requirements, and what each view's run says of them."""
    rows = [
        (requirement, [view.run.standings.get(requirement.id) for view in views])
        for requirement in model.requirements.values()
    ]
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: row[0].surface)]


def _document(name: str, series: Sequence[Series], views: Sequence[View]) -> Document:
    by_key = {view.series.key: view for view in views}
    return Document(backend=name, series=tuple(_series(s, by_key.get(s.key)) for s in series))


def _series(series: Series, view: View | None) -> SeriesPart:
    stale = series.stale
    return SeriesPart(
        line=series.key.line,
        column=_column(view) if view else None,
        stale=documents.StalePart(stale.days, stale.reason) if stale else None,
        runs=tuple(map(_run, series.runs)),
        others=tuple(map(_other, series.others)),
    )


def _column(view: View) -> ColumnPart:
    run = view.run
    return ColumnPart(
        run=run.id[:12],
        levels=tuple(documents.LevelPart(**documents.of_level(step)) for step in run.steps),
        standings=dict(run.standings),
        surfaces={name: dict(totals) for name, totals in run.surfaces.items()},
        evidence=dict(run.evidence),
        without=tuple(run.without),
        causes=tuple(CausePart(cause.text, cause.checks, cause.repro) for cause in view.causes),
    )


def _run(run: Run) -> RunPart:
    return RunPart(
        **structs.asdict(documents.of_run(run)),
        suite=run.suite,
        level=run.level,
        verified=tally.verified(run),
        bad=run.bad,
    )


def _other(run: Run) -> OtherPart:
    return OtherPart(**structs.asdict(documents.of_run(run)), why_not=run.why_not or "")
