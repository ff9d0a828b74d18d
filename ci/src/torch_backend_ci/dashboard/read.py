# SPDX-License-Identifier: BSD-3-Clause
"""What the pages ask for: the runs in series, and the courses of their checks."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from packaging.version import Version

from torch_backend_ci.dashboard.model import (
    NIGHTLY,
    Change,
    Check,
    Findings,
    Key,
    Result,
    Run,
    Series,
    Stale,
)
from torch_conformance.spec import catalogue
from torch_conformance.spec.catalogue import Requirement


class History(Protocol):
    """The results behind the series, too many to be kept in memory."""

    def checks(self) -> Iterator[Check]:
        """Every check that an aligned run had, sorted by id."""

    def check_ids(self) -> Mapping[str, Check]:
        """The same without their courses."""

    def results(self, run: Run) -> Mapping[str, Result]:
        """What a run, aligned or not, says of each of its checks, sorted by id; empty if the
        store does not keep the results of so old a run.
        """

    def bad(self, run: Run) -> Mapping[str, Result]:
        """Of the results those that make the run red: much less to read than all of them."""

    def read_ahead(self, runs: Sequence[Run]) -> None:
        """The results of these runs will be asked for, in about this order."""

    def changes(self, key: Key) -> Sequence[Change]:
        """All changes between the aligned runs of a series, newest first, then by check."""


@functools.cache
def requirements() -> Mapping[str, Requirement]:
    """The suite's, read once."""
    return catalogue.load()


class Model:
    """All that the pages are made from. Equal stores give equal models."""

    def __init__(
        self, runs: Iterable[Run], history: History, findings: Sequence[Findings] = ()
    ) -> None:
        every = sorted(runs, key=lambda run: (run.started, run.id))
        self.series: Mapping[Key, Series] = in_series(every)
        """By backend, then line: versions ascending, nightly last."""
        self.backends = tuple(dict.fromkeys(key.backend for key in self.series))
        self.lines = tuple(sorted({key.line for key in self.series}, key=line_order))
        self.newest: datetime | None = every[-1].started if every else None
        """When the newest run of the store started."""
        self.requirements: Mapping[str, Requirement] = requirements()
        self.findings = tuple(findings)
        self._history = history
        self._latest: dict[Key, Mapping[str, Result]] = {}

    def checks(self) -> Iterator[Check]:
        """Every check that an aligned run had, sorted by id: one pass over the history."""
        return self._history.checks()

    def check_ids(self) -> Mapping[str, Check]:
        """The same without their courses, kept in memory."""
        return self._history.check_ids()

    def results(self, run: Run) -> Mapping[str, Result]:
        """What a run, aligned or not, says of each of its checks, sorted by id; empty if the
        store does not keep the results of so old a run.
        """
        return self._history.results(run)

    def bad(self, run: Run) -> Mapping[str, Result]:
        """Of the results those that make the run red: much less to read than all of them."""
        return self._history.bad(run)

    def read_ahead(self, runs: Sequence[Run]) -> None:
        """The results of these runs will be asked for, in about this order: reading many at once
        takes not much longer than reading one.
        """
        self._history.read_ahead(runs)

    def latest(self, key: Key) -> Mapping[str, Result]:
        """The results of a series' column, kept in memory; empty without a column."""
        if key not in self._latest:
            column = self.series[key].column
            self._latest[key] = self.results(column) if column else {}
        return self._latest[key]

    def changes(self, key: Key) -> Sequence[Change]:
        """All changes between the aligned runs of a series, newest first, then by check."""
        return self._history.changes(key)


def in_series(runs: Sequence[Run]) -> dict[Key, Series]:
    """The runs, which are in the order of time, by what they are comparable with."""
    keys = sorted({run.key for run in runs}, key=lambda key: (key.backend, line_order(key.line)))
    made = {}
    for key in keys:
        mine = [run for run in runs if run.key == key]
        aligned = tuple(run for run in mine if run.why_not is None)
        others = tuple(run for run in mine if run.why_not is not None)
        made[key] = Series(key, aligned, others, _stale(aligned, others, runs[-1].started))
    return made


def _stale(aligned: Sequence[Run], others: Sequence[Run], newest: datetime) -> Stale | None:
    """How old a column is, compared with the newest run; None if it is as new, or missing."""
    if not aligned:
        return None
    column = aligned[-1]
    days = (newest.date() - column.started.date()).days
    since = [run for run in others if (run.started, run.id) > (column.started, column.id)]
    if not days:
        return None
    if not since:
        return Stale(days, "no run since")
    return Stale(days, since[-1].why_not or "")


def line_order(line: str) -> tuple[bool, Version]:
    """Sorts versions ascending; everything that is not a release comes last."""
    return line == NIGHTLY, Version("0" if line == NIGHTLY else line)
