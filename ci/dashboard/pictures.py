# SPDX-License-Identifier: BSD-3-Clause
"""The small pictures that are on every row of every check's page, a million times in a site.

They are written here and not by a template, which would take ten times as long. Nothing in them
comes from a report but numbers, days and outcomes that have a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup, escape

from ci.dashboard.model import Run, Series, Spell
from ci.dashboard.words import OUTCOMES, Standing, Word

Words = Mapping[str, Word] | Mapping[str, Standing]

#: How many runs are shown as cells, and how many segments have their own text.
CELLS, TEXTS = 60, 12
#: Width of a cell, and of the longest strip; in CSS pixels.
CELL, LONGEST = 12, 480
_HEIGHTS = [str(20 - height) for height in range(21)]


def strip(series: Series, spells: Sequence[Spell], words: Words = OUTCOMES) -> Markup:
    """How a check, or by other words a requirement, came out in every aligned run, oldest left.

    Good is a low line, bad as high as the strip, what was not asked a thin line; a line below it
    says CPU fallback. Few runs are cells, many run together.
    """
    runs = series.runs
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
        f'aria-label="{spelled(series, spells, words)}">{lines}</svg>'
    )


def _path(tone: str, spells: Iterable[Spell], height: float) -> str:
    return f'<path class="{tone}" d="{"".join(_line(s, height) for s in spells)}"/>'


def _line(s: Spell, height: float) -> str:
    return f"M{s.first}.1 {height}h{s.last - s.first}.8"


def _texted(runs: Sequence[Run], s: Spell, words: Words) -> str:
    word = words[s.outcome]
    by = " by fallback" if s.evidence == "fallback" else ""
    title = f"<title>{word.name}{by}, {_span(runs, s)}</title>"
    return f'<path class="{word.tone}" d="{_line(s, 8)}">{title}</path>'


def _span(runs: Sequence[Run], s: Spell) -> str:
    """How many runs, and their days."""
    first = runs[s.first].started.date()
    if s.first == s.last:
        return f"1 run: {first}"
    return f"{s.last - s.first + 1} runs: {first} to {runs[s.last].started.date()}"


def spelled(series: Series, spells: Sequence[Spell], words: Words = OUTCOMES) -> str:
    """A strip in words."""
    if not spells:
        return "In no run"
    last = spells[-1]
    when = "Now" if last.last == len(series.runs) - 1 else "Last"
    text = f"{when} {words[last.outcome].name}, {_span(series.runs, last)}"
    if len(spells) > 1:
        text += f"; before that {words[spells[-2].outcome].name}"
    if len(spells) > 2:
        text += f" and {len(spells) - 2} more changes"
    return text


def spark(values: Sequence[float], label: str) -> Markup:
    """A few numbers as a line, oldest left, the highest as high as the picture; what they mean."""
    scale = 20 / (max(values, default=0) or 1)
    points = " ".join([f"{x},{_HEIGHTS[int(scale * v)]}" for x, v in enumerate(values)])
    line = f'<polyline points="{points}"/>' if len(values) > 1 else ""
    return Markup(
        f'<svg class="spark" viewBox="0 -1 {max(len(values) - 1, 1)} 22" '
        f'preserveAspectRatio="none" role="img" aria-label="{escape(label)}">{line}</svg>'
    )
