# SPDX-License-Identifier: BSD-3-Clause
"""Ids that begin alike, on a line: `opinfo/forward:add` of bfloat16, bool, ..."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple


class Stem(NamedTuple):
    """Ids that differ in their last word only."""

    text: str
    """What they have in common, without the surface."""
    ids: tuple[tuple[str, str], ...]
    """The last word and the id; all of the id's name if it has one word."""


def topic_of(id: str) -> str:
    """What an id begins with: `opinfo/forward`."""
    return id.partition(":")[0]


def stems(ids: Iterable[str]) -> list[Stem]:
    """The ids, which are sorted, by what they have in common."""
    made = []
    for begin, mine in groupby(ids, lambda id: id.rpartition(":")[0]):
        words = tuple((id.removeprefix(f"{begin}:") if begin else name(id), id) for id in mine)
        made.append(Stem(name(begin) if begin else "", words))
    return made


def name(id: str) -> str:
    """An id without its surface."""
    return id.partition("/")[2]
