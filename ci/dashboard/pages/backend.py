# SPDX-License-Identifier: BSD-3-Clause
"""The page of a backend: its level with each release line of torch, blockers, history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from ci.dashboard import documents, paths, tally
from ci.dashboard.chart import Chart, trend
from ci.dashboard.model import Result, Run, Series, Step
from ci.dashboard.page import Page
from ci.dashboard.read import Model
from torch_conformance.results import summary

#: Newest runs in the charts and in the table beside them.
MAX_CHARTED = 365
MAX_RUNS = 30


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
            "bad": tally.bad,
            "verified": tally.verified,
            "must": tally.must,
            "surfaces": _surfaces(views),
            "requirements": _requirements(model, views),
        },
        data=_data(name, series, views),
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
    verified, bad = map(tally.verified, runs), map(tally.bad, runs)
    return (
        trend("MUST requirements verified", "good", runs, list(verified)),
        trend("Bad checks", "bad", runs, list(bad)),
    )


def causes(bad: Mapping[str, Result]) -> Iterator[Cause]:
    """Bad results, grouped as the suite's own summary does it; most frequent first."""
    records = [
        {"id": id, "outcome": r.outcome, "message": r.message or "", "repro": r.repro}
        for id, r in bad.items()
    ]
    for text, group in summary.grouped(records):
        yield Cause(text, tuple(r["id"] for r in group), group[0]["repro"])


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


def _data(name: str, series: Sequence[Series], views: Sequence[View]) -> dict[str, Any]:
    by_key = {view.series.key: view for view in views}
    return {
        "schema": documents.schema("backend"),
        "backend": name,
        "series": [_series(s, by_key.get(s.key)) for s in series],
    }


def _series(series: Series, view: View | None) -> dict[str, Any]:
    return {
        "line": series.key.line,
        "column": view and _column(view),
        "stale": asdict(series.stale) if series.stale else None,
        "runs": [_run(run) for run in series.runs],
        "others": [documents.of_run(run) | {"why_not": run.why_not} for run in series.others],
    }


def _column(view: View) -> dict[str, Any]:
    run = view.run
    return {
        "run": run.id[:12],
        "levels": [_level(step) for step in run.steps],
        "standings": dict(run.standings),
        "surfaces": {name: dict(totals) for name, totals in run.surfaces.items()},
        "evidence": dict(run.evidence),
        "without": list(run.without),
        "causes": [asdict(cause) for cause in view.causes],
    }


def _level(step: Step) -> dict[str, Any]:
    told = asdict(step)
    del told["title"]
    return told


def _run(run: Run) -> dict[str, Any]:
    return {
        **documents.of_run(run),
        "suite": run.suite,
        "level": run.level,
        "verified": tally.verified(run),
        "bad": tally.bad(run),
    }
