# SPDX-License-Identifier: BSD-3-Clause
"""The search, and what scripts load for it: who had which check, and how it came out, in letters.

`api/search.json` has every check once and says what the letters mean; a file for each series has a
letter for each check and, for checks whose outcomes differ between its runs, their segments.
static/index.js unpacks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from torch_backend_ci.dashboard import documents, paths
from torch_backend_ci.dashboard.letters import ABSENT, Letters, StatePart
from torch_backend_ci.dashboard.model import Check, Course, Key, Series
from torch_backend_ci.dashboard.page import File, Page
from torch_backend_ci.dashboard.render import encode
from torch_backend_ci.document import Natural, Part
from torch_conformance.results import comparison
from torch_conformance.spec.outcome import BAD, NOT_ASKED, TRAITS, Outcome

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

EVIDENCE = ("native", "composite", "fallback")


class OutcomePart(Part, frozen=True):
    """What the rules of a comparison know of an outcome."""

    bad: Annotated[bool, Meta(description="Whether it makes a run red.")]
    rank: Annotated[Natural, Meta(description="Its rank: more is better.")]
    silent: Annotated[bool, Meta(description="Whether it says that the check was not asked.")]


class GroupPart(Part, frozen=True):
    """Checks that ask alike."""

    prefix: str
    cases: tuple[str, ...]
    tier: str
    level: str
    requirements: tuple[str, ...]


class SeriesPart(documents.KeyPart, kw_only=True, frozen=True):
    """A series."""

    runs: Natural
    file: Annotated[str, Meta(description="Its letters, from the root of the site.")]


class Document(Part, tag_field="schema", tag=documents.schema("search"), frozen=True):
    """Every check, and where it stands how each came out; static/index.js unpacks it."""

    outcomes: Annotated[Mapping[str, OutcomePart], Meta(description="By name.")]
    moves: Annotated[
        Mapping[str, Mapping[str, Mapping[str, str]]],
        Meta(
            description="What became of a check, by `outcome` and by `evidence`: before, after, "
            "list of a comparison. `new` and `gone`: one run does not have it."
        ),
    ]
    evidence: Annotated[tuple[str, ...], Meta(description="Every kind of it.")]
    states: Annotated[
        tuple[StatePart, ...], Meta(description="What the letters of the files of series mean.")
    ]
    groups: Annotated[
        tuple[GroupPart, ...],
        Meta(description="Checks that ask alike, sorted by id: the id is prefix and case."),
    ]
    series: tuple[SeriesPart, ...]


@dataclass
class _Index:
    """The files, while checks come by."""

    series: Mapping[Key, Series]
    letters: Letters = field(default_factory=Letters)
    groups: list[GroupPart] = field(default_factory=list)
    now: dict[Key, list[str]] = field(default_factory=dict)
    spells: dict[Key, dict[str, str]] = field(default_factory=dict)

    def add(self, checks: Iterable[Check]) -> None:
        self.now = {key: [] for key in self.series}
        self.spells = {key: {} for key in self.series}
        place = 0
        for shared, alike in groupby(checks, _shared):
            cases = []
            for check in alike:
                cases.append(check.id.removeprefix(shared[0]))
                for key, series in self.series.items():
                    self._place(key, str(place), check.courses.get(key), len(series.runs))
                place += 1
            prefix, tier, level, requirements = shared
            self.groups.append(GroupPart(prefix, tuple(cases), tier, level, requirements))

    def _place(self, key: Key, place: str, course: Course | None, runs: int) -> None:
        told = self.letters.stretches(course.spells if course else (), runs)
        self.now[key].append(told[-1][0] if told else ABSENT)
        if len(told) > 1:
            self.spells[key][place] = "".join(f"{letter}{first}" for letter, first in told)


def _shared(check: Check) -> tuple[str, str, str, tuple[str, ...]]:
    """What a run of checks in the index has in common: `surface/topic`, and what they ask."""
    return check.id.partition(":")[0], check.tier, check.level, check.requirements


def pages(model: Model) -> Iterator[Page | File]:
    """The page with the box, and the index behind it."""
    index = _Index(model.series)
    index.add(model.checks())
    for key in model.series:
        content = {"now": "".join(index.now[key]), "spells": index.spells[key]}
        yield File(paths.of_index(key), encode(content))
    yield Page(
        paths.SEARCH,
        "Search",
        "search.html",
        {
            "series": list(model.series),
            "outcomes": [str(outcome) for outcome in Outcome],
            "bad": sorted(BAD),
            "evidence": EVIDENCE,
        },
        Document(
            outcomes=ranked(),
            moves=comparison.table(),
            evidence=EVIDENCE,
            states=index.letters.states,
            groups=tuple(index.groups),
            series=tuple(map(_of_series, model.series.values())),
        ),
    )


def ranked() -> dict[str, OutcomePart]:
    """What the rules of a comparison know of each outcome."""
    return {
        outcome.value: OutcomePart(
            bad=outcome in BAD, rank=traits.rank, silent=outcome in NOT_ASKED
        )
        for outcome, traits in TRAITS.items()
    }


def _of_series(series: Series) -> SeriesPart:
    return SeriesPart(
        **documents.of_key(series.key), runs=len(series.runs), file=paths.of_index(series.key)
    )
