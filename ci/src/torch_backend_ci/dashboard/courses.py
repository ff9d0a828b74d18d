# SPDX-License-Identifier: BSD-3-Clause
"""What a course says: how a check comes out now, since when, and how it came out before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch_backend_ci.dashboard.model import Spell
from torch_conformance.spec.outcome import RANKS


class Streak(NamedTuple):
    """The newest runs that had the check, as far back as its outcome was the same."""

    outcome: str
    since: int
    """Index of the first of them."""
    was: str | None
    """The outcome before, or None: it was never another."""
    before: int | None
    """Index of the newest run with that outcome."""
    is_new: bool
    """Whether the series has older runs, none of which had the check."""

    @property
    def kind(self) -> str | None:
        """`regression` or `improvement` over the outcome before, by their ranks; None: neither."""
        if self.was is None or RANKS[self.was] == RANKS[self.outcome]:
            return None
        return "regression" if RANKS[self.outcome] < RANKS[self.was] else "improvement"


def streak(spells: Sequence[Spell]) -> Streak:
    """The newest segments; evidence may change within a streak."""
    outcome = spells[-1].outcome
    start = len(spells) - 1
    while start and spells[start - 1].outcome == outcome:
        start -= 1
    older = spells[start - 1] if start else None
    first = spells[start].first
    return Streak(
        outcome,
        first,
        older.outcome if older else None,
        older.last if older else None,
        older is None and first > 0,
    )
