# SPDX-License-Identifier: BSD-3-Clause
"""The verdict for a terminal, which may be the log of a workflow: no line of it is a command."""

from __future__ import annotations

from collections.abc import Iterator

from torch_backend_ci.gate.report.words import (
    TITLES,
    about,
    causes,
    change,
    changes,
    first_line,
    headline,
    is_decided_by,
    told,
)
from torch_backend_ci.gate.verdict import Lane, Means, Verdict
from torch_backend_ci.github.markdown import visible

SHOWN = 20
LONGEST = 200


def render(verdict: Verdict) -> str:
    """A line for each configuration, and a few for each check that decides."""
    lines = [f"{verdict.outcome.value}: {headline(verdict)}"]
    for problem in verdict.problems:
        lines += _indented(problem, "  ! ")
    for lane in verdict.lanes:
        lines += _lane(lane)
    for means in (Means.INFRASTRUCTURE, Means.REGRESSION):
        lines += _checks(verdict, means)
    lines += [line for note in verdict.notes for line in _indented(note, "note: ")]
    return "\n".join(map(_harmless, lines)) + "\n"


def _lane(lane: Lane) -> Iterator[str]:
    against = f", compared with {lane.baseline}" if lane.baseline else ""
    required = "" if lane.required else " (decides nothing)"
    checks = f"{sum(lane.counts.values())} checks on torch {lane.torch or 'unknown'}{against}"
    changed = f": {changes(lane)}" if changes(lane) else ""
    yield f"  {lane.name}{required}: {lane.outcome.value}; {checks}{changed}"
    for problem in lane.problems:
        yield from _indented(problem, "    ! ")
    for note in lane.notes:
        yield from _indented(note, "    - ")


def _checks(verdict: Verdict, means: Means) -> Iterator[str]:
    found = list(told(verdict.of(means)))
    for one in found[:SHOWN]:
        check, lanes = one
        where = ", ".join(lanes) + ("" if is_decided_by(verdict, one) else " (decides nothing)")
        yield f"{TITLES[check.kind][0]}: {check.id} ({change(check)}) on {where}"
        if said := first_line(check.message):
            yield f"    | {said[:LONGEST]}"
        for word, cause in causes(verdict, check):
            yield f"    {word} {cause.name} {about(cause)}"
    if len(found) > SHOWN:
        yield f"... and {len(found) - SHOWN} more in the verdict"


def _indented(text: str, mark: str) -> list[str]:
    first, *rest = text.splitlines() or [""]
    return [mark + first, *(f"{' ' * len(mark)}| {line}" for line in rest)]


def _harmless(line: str) -> str:
    """No control characters; and the old form of a workflow command works anywhere in a line."""
    return visible(line).replace("##[", "## [")
