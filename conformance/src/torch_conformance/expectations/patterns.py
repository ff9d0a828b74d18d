# SPDX-License-Identifier: BSD-3-Clause
"""Patterns and many check ids: which ids one names, and the fewest that name some and no other."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

#: A pattern for fewer ids would hide more than it saves.
FEWEST = 3
_BOUNDARIES = "/:_"


class Index:
    """Check ids in order, so that those named by a pattern are found without a look at all."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = sorted(set(ids))

    def named(self, pattern: str) -> list[str]:
        """The ids that a pattern names."""
        stem = pattern.removesuffix("*")
        begin = end = bisect_left(self._ids, stem)
        if stem == pattern:
            return self._ids[begin : begin + 1] if self._ids[begin : begin + 1] == [stem] else []
        while end < len(self._ids) and self._ids[end].startswith(stem):
            end += 1
        return self._ids[begin:end]


def compress(wanted: Iterable[str], others: Iterable[str], fewest: int = FEWEST) -> list[str]:
    """Ids and patterns, sorted, that name every id of `wanted` and none of `others`.

    A pattern ends at a word of the id and names at least `fewest` of the wanted ids.
    """
    ids = sorted(set(wanted))
    counts = Counter(stem for id in ids for stem in _stems(id))
    taken = {stem for id in others for stem in _stems(id)}
    found: dict[str, None] = {}
    for id in ids:
        stems = (stem for stem in _stems(id) if stem not in taken and counts[stem] >= fewest)
        shortest = next(stems, None)
        found[id if shortest is None else f"{shortest}*"] = None
    return list(found)


def _stems(id: str) -> Iterator[str]:
    """The beginnings of an id that end with a word, the shortest first."""
    return (id[: end + 1] for end, character in enumerate(id) if character in _BOUNDARIES)
