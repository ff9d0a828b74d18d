# SPDX-License-Identifier: BSD-3-Clause
"""Two audits compared: which hits are new, which are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from torch_backend_ci.surface.coupling.files import Tree
from torch_backend_ci.surface.coupling.rules import Hit


@dataclass(frozen=True)
class Trend:
    """What is new and gone since another torch; both in the order of the audits."""

    since: Tree
    before: int  # hits then
    new: tuple[Hit, ...]
    gone: tuple[Hit, ...]


def trend(since: Tree, before: Iterable[Hit], after: Iterable[Hit]) -> Trend:
    """Compare by identity, which knows no lines: of equal hits, the last ones are new or gone."""
    old, now = tuple(before), tuple(after)
    return Trend(since, len(old), _surplus(now, old), _surplus(old, now))


def _surplus(hits: tuple[Hit, ...], others: tuple[Hit, ...]) -> tuple[Hit, ...]:
    left = Counter(hit.identity for hit in others)
    surplus = []
    for hit in hits:
        if left[hit.identity]:
            left[hit.identity] -= 1
        else:
            surplus.append(hit)
    return tuple(surplus)
