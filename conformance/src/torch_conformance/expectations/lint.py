# SPDX-License-Identifier: BSD-3-Clause
"""What a reviewer would object to in an expectations file."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator, Sequence

from torch_conformance.expectations.entry import Expectation
from torch_conformance.expectations.patterns import Index
from torch_conformance.expectations.update import UNREVIEWED

#: An `xfail` is temporary: a date further away than this is none.
LONGEST = datetime.timedelta(days=400)
#: Below this a reason is a word, not a reason.
SHORTEST_REASON = 10
_LINK = re.compile(r"https?://[^\s/]+\.[^\s/]+(/\S*)?")
_PLACEHOLDER = re.compile(r"\b(todo|tbd|fixme|xxx|unknown)\b|^[.?\-]*$", re.IGNORECASE)


def findings(
    entries: Sequence[Expectation], known_ids: Collection[str], today: datetime.date
) -> Iterator[str]:
    """A line for each objection, in the order of the entries; each begins with file and line."""
    index = Index(known_ids)
    decided: set[str] = set()
    seen: set[tuple[int, int]] = set()
    for entry in entries:
        of_all_ids = () if entry.lines in seen else (_reason, _link, _expiry)
        seen.add(entry.lines)
        for rule in (*of_all_ids, _width):
            problem = rule(entry, today)
            if problem:
                yield f"{entry.where}: {problem}"
        named = set(index.named(entry.id))
        if not named:
            yield f"{entry.where}: {entry.id!r} matches no check"
        elif named <= decided:
            yield f"{entry.where}: entries before it decide every check that {entry.id!r} names"
        decided |= named


def _reason(entry: Expectation, today: datetime.date) -> str | None:
    if entry.reason.startswith(UNREVIEWED):
        return "not reviewed: say in 'reason' why this is so, and link the issue"
    if len(entry.reason.strip()) < SHORTEST_REASON or _PLACEHOLDER.search(entry.reason):
        return f"reason {entry.reason!r} explains nothing"
    return None


def _link(entry: Expectation, today: datetime.date) -> str | None:
    if entry.link == UNREVIEWED or _LINK.fullmatch(entry.link):
        return None  # `_reason` reports the first.
    return f"link {entry.link!r} is no address: link the issue or the page that explains it"


def _expiry(entry: Expectation, today: datetime.date) -> str | None:
    if entry.expired(today):
        return f"expired on {entry.expires}: mend it or prolong it"
    if entry.expires and entry.expires - today > LONGEST:
        return f"expires only on {entry.expires}: at most {LONGEST.days} days ahead"
    return None


def _width(entry: Expectation, today: datetime.date) -> str | None:
    _, slash, rest = entry.id.partition("/")
    if slash and rest not in ("", "*"):
        return None
    return f"{entry.id!r} excuses more than one topic: name what is excused"
