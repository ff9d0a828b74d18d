# SPDX-License-Identifier: BSD-3-Clause
"""The page of a check: how it comes out everywhere, since when, and what it said where it was bad.

There are as many of these as checks, so they are cheap: what takes a loop is worked out here, in a
dozen short functions, and the template only shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from ci.dashboard import documents, lanes, paths
from ci.dashboard.courses import Streak, streak
from ci.dashboard.lanes import Lane
from ci.dashboard.model import Check, Course, Key, Result, Run
from ci.dashboard.page import Page
from ci.dashboard.render import plural, seconds
from ci.dashboard.texts import Said, gathered
from ci.document import Part, Positive, Time
from torch_conformance.spec.outcome import RANKS

if TYPE_CHECKING:
    from ci.dashboard.read import Model

#: Instead of an outcome, where a series had the check and its column does not.
GONE = "gone"


class ResultPart(documents.ResultPart, kw_only=True, frozen=True):
    """What a run says of the check."""

    run: Annotated[documents.RunPart | UnsetType, Meta(description="Left out: the column.")] = UNSET


class SegmentPart(Part, frozen=True):
    """Consecutive runs that came out alike."""

    outcome: str
    evidence: documents.Evidence | None
    runs: Positive
    first: Time
    last: Time


class SeriesPart(documents.KeyPart, kw_only=True, frozen=True):
    """The check in one series."""

    column: Annotated[documents.RunPart, Meta(description="The newest complete run.")]
    now: Annotated[
        ResultPart | None,
        Meta(description="What the column says; null: it does not have the check any more."),
    ]
    bad: Annotated[bool, Meta(description="Whether that makes the run red.")]
    since: Annotated[documents.RunPart, Meta(description="The first run of what is now.")]
    was: Annotated[str | None, Meta(description="The outcome before it; null: there was no other.")]
    last_bad: Annotated[
        ResultPart | None,
        Meta(description="The newest bad result, if the check is not bad now."),
    ]
    history: Annotated[
        tuple[SegmentPart, ...],
        Meta(min_length=1, description="Consecutive runs that came out alike, oldest first."),
    ]
    durations_s: Annotated[
        tuple[documents.Seconds, ...],
        Meta(description="In the newest runs that had the check, oldest first."),
    ]


class Document(Part, tag_field="schema", tag=documents.schema("check"), frozen=True):
    """One check on every backend: api/check/SURFACE/NAME.json."""

    id: str
    surface: str
    tier: str
    level: documents.Level
    requirements: tuple[str, ...]
    series: Annotated[
        tuple[SeriesPart, ...],
        Meta(description="Every series of which a complete run had the check."),
    ]


class Row(NamedTuple):
    """The check in one series."""

    key: Key
    lane: Lane
    course: Course
    streak: Streak
    gone_since: int | None
    """Index of the first run without the check, if the column does not have it."""
    is_bad: bool
    """Whether the check makes the column red."""
    median_s: float | None
    spread: str
    """What the durations are, in words."""

    @property
    def now(self) -> str | None:
        """The outcome in the column."""
        return self.streak.outcome if self.gone_since is None else None

    @property
    def since(self) -> int:
        """Index of the first run of what is now."""
        return self.streak.since if self.gone_since is None else self.gone_since

    @property
    def was(self) -> str | None:
        """The outcome before."""
        return self.streak.was if self.gone_since is None else self.streak.outcome

    @property
    def comparison(self) -> str:
        """Where the run that it changed in is compared with the newest one before."""
        runs, before = self.lane.series.runs, self.streak.before
        return "" if before is None else paths.of_choice(runs[before], runs[self.streak.since])


def page_of_check(check: Check, model: Model) -> Page:
    """The page of one check."""
    known = lanes.of(model)
    rows = [_row(key, known[key], course) for key, course in check.courses.items()]
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


def _row(key: Key, lane: Lane, course: Course) -> Row:
    after = course.spells[-1].last + 1
    ordered = sorted(course.durations)
    return Row(
        key,
        lane,
        course,
        streak(course.spells),
        after if after < len(lane.series.runs) else None,
        course.latest is not None and course.latest.unexpected,
        ordered[len(ordered) // 2] if ordered else None,
        _spread(ordered),
    )


def _spread(ordered: Sequence[float]) -> str:
    if not ordered:
        return ""
    least, most = seconds(ordered[0]), seconds(ordered[-1])
    runs = f"in the newest {plural(len(ordered), 'run')}"
    return f"{least} {runs}" if least == most else f"{least} to {most} {runs}"


def _counts(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """How many columns have which outcome, the worst first; `gone` is last."""
    found = Counter(row.now or GONE for row in rows)
    return sorted(found.items(), key=lambda entry: RANKS.get(entry[0], len(RANKS)))


def _said(rows: Sequence[Row]) -> list[Said]:
    """What the columns say, bad ones first."""
    latest = [(row, row.course.latest) for row in sorted(rows, key=lambda row: not row.is_bad)]
    return gathered((row.key, row.lane.series.runs[-1], result) for row, result in latest if result)


def _last_bad(rows: Sequence[Row]) -> list[Said]:
    """The last message of a check that was bad and is not bad now; newest first."""
    found: list[tuple[Key, Run, Result]] = []
    for row in rows:
        if row.course.last_bad:
            index, result = row.course.last_bad
            found.append((row.key, row.lane.series.runs[index], result))
    return gathered(sorted(found, key=lambda entry: entry[1].started, reverse=True))


def _document(check: Check, rows: Sequence[Row]) -> Document:
    return Document(
        id=check.id,
        surface=check.surface,
        tier=check.tier,
        level=check.level,
        requirements=tuple(check.requirements),
        series=tuple(map(_series, rows)),
    )


def _series(row: Row) -> SeriesPart:
    runs, moments = row.lane.series.runs, row.lane.moments
    course = row.course
    assert row.lane.column
    return SeriesPart(
        **documents.of_key(row.key),
        column=row.lane.column,
        now=ResultPart(**documents.of_result(course.latest)) if course.latest else None,
        bad=row.is_bad,
        since=documents.of_run(runs[row.since]),
        was=row.was,
        last_bad=_when_bad(*course.last_bad, runs) if course.last_bad else None,
        history=tuple(
            SegmentPart(
                spell.outcome,
                spell.evidence,
                spell.last - spell.first + 1,
                moments[spell.first],
                moments[spell.last],
            )
            for spell in course.spells
        ),
        durations_s=tuple(course.durations),
    )


def _when_bad(index: int, result: Result, runs: Sequence[Run]) -> ResultPart:
    return ResultPart(run=documents.of_run(runs[index]), **documents.of_result(result))
