# SPDX-License-Identifier: BSD-3-Clause
"""A model made in memory and in the plainest way: for tests of pages, and to hold the real one to.

It reads every report as it stands and walks through the results run by run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import msgspec
import synthetic
from synthetic import Content

from torch_backend_ci.dashboard.model import (
    DURATIONS,
    Blocker,
    Change,
    Check,
    Course,
    Key,
    Result,
    Run,
    Series,
    Spell,
    Step,
)
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.dashboard.track import Stay, detail, difference
from torch_backend_ci.results import accept
from torch_conformance.results import levels, report
from torch_conformance.results.reader import Document
from torch_conformance.spec.reason import Blocked
from torch_conformance.spec.result import CheckResult


def model(reports: Iterable[Content]) -> Model:
    """The model of a store with these reports."""
    documents = [synthetic.document(made) for made in reports]
    memory = _Memory({document.sha256: document.checks for document in documents})
    made = Model(map(run_of, documents), memory)
    memory.series = made.series
    return made


def run_of(document: Document) -> Run:
    """What the model says of a report."""
    said, verdict = document.run, levels.assess(document.report)
    driver = said.driver
    name = f"{said.backend}-{driver['name']}" if driver and "name" in driver else said.backend
    return Run(
        id=document.sha256,
        key=Key(name, accept.line(said.torch.version)),
        device_type=said.device_type,
        torch=said.torch.version,
        torch_git=said.torch.git,
        suite=said.suite,
        suite_commit=said.source.commit,
        suite_digest=said.source.digest,
        python=said.python,
        platform=said.platform,
        driver=driver,
        devices=said.devices,
        seed=said.seed,
        options=msgspec.json.decode(msgspec.json.encode(said.options)),
        started=datetime.fromisoformat(said.started).astimezone(timezone.utc),
        duration_s=said.duration_s,
        why_not=verdict.unassessed,
        level=verdict.name,
        title=verdict.title,
        steps=tuple(map(_step, verdict.steps)),
        without=verdict.without,
        broken={name: entry.broken for name, entry in said.capabilities.items() if entry.broken},
        totals={outcome.value: n for outcome, n in document.report.totals.items()},
        bad=sum(r.unexpected for r in document.checks),
        evidence=_counted(r.evidence for r in document.checks),
        surfaces=_by_surface(document.checks),
        standings=_standings(document),
        told=_told(said),
    )


def _step(step: levels.Step) -> Step:
    return Step(
        step.level.name,
        step.level.title,
        step.verified,
        step.must,
        step.should_verified,
        step.should,
        tuple(Blocker(b.what, b.why, b.checks, b.example) for b in step.blockers),
    )


def _counted(values: Iterable[str | None]) -> dict[str, int]:
    return dict(Counter(value for value in values if value is not None))


def _told(run: report.Run) -> dict[str, Any]:
    """The run as plain values, without what it does not say."""
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(run))
    silent = {name for name in ("cannot_load", "merged") if values[name] is None}
    return {name: value for name, value in values.items() if name not in silent}


def _by_surface(records: Iterable[CheckResult]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        counts[record.surface][record.outcome.value] += 1
    return {surface: dict(counts[surface]) for surface in sorted(counts)}


def _standings(document: Document) -> dict[str, str]:
    lacking = set(document.run.absent)
    return {
        id: str(levels.standing([r for r in document.checks if id in r.requirements], lacking))
        for id in document.report.requirements
    }


class _Memory:
    """The history of a model, kept in memory."""

    def __init__(self, records: Mapping[str, Sequence[CheckResult]]) -> None:
        self.records = {
            id: {r.id: r for r in sorted(mine, key=lambda r: r.id)} for id, mine in records.items()
        }
        self.series: Mapping[Key, Series] = {}

    def checks(self) -> Iterator[Check]:
        """As History has it."""
        runs = [run for series in self.series.values() for run in series.runs]
        newest_first = sorted(runs, key=lambda run: (run.started, run.id), reverse=True)
        known: dict[str, CheckResult] = {}
        for run in newest_first:
            known = self.records[run.id] | known
        for id in sorted(known):
            said = known[id]
            yield Check(
                id,
                said.surface,
                said.tier,
                said.level,
                said.requirements,
                {key: c for key, s in self.series.items() if (c := self._course(id, s))},
            )

    def _course(self, id: str, series: Series) -> Course | None:
        had = [(i, r) for i, run in enumerate(series.runs) if (r := self.records[run.id].get(id))]
        if not had:
            return None
        index, newest = had[-1]
        bad = [(i, r) for i, r in had if r.unexpected]
        is_latest = index == len(series.runs) - 1
        return Course(
            spells=tuple(_spells(had)),
            latest=_result(newest) if is_latest else None,
            last_bad=(bad[-1][0], _result(bad[-1][1]))
            if bad and not (is_latest and bad[-1][0] == index)
            else None,
            durations=tuple(r.duration_s for _, r in had[-DURATIONS:]),
        )

    def results(self, run: Run) -> Mapping[str, Result]:
        """As History has it."""
        return {id: _result(record) for id, record in self.records[run.id].items()}

    def changes(self, key: Key) -> Sequence[Change]:
        """As History has it."""
        runs = self.series[key].runs
        return [
            change
            for number in range(len(runs) - 1, 0, -1)
            for change in self._changes(key, number, runs[number - 1], runs[number])
        ]

    def _changes(self, key: Key, number: int, before: Run, after: Run) -> Iterator[Change]:
        old, new = self.records[before.id], self.records[after.id]
        for id in sorted(old.keys() | new.keys()):
            if id not in new:
                yield Change(key, number, id, old[id].outcome, "gone", "other")
            elif found := difference(_stay(old[id]) if id in old else None, _stay(new[id])):
                yield Change(key, number, id, *found)

    def check_ids(self) -> Mapping[str, Check]:
        """As History has it."""
        return {c.id: replace(c, courses={}) for c in self.checks()}

    def bad(self, run: Run) -> Mapping[str, Result]:
        """As History has it."""
        return {id: _result(r) for id, r in self.records[run.id].items() if r.unexpected}

    def read_ahead(self, runs: Sequence[Run]) -> None:
        """All is read already."""


def _stay(found: CheckResult) -> Stay:
    reason = str(found.reason) if found.reason else None
    said = detail(found.evidence, found.message, reason, found.fallbacks)
    return Stay(found.outcome, found.evidence, found.unexpected, 0, 0, said, found.mismatch)


def _spells(had: Sequence[tuple[int, CheckResult]]) -> Iterator[Spell]:
    current: Spell | None = None
    was: tuple[str, str | None, bool] | None = None
    for index, found in had:
        state = (found.outcome, found.evidence, found.unexpected)
        if current and state == was and index == current.last + 1:
            current = current._replace(last=index)
            continue
        if current:
            yield current
        current, was = Spell(found.outcome, found.evidence, index, index), state
    if current:
        yield current


def _result(found: CheckResult) -> Result:
    excused = found.excused
    return Result(
        found.outcome,
        found.evidence,
        found.duration_s,
        found.message,
        str(found.reason) if found.reason else None,
        found.repro,
        found.fallbacks,
        f"{excused.list}: {excused.entry}" if excused else None,
        found.samples,
        found.reason.issue if isinstance(found.reason, Blocked) else None,
        found.mismatch,
    )
