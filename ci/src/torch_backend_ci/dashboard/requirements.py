# SPDX-License-Identifier: BSD-3-Clause
"""Who meets a requirement: its standing in every series, now and before, and the checks of it."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from torch_backend_ci.dashboard.courses import Streak, streak
from torch_backend_ci.dashboard.model import Key, Run, Series, Spell
from torch_backend_ci.dashboard.words import STANDINGS

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model


class Stand(NamedTuple):
    """A requirement in one series that has a column."""

    series: Series
    now: str | None
    """None: the suite of the column does not have the requirement."""
    spells: tuple[Spell, ...]
    """Consecutive runs with the same standing, which is their `outcome`."""
    streak: Streak | None
    """None: no run of the series knew the requirement."""

    @property
    def since(self) -> Run | None:
        """The first run of the present state."""
        return self.series.runs[self.streak.since] if self.streak and self.now else None

    @property
    def key(self) -> Key:
        """Of the series."""
        return self.series.key


def stands(model: Model, id: str) -> list[Stand]:
    """The standing of a requirement in every column."""
    return [_stand(series, id) for series in model.series.values() if series.column]


def now(model: Model, id: str) -> dict[str, list[Key]]:
    """The columns by what they say of a requirement; in the order of the words."""
    found: dict[str, list[Key]] = {standing: [] for standing in STANDINGS}
    for key, series in model.series.items():
        if series.column and id in series.column.standings:
            found[series.column.standings[id]].append(key)
    return {standing: keys for standing, keys in found.items() if keys}


@functools.lru_cache(maxsize=1)
def checks(model: Model) -> Mapping[str, list[str]]:
    """The ids of the checks of each requirement, sorted."""
    found: dict[str, list[str]] = defaultdict(list)
    for id, check in sorted(model.check_ids().items()):
        for requirement in check.requirements:
            found[requirement].append(id)
    return found


def counts(stands: list[Stand]) -> list[tuple[str, int]]:
    """How many columns say what, in the order of the words."""
    found = Counter(stand.now for stand in stands if stand.now)
    return [(standing, found[standing]) for standing in STANDINGS if found[standing]]


def _stand(series: Series, id: str) -> Stand:
    spells = _spells(series, id)
    last = series.runs[-1].standings.get(id)
    return Stand(series, last, spells, streak(spells) if spells else None)


def _spells(series: Series, id: str) -> tuple[Spell, ...]:
    made: list[Spell] = []
    standings = enumerate(run.standings.get(id) for run in series.runs)
    for standing, alike in groupby(standings, itemgetter(1)):
        indices = [index for index, _ in alike]
        if standing is not None:
            made.append(Spell(standing, None, indices[0], indices[-1]))
    return tuple(made)
