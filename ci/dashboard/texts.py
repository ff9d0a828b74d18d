# SPDX-License-Identifier: BSD-3-Clause
"""What results say in words, once for all series that say the same, and cut to fit on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ci.dashboard.model import Key, Result, Run

# Characters of all messages and repros of a page, and the least and the most of one of them.
ROOM, LEAST, MOST = 9_000, 240, 2_400


class Cut(NamedTuple):
    """The beginning of a text."""

    text: str
    left_out: int
    """How many characters were cut off."""


class Said(NamedTuple):
    """What the results of one or more series have to say."""

    where: tuple[tuple[Key, Run], ...]
    outcome: str
    message: Cut | None
    reason: Cut | None
    repro: Cut | None
    fallbacks: tuple[str, ...]
    waiver: str | None


def gathered(results: Iterable[tuple[Key, Run, Result]]) -> list[Said]:
    """All texts, each once, in the order of their first use."""
    groups: dict[tuple[object, ...], tuple[Result, list[tuple[Key, Run]]]] = {}
    for key, run, result in results:
        says = (result.message, result.reason, result.repro, result.fallbacks, result.waiver)
        if any(says):
            groups.setdefault((result.outcome, *says), (result, []))[1].append((key, run))
    texts = sum(bool(text) for says in groups for text in says[1:4])
    limit = min(max(ROOM // max(texts, 1), LEAST), MOST)
    return [_said(result, where, limit) for result, where in groups.values()]


def _said(result: Result, where: Sequence[tuple[Key, Run]], limit: int) -> Said:
    return Said(
        tuple(where),
        result.outcome,
        cut(result.message, limit),
        cut(result.reason, limit),
        cut(result.repro, limit),
        result.fallbacks,
        result.waiver,
    )


def cut(text: str | None, limit: int) -> Cut | None:
    """At most `limit` characters of a text; None where there is none."""
    return Cut(text[:limit], max(len(text) - limit, 0)) if text else None


def line(text: str | None, limit: int = 200) -> str:
    """The first line that is not empty."""
    return next((found[:limit] for found in (text or "").splitlines() if found.strip()), "")
