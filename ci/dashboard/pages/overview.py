# SPDX-License-Identifier: BSD-3-Clause
"""The first page: backends by release lines, recent regressions, the newest nightly runs.

Backends stand in the order of their names and nothing is added up over them: they were asked
different things by machines that have nothing in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Annotated

from msgspec import Meta

from ci.dashboard import causes, documents, paths, tally
from ci.dashboard.causes import Cause
from ci.dashboard.model import Key, Run, Series, Step
from ci.dashboard.page import Page
from ci.dashboard.read import Model
from ci.document import Natural, Part, Time
from torch_conformance.results import levels

MAX_GROUPS = 5
MAX_CAUSES = 3


class LevelPart(Part, frozen=True):
    """How far a column is with a level."""

    name: str
    met: Annotated[
        bool, Meta(description="Whether nothing stands before it, apart from lower levels.")
    ]
    verified: Annotated[Natural, Meta(description="Of its MUST requirements.")]
    must: Annotated[Natural, Meta(description="How many it has.")]


class ColumnPart(documents.ColumnPart, kw_only=True, frozen=True):
    """What a backend reached with a release line of torch."""

    level: Annotated[str | None, Meta(description="The highest that was reached; null: none.")]
    levels: Annotated[tuple[LevelPart, ...], Meta(description="Lowest first; empty without a run.")]
    stale: Annotated[
        documents.StalePart | None, Meta(description="Null: the run is of the newest night.")
    ]


class Document(Part, tag_field="schema", tag=documents.schema("overview"), frozen=True):
    """What every backend reached with every release line: api/overview.json."""

    newest: Annotated[
        Time | None,
        Meta(description="When the newest run of the store started; null: there is none."),
    ]
    columns: Annotated[
        tuple[ColumnPart, ...],
        Meta(description="By backend, then line: versions ascending, nightly last."),
    ]


@dataclass(frozen=True)
class Setback:
    """What regressed in one run."""

    key: Key
    run: Run
    size: int
    causes: tuple[Cause, ...]
    """The most frequent ones."""

    @property
    def more(self) -> int:
        """How many checks have other causes."""
        return self.size - sum(len(cause.ids) for cause in self.causes)


@dataclass(frozen=True)
class Entry:
    """One of the newest nightly runs."""

    run: Run
    bad: int
    kinds: Counter[str]
    """How many changes of each kind; empty too where there is no run before it."""
    first: bool
    """Whether there is no run before it in its series."""

    @property
    def told(self) -> bool:
        """Whether there is something to tell of it."""
        return bool(self.run.why_not or self.first or self.kinds)


def pages(model: Model) -> Iterator[Page]:
    """One page. The newest torch is leftmost: where not all of them fit, it is what is seen."""
    lines = model.lines[::-1]
    yield Page(
        path=paths.OVERVIEW,
        title="Which PyTorch works on which backend",
        template="overview.html",
        context={
            "rows": [
                (name, [model.series.get(Key(name, n)) for n in lines], about(model, name))
                for name in model.backends
            ],
            "lines": lines,
            "levels": levels.every(),
            "newest": model.newest,
            "setbacks": setbacks(model),
            "compared": any(len(series.runs) > 1 for series in model.series.values()),
            "night": night(model),
            "silent": silent(model),
        },
        data=_document(model),
    )


def about(model: Model, backend: str) -> str:
    """The device of a backend's newest run, in a few words."""
    runs = [
        r for s in model.series.values() if s.key.backend == backend for r in (*s.runs, *s.others)
    ]
    newest = max(runs, key=lambda run: (run.started, run.id))
    return next(iter(newest.devices), newest.device_type)


def setbacks(model: Model) -> list[Setback]:
    """The newest runs in which something regressed."""
    found = [s for key, series in model.series.items() for s in _of_series(model, key, series)]
    found.sort(key=lambda setback: (setback.run.started, setback.key), reverse=True)
    return found[:MAX_GROUPS]


def _of_series(model: Model, key: Key, series: Series) -> Iterator[Setback]:
    regressions = (c for c in model.changes(key) if c.kind == "regression")
    for run, changes in islice(groupby(regressions, lambda change: change.run), MAX_GROUPS):
        found = list(changes)
        ranked = causes.of_series(found)
        yield Setback(key, series.runs[run], len(found), tuple(ranked[:MAX_CAUSES]))


def night(model: Model) -> list[Entry]:
    """The newest nightly runs, aligned or not."""
    return [_entry(model, series, run) for series, run in _tonight(model)]


def _tonight(model: Model) -> Iterator[tuple[Series, Run]]:
    for series in model.series.values():
        for run in sorted((*series.runs, *series.others), key=lambda run: (run.started, run.id)):
            if model.newest and run.started.date() == model.newest.date():
                yield series, run


def _entry(model: Model, series: Series, run: Run) -> Entry:
    place = series.runs.index(run) if run.why_not is None else -1
    kinds = Counter(c.kind for c in model.changes(series.key) if c.run == place)
    return Entry(run, tally.bad(run), kinds, place == 0)


def silent(model: Model) -> list[Series]:
    """The series without a run among the newest nightly runs."""
    present = {series.key for series, _ in _tonight(model)}
    return [series for key, series in model.series.items() if key not in present]


def _document(model: Model) -> Document:
    return Document(
        newest=f"{model.newest:%Y-%m-%dT%H:%M:%SZ}" if model.newest else None,
        columns=tuple(map(_column, model.series.values())),
    )


def _column(series: Series) -> ColumnPart:
    run, stale = series.column, series.stale
    return ColumnPart(
        **documents.of_column(series),
        level=run.level if run else None,
        levels=tuple(map(_level, run.steps)) if run else (),
        stale=documents.StalePart(stale.days, stale.reason) if stale else None,
    )


def _level(step: Step) -> LevelPart:
    return LevelPart(step.name, not step.blockers, step.verified, step.must)
