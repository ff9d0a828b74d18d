# SPDX-License-Identifier: BSD-3-Clause
"""Changes by what they have in common: 5,000 of them are a few sentences, not 5,000 lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from torch_backend_ci.dashboard.model import Change as SeriesChange
from torch_backend_ci.dashboard.model import Result
from torch_conformance.results.causes import grouped
from torch_conformance.results.comparison import Change, Seen

ROOM = 40
"""Limit of separate causes; more are grouped by a shorter part of the message."""
MAX_NAMED = 12
"""Checks of a cause that are named."""


class Cause(NamedTuple):
    """Checks that changed alike and say alike."""

    before: str
    after: str
    text: str
    """What is left of their messages without what varies."""
    ids: tuple[str, ...]
    """All of them, sorted."""

    @property
    def named(self) -> tuple[str, ...]:
        """Those that there is room for."""
        return self.ids[:MAX_NAMED]

    @property
    def more(self) -> int:
        """How many are not named."""
        return len(self.ids) - len(self.named)


def of_comparison(changes: Iterable[Change], results: Mapping[str, Seen]) -> list[Cause]:
    """Causes of changes between two runs, of the later of which these are results; the most
    frequent first."""
    return _grouped(
        _Changed(one.id, one.old, one.new, one.detail, _mismatch(one, results.get(one.id)))
        for one in changes
    )


def _mismatch(change: Change, result: Seen | None) -> str | None:
    """None if the change is one of evidence, or the check is gone."""
    return result.mismatch if result and result.outcome == change.new else None


def of_series(changes: Iterable[SeriesChange]) -> list[Cause]:
    """Causes of changes in a series, the most frequent first."""
    return _grouped(
        _Changed(one.check, one.before, one.after, one.detail, one.mismatch) for one in changes
    )


class Failure(NamedTuple):
    """The fields of a result that decide its cause."""

    id: str
    outcome: str
    message: str | None
    mismatch: str | None

    @staticmethod
    def of(results: Mapping[str, Result]) -> Iterator[Failure]:
        """Those of checks by id."""
        return (Failure(id, one.outcome, one.message, one.mismatch) for id, one in results.items())


class _Changed(NamedTuple):
    """The fields of a change that decide its cause."""

    id: str
    before: str
    after: str
    message: str
    mismatch: str | None

    @property
    def outcome(self) -> str:
        """Both outcomes."""
        return f"{self.before}\0{self.after}"


def _grouped(changes: Iterable[_Changed]) -> list[Cause]:
    return [_cause(text, group) for text, group in grouped(changes, ROOM)]


def _cause(text: str, group: list[_Changed]) -> Cause:
    first = group[0]
    said = text.removeprefix(f"{first.outcome}: ")
    return Cause(first.before, first.after, said, tuple(one.id for one in group))
