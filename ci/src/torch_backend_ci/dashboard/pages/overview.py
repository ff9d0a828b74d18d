# SPDX-License-Identifier: BSD-3-Clause
"""The first page: backends by release lines, recent regressions, the newest nightly runs.

Backends stand in the order of their names, after them what they are compared with. Nothing is added
up over them: they were asked different things by machines that have nothing in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Annotated

from msgspec import Meta

from torch_backend_ci.dashboard import causes, documents, nights, paths
from torch_backend_ci.dashboard.causes import Cause
from torch_backend_ci.dashboard.model import Key, Run, Series, Step
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.document import Natural, Part, Time, stamp
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
    bad: Annotated[Natural | None, Meta(description="Unexpected results; null without a run.")]
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
    kinds: Counter[str]
    """How many changes of each kind; empty too where there is no run before it."""
    first: bool
    """Whether there is no run before it in its series."""
    superseded: bool
    """Whether there is a later one of its series in the same night."""

    @property
    def told(self) -> bool:
        """Whether there is something to tell of it."""
        return bool(self.run.why_not or self.first or self.kinds)


@dataclass(frozen=True)
class Row:
    """A backend in the grid."""

    backend: str
    device: str
    cells: tuple[Series | None, ...]
    """One for each line."""
    is_reference: bool
    """Whether others are compared with it: it has no level to reach."""


def pages(model: Model) -> Iterator[Page]:
    """One page. The newest torch is leftmost: where not all of them fit, it is what is seen."""
    lines = model.lines[::-1]
    tonight = night(model)
    yield Page(
        path=paths.OVERVIEW,
        title="Which backend works with which PyTorch",
        template="overview.html",
        context={
            "rows": rows(model, lines),
            "lines": lines,
            "levels": levels.every(),
            "newest": model.newest,
            "setbacks": setbacks(model),
            "compared": any(len(series.runs) > 1 for series in model.series.values()),
            "night": tonight,
            "worse": worse(model),
            "sums": sum((entry.kinds for entry in tonight), Counter()),
            "silent": silent(model),
            "calendar": nights.calendar(model),
        },
        data=_document(model),
    )


def rows(model: Model, lines: Sequence[str]) -> list[Row]:
    """The backends in the order of their names, references last."""
    found = [_row(model, name, lines) for name in model.backends]
    return sorted(found, key=lambda row: row.is_reference)


def _row(model: Model, backend: str, lines: Sequence[str]) -> Row:
    cells = tuple(model.series.get(Key(backend, line)) for line in lines)
    runs = [run for series in cells if series for run in (*series.runs, *series.others)]
    newest = max(runs, key=lambda run: (run.started, run.id))
    device = next(iter(newest.devices), newest.device_type)
    return Row(backend, device, cells, all(run.is_reference for run in runs))


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
    """The newest nightly runs, aligned or not: by backend, the newest torch and run first."""
    found = [_entry(model, series, run) for series, run in _tonight(model)]
    return [
        replace(entry, superseded=place > 0)
        for _, mine in groupby(found, lambda entry: entry.run.key)
        for place, entry in enumerate(mine)
    ]


def _tonight(model: Model) -> Iterator[tuple[Series, Run]]:
    for backend in model.backends:
        for line in model.lines[::-1]:
            if series := model.series.get(Key(backend, line)):
                yield from ((series, run) for run in _newest(series) if _is_tonight(model, run))


def _newest(series: Series) -> list[Run]:
    return sorted((*series.runs, *series.others), key=lambda r: (r.started, r.id), reverse=True)


def _is_tonight(model: Model, run: Run) -> bool:
    return model.newest is not None and run.started.date() == model.newest.date()


def _entry(model: Model, series: Series, run: Run) -> Entry:
    place = series.runs.index(run) if run.why_not is None else -1
    kinds = Counter(c.kind for c in model.changes(series.key) if c.run == place)
    return Entry(run, kinds, place == 0, False)


def worse(model: Model) -> dict[Key, int]:
    """How many checks got worse in the column of a series, if that is of the newest nightly run."""
    return {
        key: sum(
            change.kind == "regression" and change.run == len(series.runs) - 1
            for change in model.changes(key)
        )
        if series.column and _is_tonight(model, series.column)
        else 0
        for key, series in model.series.items()
    }


def silent(model: Model) -> list[Series]:
    """The series without a run among the newest nightly runs."""
    present = {series.key for series, _ in _tonight(model)}
    return [series for key, series in model.series.items() if key not in present]


def _document(model: Model) -> Document:
    return Document(
        newest=stamp(model.newest) if model.newest else None,
        columns=tuple(map(_column, model.series.values())),
    )


def _column(series: Series) -> ColumnPart:
    run, stale = series.column, series.stale
    return ColumnPart(
        **documents.of_column(series),
        level=run.level if run else None,
        bad=run.bad if run else None,
        levels=tuple(map(_level, run.steps)) if run else (),
        stale=documents.StalePart(stale.days, stale.reason) if stale else None,
    )


def _level(step: Step) -> LevelPart:
    return LevelPart(step.name, not step.blockers, step.verified, step.must)
