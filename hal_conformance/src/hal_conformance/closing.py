# SPDX-License-Identifier: BSD-3-Clause
"""The end of a run in the terminal: which requirements a driver does not meet, and why."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hal_conformance.covers import catalogue

WIDTH = 100
MAX_CAUSES = 20
# What differs between failures of one cause.
_EXCEPTION = re.compile(r"(AssertionError|hal_conformance\.\S+): ")
_VALUES = re.compile(r"0x[0-9a-fA-F]+|(?<![\w-])-?\d+(\.\d+)?\b")


@dataclass(frozen=True)
class Failure:
    """A test that failed."""

    driver: str
    requirements: tuple[str, ...]
    message: str


def lines(failures: Iterable[Failure]) -> Iterator[str]:
    """What there is to say about the failures, by driver."""
    by_driver: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        by_driver[failure.driver].append(failure)
    for driver, its_own in sorted(by_driver.items()):
        yield from _requirements(driver, its_own)
        yield from _causes(driver, its_own)


def cause(message: str) -> str:
    """The first line of a message, without the values in it."""
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    return _VALUES.sub("N", _EXCEPTION.sub("", first, count=1))


def _requirements(driver: str, failures: list[Failure]) -> Iterator[str]:
    counts = Counter(id for failure in failures for id in failure.requirements)
    for level in ("must", "should"):
        failed = sorted(id for id in counts if catalogue()[id].level == level)
        if failed:
            yield f"{driver} fails tests of {len(failed)} {level}-level requirements"
        for id in failed:
            line = f"{counts[id]:>5}  {id} {catalogue()[id].statement}"
            yield textwrap.shorten(line, WIDTH, placeholder=" ...") if len(line) > WIDTH else line


def _causes(driver: str, failures: list[Failure]) -> Iterator[str]:
    groups: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        groups[cause(failure.message)].append(failure)
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    yield f"causes of failure on {driver}, most frequent first"
    for text, group in ranked[:MAX_CAUSES]:
        yield f"{len(group):>5}  {text[:WIDTH]}"
        ids = " ".join(sorted({id for failure in group for id in failure.requirements}))
        yield from textwrap.wrap(ids, WIDTH, initial_indent=" " * 7, subsequent_indent=" " * 7)
    if len(ranked) > MAX_CAUSES:
        yield f"       ... {len(ranked) - MAX_CAUSES} more causes"
