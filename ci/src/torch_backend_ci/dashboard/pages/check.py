# SPDX-License-Identifier: BSD-3-Clause
"""The page of a check, which a browser fills in, and the documents from which it does.

One document tells all checks of a topic (the words before the first colon): how each came out in
every series, since when, and what it said. static/check.js shows one of them. A page of its own for
each check would be nine tenths of a site.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from torch_backend_ci.dashboard import documents, paths
from torch_backend_ci.dashboard.letters import Letters, StatePart
from torch_backend_ci.dashboard.model import Check, Course, Key, Result
from torch_backend_ci.dashboard.page import File, Page
from torch_backend_ci.dashboard.pages.search import EVIDENCE
from torch_backend_ci.dashboard.render import encode
from torch_backend_ci.dashboard.texts import cut
from torch_backend_ci.document import Natural, Part
from torch_conformance.spec.outcome import Outcome

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

#: Characters of a message, a reason or a repro; the report has all of it.
MAX_TEXT = 2_400
DIGITS = 3
"""Of a duration."""


class SaidPart(Part, kw_only=True, frozen=True):
    """What a result says besides its outcome; what it does not say is left out."""

    message: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    repro: str | UnsetType = UNSET
    fallbacks: tuple[str, ...] | UnsetType = UNSET
    waiver: Annotated[
        str | UnsetType, Meta(description="LIST: ID of the expectation that decided.")
    ] = UNSET
    left_out: Annotated[
        Natural | UnsetType, Meta(description="Characters of its texts that are not here.")
    ] = UNSET


class LastBadPart(Part, kw_only=True, frozen=True):
    """The newest bad result of a check that is not bad now."""

    run: Annotated[Natural, Meta(description="Index into the runs of the series.")]
    outcome: str
    said: Annotated[Natural | UnsetType, Meta(description="Index into `said`.")] = UNSET


class CoursePart(Part, kw_only=True, frozen=True):
    """A check in one series."""

    series: Annotated[Natural, Meta(description="Index into `series`.")]
    history: Annotated[
        str,
        Meta(
            description="Of each stretch of runs that came out alike the letter of `states` and "
            "the index of its first run, oldest first; `-`: these runs do not have the check."
        ),
    ]
    bad: Annotated[
        bool | UnsetType, Meta(description="True if it makes the newest run red, or left out.")
    ] = UNSET
    said: Annotated[
        Natural | UnsetType, Meta(description="By the newest run: index into `said`.")
    ] = UNSET
    last_bad: LastBadPart | UnsetType = UNSET
    seconds: Annotated[documents.Seconds, Meta(description="The median of the newest runs.")]


class CheckPart(Part, kw_only=True, frozen=True):
    """One check."""

    name: Annotated[str, Meta(description="What follows the topic in its id.")]
    courses: tuple[CoursePart, ...]


class GroupPart(Part, kw_only=True, frozen=True):
    """Checks that ask alike."""

    tier: str
    level: documents.Level
    requirements: tuple[str, ...]
    checks: tuple[CheckPart, ...]


class Document(Part, tag_field="schema", tag=documents.schema("topic"), frozen=True):
    """Every check of a topic in every series: api/check/SURFACE/TOPIC.json."""

    topic: Annotated[str, Meta(description="What the ids of the checks begin with.")]
    runs: Annotated[str, Meta(description="The document that lists the runs of each series.")]
    series: Annotated[tuple[documents.KeyPart, ...], Meta(description="Those with complete runs.")]
    states: tuple[StatePart, ...]
    statements: Annotated[Mapping[str, str], Meta(description="Of the requirements, by id.")]
    said: Annotated[tuple[SaidPart, ...], Meta(description="Each once, however many say it.")]
    groups: tuple[GroupPart, ...]


class _Shared(NamedTuple):
    """What checks that ask alike have in common."""

    tier: str
    level: str
    requirements: tuple[str, ...]


def pages(model: Model) -> Iterator[Page]:
    """The page that shows any check."""
    context = {"outcomes": [str(outcome) for outcome in Outcome], "evidence": EVIDENCE}
    yield Page(paths.CHECK, "A check", "check.html", context)


def file_of_topic(topic: str, checks: Sequence[Check], model: Model) -> File:
    """The document of a topic, whose checks are sorted by id."""
    return File(paths.of_topic_document(topic), encode(document(topic, checks, model)))


def document(topic: str, checks: Sequence[Check], model: Model) -> Document:
    """How every check of a topic came out, and what it said."""
    keys = {key: place for place, key in enumerate(k for k, s in model.series.items() if s.runs)}
    letters, said = Letters(), _Said()
    groups = []
    for shared, alike in groupby(checks, _shared):
        mine = [_check(topic, check, model, keys, letters, said) for check in alike]
        groups.append(GroupPart(**shared._asdict(), checks=tuple(mine)))
    asked = sorted({id for check in checks for id in check.requirements})
    known = model.requirements
    return Document(
        topic=topic,
        runs=paths.api(paths.COMPARE),
        series=tuple(documents.KeyPart(**documents.of_key(key)) for key in keys),
        states=letters.states,
        statements={id: known[id].statement for id in asked if id in known},
        said=tuple(said.parts),
        groups=tuple(groups),
    )


def _shared(check: Check) -> _Shared:
    return _Shared(check.tier, check.level, check.requirements)


def _check(
    topic: str, check: Check, model: Model, keys: Mapping[Key, int], letters: Letters, said: _Said
) -> CheckPart:
    courses = tuple(
        _course(place, check.courses[key], len(model.series[key].runs), letters, said)
        for key, place in keys.items()
        if key in check.courses
    )
    return CheckPart(name=check.id.removeprefix(topic).removeprefix(":"), courses=courses)


def _course(series: int, course: Course, runs: int, letters: Letters, said: _Said) -> CoursePart:
    latest = course.latest
    return CoursePart(
        series=series,
        history=letters.history(course.spells, runs),
        bad=True if latest and latest.unexpected else UNSET,
        said=said.place(latest) if latest else UNSET,
        last_bad=_last_bad(*course.last_bad, said) if course.last_bad else UNSET,
        seconds=float(f"{statistics.median(course.durations):.{DIGITS}g}"),
    )


def _last_bad(run: int, result: Result, said: _Said) -> LastBadPart:
    return LastBadPart(run=run, outcome=result.outcome, said=said.place(result))


class _Said:
    """What results say, each once."""

    def __init__(self) -> None:
        self.parts: list[SaidPart] = []
        self._places: dict[SaidPart, int] = {}

    def place(self, result: Result) -> int | UnsetType:
        """Where it stands what a result says; UNSET if it says nothing."""
        part = _said(result)
        if part == SaidPart():
            return UNSET
        if part not in self._places:
            self._places[part] = len(self.parts)
            self.parts.append(part)
        return self._places[part]


def _said(result: Result) -> SaidPart:
    names = ("message", "reason", "repro")
    cuts = {name: one for name in names if (one := cut(getattr(result, name), MAX_TEXT))}
    found: dict[str, Any] = {name: one.text for name, one in cuts.items()}
    found |= {"fallbacks": result.fallbacks, "waiver": result.waiver}
    found["left_out"] = sum(one.left_out for one in cuts.values())
    return SaidPart(**{name: value for name, value in found.items() if value})
