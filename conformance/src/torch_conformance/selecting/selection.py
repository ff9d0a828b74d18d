# SPDX-License-Identifier: BSD-3-Clause
"""Which checks a run selected, in a form that others can recompute.

A run of everything and a run of what somebody picked look alike once they are reports. So a report
says how many checks were selected, by what they were fewer or others than the standard ones, and
carries a digest of their ids; the report of a shard has all of this for the whole run, and number
and digest for the shard as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch_conformance.selecting import durations

if TYPE_CHECKING:
    from torch_conformance.selecting.durations import Durations


@dataclass(frozen=True)
class Part:
    """The checks of one shard."""

    checks: int
    digest: str

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"checks": self.checks, "digest": self.digest}


@dataclass(frozen=True)
class Selection:
    """The checks of a whole run, and those of the part that this machine runs, if it is one."""

    checks: int
    digest: str
    differs_by: tuple[str, ...]
    """What made the selection differ from the standard one; empty if nothing did."""
    part: Part | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        whole = {"checks": self.checks, "digest": self.digest, "differs_by": list(self.differs_by)}
        return whole | ({"part": self.part.to_json()} if self.part else {})


def digest(ids: Iterable[str]) -> str:
    """A fingerprint of a set of check ids."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


def part(ids: Collection[str], index: int, count: int, by: Durations | None = None) -> list[str]:
    """The I-th of N parts of a selection, alike in number or in time; the same wherever it is
    computed.
    """
    if by is not None:
        return durations.parts(ids, count, by.seconds)[index - 1]
    return sorted(ids)[index - 1 :: count]


def part_size(checks: int, index: int, count: int) -> int:
    """How many checks the I-th of N parts of a selection has, if they are alike in number."""
    return len(range(index - 1, checks, count))
