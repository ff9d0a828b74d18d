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
from typing import TYPE_CHECKING

import msgspec

from torch_conformance.selecting import durations
from torch_conformance.spec.result import Count, Digest

if TYPE_CHECKING:
    from torch_conformance.selecting.durations import Durations


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The checks of one shard."""

    checks: Count
    digest: Digest


class Selection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The checks of a whole run, and those of the part that this machine runs, if it is one."""

    checks: Count
    digest: Digest
    """SHA-256 of the sorted ids, a line each."""
    differs_by: tuple[str, ...]
    """What made it differ from the suite's standard selection; levels need none."""
    part: Part | None = None
    """The checks of this shard."""

    @property
    def whole(self) -> Selection:
        """The selection of the run that a shard is a part of."""
        return msgspec.structs.replace(self, part=None)


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
