# SPDX-License-Identifier: BSD-3-Clause
"""The page of a check: how it comes out everywhere, since when, and what it said where it was bad.

There are as many of these as checks, so they are cheap: what takes a loop is worked out here, in a
dozen short functions, and the template only shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from ci.dashboard import documents, paths
from ci.dashboard.courses import Streak, bad, is_gone, streak
from ci.dashboard.model import Check, Course, Key, Result, Run, Series
from ci.dashboard.page import Page
from ci.dashboard.render import plural, seconds
from ci.dashboard.texts import Said, gathered
from conformance.results.comparison import ranks

if TYPE_CHECKING:
    from ci.dashboard.read import Model

#: Instead of an outcome, where a series had the check and its column does not.
GONE = "gone"


@dataclass(frozen=True)
class Row:
    """The check in one series."""

    key: Key
    series: Series
    course: Course
    streak: Streak
    column: Run
    """The run that `course.latest` is of."""
    gone_since: Run | None
    """The first run without the check, if the column does not have it."""
    median_s: float | None
    spread: str
    """What the durations are, in words."""

    @property
    def now(self) -> str | None:
        """The outcome in the column."""
        return None if self.gone_since else self.streak.outcome

    @property
    def since(self) -> Run:
        """The first run of what is now."""
        return self.gone_since or self.streak.since

    @property
    def was(self) -> str | None:
        """The outcome before."""
        return self.streak.outcome if self.gone_since else self.streak.was

    @property
    def durations(self) -> tuple[float, ...]:
        """Seconds, oldest first."""
        return self.course.durations

    @property
    def evidence(self) -> str | None:
        """What the column says of how it ran."""
        return self.course.latest.evidence if self.course.latest else None

    @property
    def is_bad(self) -> bool:
        """Whether the check makes the column red."""
        return self.course.latest is not None and bad(self.course.latest)


def page_of_check(check: Check, model: Model) -> Page:
    """The page of one check."""
    rows = [_row(key, model.series[key], course) for key, course in check.courses.items()]
    context = {
        "check": check,
        "rows": rows,
        "counts": _counts(rows),
        "without": [
            key for key, it in model.series.items() if it.runs and key not in check.courses
        ],
        "said": _said(rows),
        "last_bad": _last_bad(rows),
        "requirements": [(id, model.requirements.get(id)) for id in check.requirements],
    }
    return Page(paths.of_check(check.id), check.id, "check.html", context, _document(check, rows))


def _row(key: Key, series: Series, course: Course) -> Row:
    spells = course.spells
    return Row(
        key,
        series,
        course,
        streak(series, spells),
        series.runs[-1],
        series.runs[spells[-1].last + 1] if is_gone(series, course) else None,
        median(course.durations) if course.durations else None,
        _spread(course.durations),
    )


def _spread(durations: Sequence[float]) -> str:
    if not durations:
        return ""
    least, most = seconds(min(durations)), seconds(max(durations))
    runs = f"in the newest {plural(len(durations), 'run')}"
    return f"{least} {runs}" if least == most else f"{least} to {most} {runs}"


def _counts(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """How many columns have which outcome, the worst first; `gone` is last."""
    found = Counter(row.now or GONE for row in rows)
    return sorted(found.items(), key=lambda entry: ranks().get(entry[0], len(ranks())))


def _said(rows: Sequence[Row]) -> list[Said]:
    """What the columns say, bad ones first."""
    latest = [(row, row.course.latest) for row in sorted(rows, key=lambda row: not row.is_bad)]
    return gathered((row.key, row.column, result) for row, result in latest if result)


def _last_bad(rows: Sequence[Row]) -> list[Said]:
    """What was said when it was bad for the last time, where it is not bad now; newest first."""
    found: list[tuple[Key, Run, Result]] = []
    for row in rows:
        if row.course.last_bad:
            index, result = row.course.last_bad
            found.append((row.key, row.series.runs[index], result))
    return gathered(sorted(found, key=lambda entry: entry[1].started, reverse=True))


def _document(check: Check, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "schema": documents.schema("check"),
        "id": check.id,
        "surface": check.surface,
        "tier": check.tier,
        "level": check.level,
        "requirements": list(check.requirements),
        "series": [_series(row) for row in rows],
    }


def _series(row: Row) -> dict[str, Any]:
    runs, course, last_bad = row.series.runs, row.course, row.course.last_bad
    return {
        **documents.of_key(row.key),
        "column": documents.of_run(row.column),
        "now": documents.of_result(course.latest) if course.latest else None,
        "bad": row.is_bad,
        "since": documents.of_run(row.since),
        "was": row.was,
        "last_bad": last_bad
        and {"run": documents.of_run(runs[last_bad[0]]), **documents.of_result(last_bad[1])},
        "history": [
            {
                "outcome": spell.outcome,
                "evidence": spell.evidence,
                "runs": spell.last - spell.first + 1,
                "first": documents.moment(runs[spell.first]),
                "last": documents.moment(runs[spell.last]),
            }
            for spell in course.spells
        ],
        "durations_s": list(course.durations),
    }
