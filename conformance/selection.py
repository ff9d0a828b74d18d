# SPDX-License-Identifier: BSD-3-Clause
"""Which checks a run selected, in a form that others can recompute.

A run of everything and a run of what somebody picked look alike once they are reports. So a report
says how many checks were selected, by what they were fewer or others than the standard ones, and
carries a digest of their ids; of a shard, all of this is said of the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.check import PR

if TYPE_CHECKING:
    from conformance.suite import Suite

PYTEST = "pytest (its arguments, -k, -m, --deselect, --ignore, --lf)"


@dataclass(frozen=True)
class Selection:
    """The checks of a whole run, whatever part of them this machine runs."""

    checks: int
    digest: str
    differs_by: tuple[str, ...]
    """What made the selection differ from the standard one; empty if nothing did."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "checks": self.checks,
            "digest": self.digest,
            "differs_by": list(self.differs_by),
        }


def digest(ids: Iterable[str]) -> str:
    """A fingerprint of a set of check ids."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


def part(ids: Iterable[str], index: int, count: int) -> list[str]:
    """The I-th of N parts of a selection; the same wherever it is computed."""
    return sorted(ids)[index - 1 :: count]


def part_size(checks: int, index: int, count: int) -> int:
    """How many checks the I-th of N parts of a selection has."""
    return len(range(index - 1, checks, count))


def make(suite: Suite, ids: Collection[str]) -> Selection:
    """The selection of a run of `suite` that ended up with `ids`."""
    return Selection(len(ids), digest(ids), tuple(_differences(suite, ids)))


def _differences(suite: Suite, ids: Collection[str]) -> Iterable[str]:
    if suite.tier:
        yield f"--tier={suite.tier}"
    yield from (f"--check={pattern}" for pattern in suite.patterns)
    if suite.dtypes:
        yield f"--dtypes={','.join(suite.dtypes)}"
    elif suite.breadth == PR:
        yield f"--dtypes={PR}"
    if suite.checks_dir:
        yield "--checks-dir"
    if suite.since:
        yield f"--since={suite.since}"
    asked_for = {c.id for c in suite.available if suite.asks_for(c)}
    narrowed_by_option = suite.tier or suite.patterns or suite.since
    if asked_for != set(ids) or (not narrowed_by_option and not suite.collected_every_file):
        yield PYTEST
