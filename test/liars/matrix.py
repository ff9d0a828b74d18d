# SPDX-License-Identifier: BSD-3-Clause
"""The kill matrix: every liar, who caught it, and whether that was meant."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from liar import HERE, Liar
from trial import CATALOGUE, Verdict, checks_for

INTENDED = 0.95
#: How many checks the document names of a liar.
SHOWN = 3
EQUIVALENT = HERE / "equivalent.yaml"
NOTICE = "<!-- Written by `make liars`; do not edit. -->"


class Matrix:
    """Liars, their verdicts, and those on the vehicles that do not lie."""

    def __init__(
        self, liars: Iterable[Liar], verdicts: Iterable[Verdict], truths: Iterable[Verdict]
    ) -> None:
        self.rows = list(zip(liars, verdicts, strict=True))
        self.truths = list(truths)
        self.seconds = 0.0

    @property
    def good(self) -> bool:
        """All are killed, nearly all under the requirements they break, and the truth passes."""
        killed, intended = self._counts(verdict for _, verdict in self.rows)
        enough = killed == len(self.rows) and intended >= INTENDED * len(self.rows)
        return enough and not self.complaints()

    def complaints(self) -> list[str]:
        """What was said about a backend that does not lie: a kill proves nothing then."""
        lines = [f"{t.liar} cannot load: {t.cannot_load}" for t in self.truths if t.cannot_load]
        return lines + [
            f"{truth.liar} {kill.check} {kill.outcome}: {kill.message}"
            for truth in self.truths
            for kill in truth.kills
        ]

    def summary(self) -> str:
        """The totals in a sentence."""
        killed, intended = self._counts(verdict for _, verdict in self.rows)
        return f"{len(self.rows)} liars: {killed} killed, {intended} of them as intended"

    def json(self) -> dict[str, Any]:
        """Everything that is known, as plain values."""
        return {
            "summary": self.summary(),
            "seconds": round(self.seconds, 1),
            "good": self.good,
            "complaints": self.complaints(),
            "liars": [_record(liar, verdict) for liar, verdict in self.rows],
        }

    def markdown(self) -> str:
        """docs/liars.md: the same for all runs in which the same liars are caught.

        Which check notices a lie first, and whether it fails, hangs or ends the process then,
        depends on the machine: that stands in the JSON.
        """
        lines = [NOTICE, "# Liars", "", _ABOUT, "", f"**{self.summary()}.**", ""]
        for title, groups in (("Layer", self._by_layer()), ("Surface", self._by_surface())):
            lines += [f"| {title} | liars | killed | as intended |", "|---|---|---|---|"]
            for name, verdicts in sorted(groups.items()):
                killed, intended = self._counts(verdicts)
                lines.append(f"| {name} | {len(verdicts)} | {killed} | {intended} |")
            lines.append("")
        lines += [
            "| Liar | Layer | What is wrong | Requirements | Must be caught by |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(liar, verdict) for liar, verdict in sorted(self.rows, key=_place)]
        return "\n".join([*lines, "", *_equivalent()]).rstrip() + "\n"

    def write(self, file: Path) -> None:
        """Store everything as JSON."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(self.json(), indent=1))

    @staticmethod
    def _counts(verdicts: Iterable[Verdict]) -> tuple[int, int]:
        listed = list(verdicts)
        return sum(v.killed for v in listed), sum(v.killed and v.intended for v in listed)

    def _by_layer(self) -> dict[str, list[Verdict]]:
        groups: dict[str, list[Verdict]] = defaultdict(list)
        for liar, verdict in self.rows:
            groups[liar.layer].append(verdict)
        return groups

    def _by_surface(self) -> dict[str, list[Verdict]]:
        groups: dict[str, list[Verdict]] = defaultdict(list)
        for liar, verdict in self.rows:
            for surface in liar.surfaces(CATALOGUE):
                groups[surface].append(verdict)
        return groups


_ABOUT = """\
A liar is the reference backend with one planted defect. The suite is run against each of them: a
green run is worth as much as the defects that it catches here. *As intended*: each requirement that
the defect breaks was caught by a check of its own; a liar that is caught otherwise is caught by
accident."""


def _place(entry: tuple[Liar, Verdict]) -> tuple[str, str]:
    return entry[0].layer, entry[0].id


def _row(liar: Liar, verdict: Verdict) -> str:
    caught = "loading" if liar.cannot_load else ", ".join(_catchers(liar))
    if not verdict.killed:
        caught += ", and is caught by **nobody**"
    elif not verdict.intended:
        caught += f", and is caught by accident; missed {' '.join(verdict.missed)}"
    named = " ".join((*liar.requirements, *liar.hal))
    # `torch.<type>` is not an element of HTML.
    cells = (f"`{liar.id}`", liar.layer, liar.lie.replace("<", "&lt;"), named, caught)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _catchers(liar: Liar) -> Iterator[str]:
    """The checks that are to catch it: its own, or those of its requirements, by name."""
    # Not in the order of checks: that is the one in which this process has imported the chapters.
    named = liar.checks or sorted({check.id.partition(":")[0] for check in checks_for(liar)})
    yield from (f"`{name}`" for name in named[:SHOWN])
    if len(named) > SHOWN:
        yield "..."
    if liar.hal:
        yield "the HAL suite"


def _equivalent() -> Iterator[str]:
    """The lies that nobody can notice, and why; they are not counted."""
    found = yaml.safe_load(EQUIVALENT.read_text()) or {}
    if found:
        yield from ("## Equivalent", "", "| Defect | What is wrong | Why nobody can tell |")
        yield "|---|---|---|"
    for id, fields in sorted(found.items()):
        yield f"| `{id}` | {fields['lie'].strip()} | {' '.join(fields['reason'].split())} |"


def _record(liar: Liar, verdict: Verdict) -> dict[str, Any]:
    return {
        "id": liar.id,
        "layer": liar.layer,
        "lie": liar.lie,
        "requirements": list(liar.requirements),
        "killed": verdict.killed,
        "intended": verdict.intended,
        "missed": verdict.missed,
        "cannot_load": verdict.cannot_load,
        "broken": verdict.broken,
        "kills": [vars(kill) for kill in verdict.kills],
        "checks_run": len(verdict.outcomes),
        "seconds": verdict.seconds,
    }
