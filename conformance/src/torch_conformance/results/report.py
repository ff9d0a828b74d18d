# SPDX-License-Identifier: BSD-3-Clause
"""The report: what one run of the suite says of one backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from torch_conformance.selecting.selection import Selection
from torch_conformance.spec.outcome import EXECUTED, Outcome
from torch_conformance.spec.result import (
    CheckResult,
    Count,
    Digest,
    Level,
    Number,
    RequirementId,
    Seconds,
    Tier,
)

SCHEMA: Final = "urn:torch-conformance:report:2"

Shard = Annotated[str, Meta(pattern="^[1-9][0-9]{0,5}/[1-9][0-9]{0,5}$")]


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that took part in the run."""

    file: str
    """Its name, without its folder."""
    sha256: Digest


class Torch(msgspec.Struct, frozen=True, kw_only=True):
    """The torch that was tested."""

    version: str
    git: str | None


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which suite exactly."""

    commit: str | None
    """Commit of the suite's checkout; null: it was installed."""
    digest: Digest
    """Of the suite's files."""


class Capability(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the backend has a capability, and who says so."""

    value: bool
    source: Literal["declared", "probed"]
    broken: str | None = None
    """What its probe saw, if the capability is broken: neither present nor absent."""


class Verify(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds of --verify, and the seed of the first."""

    rounds: Number
    seed: int


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How it was run."""

    isolate: str
    workers: Number
    chunk: Number
    dtypes: Annotated[tuple[str, ...], Meta(min_length=1)]
    fallback: Literal["allow", "warn", "forbid"]
    shard: Shard | None
    tier: str | None
    checks: tuple[str, ...]
    rerun_limit: int | None = None
    verify: Verify | None = None
    durations: File | None = None
    """The earlier report by whose durations the run was cut into shards; absent: alike in
    number."""


class Merged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shard that a report was merged from."""

    shard: str
    started: str
    duration_s: Seconds
    platform: str
    sha256: Digest


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What was run, where and how."""

    backend: str
    device_type: str
    torch: Torch
    suite: str
    """Version of the suite."""
    source: Source
    python: str
    platform: str
    seed: int
    started: str
    duration_s: Seconds
    descriptor: File | None
    expectations: File | None
    selection: Selection | None
    """Null while unknown."""
    capabilities: dict[str, Capability]
    options: Options
    merged: tuple[Merged, ...] | None = None
    """The shards that the report was merged from."""
    driver: dict[str, Any] | None = None
    """What the backend says of the driver it runs on."""
    devices: tuple[str, ...] = ()
    """Names of the devices under test."""
    cannot_load: str | None = None
    """Why the backend did not come up."""

    @property
    def shard(self) -> tuple[int, int] | None:
        """Which part of a run it was, or None for a whole one."""
        if self.options.shard is None:
            return None
        index, _, count = self.options.shard.partition("/")
        return int(index), int(count)

    @property
    def absent(self) -> list[str]:
        """The capabilities that the backend lacks, sorted; also those that are broken."""
        return sorted(name for name, entry in self.capabilities.items() if not entry.value)


class Demand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A requirement, as far as levels go by it."""

    level: Level
    tier: Tier


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Report of one run of the conformance suite against one backend."""

    schema: Literal["urn:torch-conformance:report:2"]
    complete: bool
    """Every selected check was executed or decided; otherwise the report judges nothing."""
    run: Run
    totals: dict[Outcome, Count]
    """How many checks had each outcome; recomputable from checks."""
    requirements: dict[RequirementId, Demand]
    """Every requirement of the suite, so that levels can be recomputed without it."""
    checks: tuple[CheckResult, ...]

    @property
    def state(self) -> str:
        """`green`, or why it is not: `incomplete`, `nothing executed`, `red`."""
        if not self.complete:
            return "incomplete"
        if not any(result.outcome in EXECUTED for result in self.checks):
            return "nothing executed"
        return "red" if any(result.unexpected for result in self.checks) else "green"


def totals(results: Iterable[CheckResult]) -> dict[Outcome, int]:
    """How many results have each outcome; every outcome is listed."""
    counts = Counter(result.outcome for result in results)
    return {outcome: counts[outcome] for outcome in Outcome}
