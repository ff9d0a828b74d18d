# SPDX-License-Identifier: BSD-3-Clause
"""The strips that show how something came out in every run of a series.

Nothing in them comes from a report but numbers, days and words. static/check.js draws the strips of
checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from markupsafe import Markup

from torch_backend_ci.dashboard.model import Spell
from torch_backend_ci.dashboard.words import OUTCOMES, Standing, Word

Words = Mapping[str, Word] | Mapping[str, Standing]


class Dated(Protocol):
    """What a cell of a strip stands for: a run, or a day."""

    @property
    def started(self) -> datetime:
        """In UTC."""


#: How many runs are shown as cells, and how many segments have their own text.
CELLS, TEXTS = 60, 12
#: Width of a cell, and of the longest strip; in CSS pixels.
CELL, LONGEST = 12, 480


def strip(runs: Sequence[Dated], spells: Sequence[Spell], words: Words = OUTCOMES) -> Markup:
    """How something came out in every run of a series or on every day, oldest left.

    Good is a low line, bad as high as the strip, what was not asked a thin line; a line below it
    says CPU fallback. Few runs are cells, many run together.
    """
    count = len(runs) or 1
    by_tone: dict[str, list[Spell]] = {}
    for s in spells:
        by_tone.setdefault(words[s.outcome].tone, []).append(s)
    if 1 < len(spells) <= TEXTS:
        lines = "".join(_texted(runs, s, words) for s in spells)
    else:
        lines = "".join(_path(tone, same, 8) for tone, same in by_tone.items())
    if fell := [s for s in spells if s.evidence == "fallback"]:
        lines += _path("fell", fell, 14.5)
    return Markup(
        f'<svg class="strip{" cells" if len(runs) <= CELLS else ""}" viewBox="0 0 {count} 16" '
        f'width="{min(CELL * count, LONGEST)}" preserveAspectRatio="none" role="img" '
        f'aria-label="{spelled(runs, spells, words)}">{lines}</svg>'
    )


def _path(tone: str, spells: Iterable[Spell], height: float) -> str:
    return f'<path class="{tone}" d="{"".join(_line(s, height) for s in spells)}"/>'


def _line(s: Spell, height: float) -> str:
    return f"M{s.first}.1 {height}h{s.last - s.first}.8"


def _texted(runs: Sequence[Dated], s: Spell, words: Words) -> str:
    word = words[s.outcome]
    by = " by fallback" if s.evidence == "fallback" else ""
    title = f"<title>{word.name}{by}, {_span(runs, s)}</title>"
    return f'<path class="{word.tone}" d="{_line(s, 8)}">{title}</path>'


def _span(runs: Sequence[Dated], s: Spell) -> str:
    """How many runs, and their days."""
    first = runs[s.first].started.date()
    if s.first == s.last:
        return f"1 run: {first}"
    return f"{s.last - s.first + 1} runs: {first} to {runs[s.last].started.date()}"


def spelled(runs: Sequence[Dated], spells: Sequence[Spell], words: Words = OUTCOMES) -> str:
    """A strip in words."""
    if not spells:
        return "In no run"
    last = spells[-1]
    when = "Now" if last.last == len(runs) - 1 else "Last"
    text = f"{when} {words[last.outcome].name}, {_span(runs, last)}"
    if len(spells) > 1:
        text += f"; before that {words[spells[-2].outcome].name}"
    if len(spells) > 2:
        text += f" and {len(spells) - 2} more changes"
    return text
