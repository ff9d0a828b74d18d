# SPDX-License-Identifier: BSD-3-Clause
"""One check in one series: what is known of a stretch of runs, and how stretches are put together.

A track of runs 0 to 9 and one of runs 10 to 11 make the track that runs 0 to 11 would have made at
once, so a run is added without reading earlier runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch_backend_ci.dashboard.model import DURATIONS, Course, Result, Spell
from torch_conformance.results.comparison import Move, by_evidence, by_outcome

LONGEST_DETAIL = 200  # characters


class Stay(NamedTuple):
    """A segment, with the message and the mismatch of its first run."""

    outcome: str
    evidence: str | None
    unexpected: bool
    first: int
    last: int
    detail: str
    mismatch: str | None = None

    @property
    def kind(self) -> tuple[str, str | None, bool]:
        """What consecutive runs must have in common."""
        return self[:3]


class Difference(NamedTuple):
    """The last fields of a `Change`."""

    before: str
    after: str
    kind: str
    detail: str
    mismatch: str | None = None


@dataclass(frozen=True)
class Track:
    """Of at least one run."""

    tier: str
    level: str
    requirements: tuple[str, ...]
    stays: tuple[Stay, ...]
    newest: Result
    bad: tuple[int, Result] | None
    """The newest bad result, which may be the newest one, and the index of its run."""
    durations: tuple[float, ...]

    @property
    def last(self) -> int:
        """The index of the newest run that had the check."""
        return self.stays[-1].last

    def course(self, count: int) -> Course:
        """For the pages, in a series of so many runs."""
        is_now = self.last == count - 1
        return Course(
            spells=tuple(Spell(s.outcome, s.evidence, s.first, s.last) for s in self.stays),
            latest=self.newest if is_now else None,
            last_bad=None if self.bad and is_now and self.bad[0] == self.last else self.bad,
            durations=self.durations,
        )

    def to_json(self) -> list[Any]:
        """As plain values; a newest result that is bad is there once."""
        bad = None
        if self.bad:
            bad = [self.bad[0], None if self.bad[0] == self.last else _values(self.bad[1])]
        about = [self.tier, self.level, self.requirements]
        return [about, self.stays, _values(self.newest), bad, self.durations]


def _values(result: Result) -> list[Any]:
    return list(vars(result).values())


def parse(values: Sequence[Any]) -> Track:
    """The opposite of `to_json`."""
    (tier, level, requirements), stays, newest, bad, durations = values
    latest = _result(newest)
    return Track(
        tier,
        level,
        tuple(requirements),
        tuple(Stay(*stay) for stay in stays),
        latest,
        bad and (bad[0], latest if bad[1] is None else _result(bad[1])),
        tuple(durations),
    )


def _result(values: Sequence[Any]) -> Result:
    outcome, evidence, seconds, message, reason, repro, fallbacks, *rest = values
    return Result(outcome, evidence, seconds, message, reason, repro, tuple(fallbacks), *rest)


def joined(old: Track | None, new: Track) -> Track:
    """The track of both stretches, of which `new` is the later."""
    if old is None:
        return new
    before, after = old.stays[-1], new.stays[0]
    if before.kind == after.kind and before.last + 1 == after.first:
        stays = (*old.stays[:-1], before._replace(last=after.last), *new.stays[1:])
    else:
        stays = old.stays + new.stays
    durations = (old.durations + new.durations)[-DURATIONS:]
    return Track(
        new.tier, new.level, new.requirements, stays, new.newest, new.bad or old.bad, durations
    )


def since(track: Track, first: int) -> Track | None:
    """Of the runs from `first` on only, as if there had been none before."""
    if track.stays[0].first >= first:
        return track
    stays = tuple(
        stay if stay.first >= first else stay._replace(first=first, detail="", mismatch=None)
        for stay in track.stays
        if stay.last >= first
    )
    if not stays:
        return None
    count = sum(stay.last - stay.first + 1 for stay in stays)
    bad = track.bad if track.bad and track.bad[0] >= first else None
    return Track(
        track.tier,
        track.level,
        track.requirements,
        stays,
        track.newest,
        bad,
        track.durations[-count:],
    )


def differences(track: Track, kept: Collection[int]) -> Iterator[tuple[int, Difference]]:
    """What changed, by the index of the run, oldest first. Of runs that are not `kept`, as their
    results are no longer in the store, there is no message.
    """
    before: Stay | None = None
    for stay in track.stays:
        if before and before.last + 1 < stay.first:
            yield from _gone(before, kept)
            before = None
        if {stay.first - 1, stay.first} <= set(kept) and (found := difference(before, stay)):
            yield stay.first, found
        before = stay
    yield from _gone(track.stays[-1], kept)


def _gone(stay: Stay, kept: Collection[int]) -> Iterator[tuple[int, Difference]]:
    if stay.last + 1 in kept:
        yield stay.last + 1, Difference(stay.outcome, "gone", "other", "")


#: What a change is called; what is not here is called `other`.
_KINDS = {Move.REGRESSION: "regression", Move.IMPROVEMENT: "improvement"}


def difference(old: Stay | None, new: Stay) -> Difference | None:
    """None if nothing changed that matters, by torch_conformance.results.comparison."""
    move = by_outcome(old, new)
    if move is not None:
        before = old.outcome if old else "new"
        return Difference(before, new.outcome, _KINDS.get(move, "other"), new.detail, new.mismatch)
    return _evidence(old, new) if old else None


def _evidence(old: Stay, new: Stay) -> Difference | None:
    move = by_evidence(old.evidence, new.evidence)
    if move not in _KINDS or old.evidence is None or new.evidence is None:
        return None
    said = new.detail if move is Move.REGRESSION else ""
    return Difference(old.evidence, new.evidence, _KINDS[move], said)


def detail(
    evidence: str | None, message: str | None, reason: str | None, fallbacks: Sequence[str]
) -> str:
    """The message of the first run of a segment."""
    text = message or reason or (", ".join(fallbacks) if evidence == "fallback" else "")
    lines = text.splitlines()
    return lines[0][:LONGEST_DETAIL] if lines else ""
