# SPDX-License-Identifier: BSD-3-Clause
"""Histories of checks in letters: a letter for each pair of outcome and evidence that there is.

`A0B5` is a check that came out as A says in the runs 0 to 4 and as B says since. static/index.js
reads it.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from torch_backend_ci.dashboard.model import Spell

LETTERS = string.ascii_uppercase + string.ascii_lowercase
ABSENT = "-"
"""Of runs that do not have the check."""

StatePart = Annotated[
    tuple[str, str | None], Meta(description="Outcome and evidence; the first is A.")
]


class Letters:
    """The letters of a document, in the order of their first use."""

    def __init__(self) -> None:
        self._letters: dict[tuple[str, str | None], str] = {}

    @property
    def states(self) -> tuple[tuple[str, str | None], ...]:
        """What the letters mean."""
        return tuple(self._letters)

    def history(self, spells: Sequence[Spell], runs: int) -> str:
        """A course in a series of so many runs."""
        return "".join(f"{letter}{first}" for letter, first in self.stretches(spells, runs))

    def stretches(self, spells: Sequence[Spell], runs: int) -> list[tuple[str, int]]:
        """The letters, each with the run from which it holds, gaps included."""
        told: list[tuple[str, int]] = []
        end = 0
        for spell in spells:
            if spell.first > end:
                told.append((ABSENT, end))
            letter = self._letter(spell.outcome, spell.evidence)
            if not told or told[-1][0] != letter:  # what is bad is not said here
                told.append((letter, spell.first))
            end = spell.last + 1
        return [*told, (ABSENT, end)] if end < runs else told

    def _letter(self, outcome: str, evidence: str | None) -> str:
        return self._letters.setdefault((outcome, evidence), LETTERS[len(self._letters)])
