# SPDX-License-Identifier: BSD-3-Clause
"""The history of a store: courses and changes from the state, results from the store's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from torch_backend_ci.dashboard import track
from torch_backend_ci.dashboard.model import Change, Check, Course, Key, Result, Run, Series
from torch_backend_ci.dashboard.state import State
from torch_backend_ci.dashboard.stems import topic_of
from torch_backend_ci.dashboard.summary import RESULT, result
from torch_backend_ci.dashboard.track import Track
from torch_backend_ci.dashboard.workers import Workers
from torch_backend_ci.results.schema import IS_BAD
from torch_backend_ci.results.store import Snapshot
from torch_conformance.spec import former_names

PATIENCE = 2
"""Number of single reads before read-ahead starts; most builds need no more."""
AHEAD = 16
"""Runs that are read at once from then on; 30 MB of results or so."""


class Stored:
    """As torch_backend_ci.dashboard.read.History says. May be forked; not for several threads."""

    def __init__(self, snapshot: Snapshot, state: State, series: Mapping[Key, Series]) -> None:
        self.state = state
        self._snapshot = snapshot
        self._series = series
        self._ids: dict[str, Check] = {}
        self._changes: dict[Key, list[Change]] = {key: [] for key in series}
        self._bad: dict[str, dict[str, Result]] = {}
        self._results: dict[str, dict[str, Result]] = {}
        self._announced: list[Run] = []
        self._ahead: list[Run] = []
        self._missed = 0

    def load(self, workers: Workers) -> None:
        """Read what is kept in memory, before forking: ids and changes."""
        numbers = range(len(self.state.files))
        for checks, changes in workers.map(self._outline, numbers, "changes"):
            self._ids |= {check.id: check for check in checks}
            for change in changes:
                self._changes[change.key].append(change)
        for mine in self._changes.values():
            mine.sort(key=lambda change: (-change.run, change.check))

    def _outline(self, number: int) -> tuple[list[Check], list[Change]]:
        kept = {
            key: {place for place, run in enumerate(series.runs) if run.kept}
            for key, series in self._series.items()
        }
        checks, changes = [], []
        for id, tracks in self.state.checks(number):
            checks.append(self._check(id, tracks, {}))
            for key, one in tracks.items():
                found = track.differences(one, kept[key])
                changes += [Change(key, place, id, *difference) for place, difference in found]
        return checks, changes

    def checks(self) -> Iterator[Check]:
        """Every check, sorted by id, in one pass over the state."""
        for number in range(len(self.state.files)):
            for id, tracks in self.state.checks(number):
                yield self._with_courses(id, tracks)

    def checks_among(self, topics: Mapping[str, Sequence[str]]) -> Iterator[Check]:
        """The checks of some topics, which are given with all their ids."""
        ids = [id for mine in topics.values() for id in mine]
        for number in self.state.files_with(min(ids), max(ids)):
            for id, tracks in self.state.checks(number):
                if topic_of(id) in topics:
                    yield self._with_courses(id, tracks)

    def _with_courses(self, id: str, tracks: Mapping[Key, Track]) -> Check:
        courses = {key: one.course(len(self._series[key].runs)) for key, one in tracks.items()}
        return self._check(id, tracks, courses)

    def _check(self, id: str, tracks: Mapping[Key, Track], courses: Mapping[Key, Course]) -> Check:
        """The newest run that had it says what it is about."""

        def age(key: Key) -> tuple[datetime, str]:
            run = self._series[key].runs[tracks[key].last]
            return run.started, run.id

        said = tracks[max(tracks, key=age)]
        requirements = tuple(former_names.requirements(said.requirements, id))
        return Check(id, id.partition("/")[0], said.tier, said.level, requirements, courses)

    def check_ids(self) -> Mapping[str, Check]:
        """Every check, sorted by id, without courses."""
        return self._ids

    def changes(self, key: Key) -> Sequence[Change]:
        """Newest first, then by check."""
        return self._changes[key]

    def results(self, run: Run) -> Mapping[str, Result]:
        """Read from the store now; VanishedError if a compaction took the file away."""
        if run.id not in self._results:
            self._results = self._newest_of(PATIENCE) | self._read(self._with_ahead(run), "true")
        return self._results[run.id]

    def read_ahead(self, runs: Sequence[Run]) -> None:
        """From the third of them on that has to be read, many are read at once."""
        self._ahead, self._missed = list({run.id: run for run in runs}.values()), 0

    def _with_ahead(self, run: Run) -> Sequence[Run]:
        if run not in self._ahead:
            return [run]
        self._missed += 1
        place = self._ahead.index(run)
        return self._ahead[place : place + (AHEAD if self._missed > PATIENCE else 1)]

    def _newest_of(self, count: int) -> dict[str, dict[str, Result]]:
        """Some of what was read before, as pairs have runs in common."""
        return dict(list(self._results.items())[-count:])

    def bad(self, run: Run) -> Mapping[str, Result]:
        """Read with those of all runs that were announced, if it is one of them."""
        if run.id not in self._bad:
            self._bad = self._read(self._announced if run in self._announced else [run], IS_BAD)
        return self._bad[run.id]

    def announce(self, runs: Sequence[Run]) -> None:
        """The bad results of these runs may be asked for."""
        self._announced = list(runs)

    def _read(self, runs: Sequence[Run], which: str) -> dict[str, dict[str, Result]]:
        found: dict[str, dict[str, Result]] = {run.id: {} for run in runs}
        with _only(self._snapshot, found).reading() as database:
            database.execute("SET threads = 1")
            query = (
                f"SELECT run, check_id, {RESULT} FROM results "
                f"WHERE run IN (SELECT unnest(?)) AND {which} ORDER BY check_id"
            )
            for id, check, *said in database.execute(query, [list(found)]).fetchall():
                found[id][check] = result(said)
        return found


def _only(snapshot: Snapshot, ids: Iterable[str]) -> Snapshot:
    """The files that have results of these runs."""
    wanted = frozenset(ids)
    parts = tuple(part for part in snapshot.parts if not wanted.isdisjoint(part.stored))
    return Snapshot(snapshot.segments, parts)
