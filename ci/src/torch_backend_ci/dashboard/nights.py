# SPDX-License-Identifier: BSD-3-Clause
"""The newest days of a series, for the time axis of the first page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from torch_backend_ci.dashboard.model import Key, Run, Series, Spell

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

FEWEST, MOST = 14, 60
"""Nights that are shown; a store with fewer has its first ones empty."""


class Night(NamedTuple):
    """A day, in UTC."""

    started: datetime


@dataclass(frozen=True)
class Calendar:
    """The days from the first to the newest one that is shown, and how each series did."""

    nights: tuple[Night, ...]
    series: Mapping[Key, tuple[Spell, ...]]
    """Consecutive nights that went alike, by the words `NIGHTS`; none for nights without a run."""


def calendar(model: Model) -> Calendar:
    """The newest days of every series; empty without runs."""
    every = [run.started.date() for s in model.series.values() for run in (*s.runs, *s.others)]
    if not every:
        return Calendar((), {})
    newest = max(every)
    earliest = min(min(every), newest - timedelta(days=FEWEST - 1))
    first = max(earliest, newest - timedelta(days=MOST - 1))
    days = [first + timedelta(days=n) for n in range((newest - first).days + 1)]
    return Calendar(
        tuple(Night(datetime.combine(day, time(), timezone.utc)) for day in days),
        {key: tuple(_spells(series, days)) for key, series in model.series.items()},
    )


def _spells(series: Series, days: list[date]) -> Iterator[Spell]:
    states = _states(series)
    for state, alike in groupby(enumerate(map(states.get, days)), itemgetter(1)):
        places = [place for place, _ in alike]
        if state:
            yield Spell(state, None, places[0], places[-1])


def _states(series: Series) -> dict[date, str]:
    """Of each day the newest whole run; without one that there was another."""
    cut = {run.started.date(): "cut" for run in series.others}
    return cut | {run.started.date(): _state(run) for run in series.runs}


def _state(run: Run) -> str:
    return "bad" if run.bad else "fine"
