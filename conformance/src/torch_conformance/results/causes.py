# SPDX-License-Identifier: BSD-3-Clause
"""The causes of failures: what failures that are corrected together have in common.

A cause is made of data as far as there is any: the outcome, the topic that a check belongs to, the
operator, the type of an exception, what is missing, in what a result differs. Of a message only the
line counts that says what happened, without values.

An exception of one kind is one cause wherever it occurs. A comparison that fails is a cause of its
topic: the same words in another topic are about something else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol, TypeVar

from torch_conformance.results import missing
from torch_conformance.results.wording import (
    headline,
    is_end_of_process,
    without_names,
    without_values,
)
from torch_conformance.spec.capabilities import BROKEN
from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.outcome import Outcome


class Said(Protocol):
    """The fields that decide a cause."""

    @property
    def id(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def message(self) -> str | None: ...
    @property
    def mismatch(self) -> str | None: ...


T = TypeVar("T", bound=Said)

MAX_CAUSES = 20
MAX_TEXT = 160
# How much of a cause may be left out where there are too many: nothing; names of operators, dtypes
# and whatever else is quoted; all but the type of the exception or the chapter of the comparison.
EXACT, UNNAMED, COARSE = LEVELS = range(3)

_REST = re.compile(r"(?s)[:(;,].*| in .*")
# How much of a result is wrong, where its values are.
_EXTENTS: dict[str, str] = {Mismatch.ALL_VALUES: "all", Mismatch.SOME_VALUES: "some"}


def cause(said: Said, level: int = EXACT) -> str:
    """The cause of a failure, in words: failures of one cause have the same."""
    if is_about_values(said):
        text = _wrong_values(said, level)
    elif found := missing.read(said.message or ""):
        text = f"a missing {found.kind}" if level else f"{found.kind} {found.name} is missing"
    elif _is_comparison(said):
        text = _comparison(said, level)
    else:
        text = _exception(headline(said.message or ""), level)
    return f"{said.outcome}: {text[:MAX_TEXT]}"


def is_about_values(said: Said) -> bool:
    """Whether a comparison found wrong values: then the words of its message are numbers."""
    return said.mismatch in _EXTENTS


def grouped(said: Iterable[T], room: int = MAX_CAUSES) -> list[tuple[str, list[T]]]:
    """Causes and what has them, most frequent first.

    Where there are more causes than room, half of it goes to the most frequent ones, and the rest
    is grouped again by less; a cause of one failure always is, since others may be like it.
    """
    ordered = sorted(said, key=lambda one: one.id)
    ranked: list[tuple[str, list[T]]] = []
    for level in LEVELS:
        groups: dict[str, list[T]] = defaultdict(list)
        for one in ordered:
            groups[cause(one, level)].append(one)
        found = sorted(groups.items(), key=_rank)
        left = room - len(ranked)
        if len(found) <= left or level == COARSE:
            return sorted(ranked + found, key=_rank)
        kept = [group for group in found[: left // 2] if len(group[1]) > 1]
        ranked += kept
        rest = {one.id for _, group in found[len(kept) :] for one in group}
        ordered = [one for one in ordered if one.id in rest]
    return ranked


def _rank(group: tuple[str, list[T]]) -> tuple[int, str]:
    return -len(group[1]), group[0]


def _is_comparison(said: Said) -> bool:
    """Whether a comparison of this check failed.

    A broken capability fails all checks that need it, and what ends one process ends others.
    """
    # A change of outcome ends with the later one.
    last = said.outcome.rpartition("\0")[2]
    message = said.message or ""
    return last == Outcome.FAIL and not BROKEN.match(message) and not is_end_of_process(message)


def _comparison(said: Said, level: int) -> str:
    topic = said.id.partition(":")[0]
    surface = topic.partition("/")[0]
    if level == COARSE:
        return f"comparisons in {surface}"
    return f"{_without(headline(said.message or ''), level)[:MAX_TEXT]} in {topic}"


def _exception(text: str, level: int) -> str:
    # The name of the attribute is all that distinguishes two missing ones.
    names = level == UNNAMED and text.startswith("AttributeError")
    text = _without(text, EXACT if names else level)
    return _REST.sub("", text) if level == COARSE else text


def _without(text: str, level: int) -> str:
    """A line without its values and, beyond the first level, without names."""
    text = without_values(text)
    return without_names(text) if level else text


def _wrong_values(said: Said, level: int) -> str:
    """The operator, and how much of its result is wrong."""
    topic, _, rest = said.id.partition(":")
    surface = topic.partition("/")[0]
    operator = f" of {rest.partition(':')[0]}" if surface == "opinfo" and rest else ""
    places = (f" in {topic}{operator}", f" in {surface}", "")
    return f"wrong values in {_EXTENTS[said.mismatch or '']} elements{places[level]}"
