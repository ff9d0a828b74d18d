# SPDX-License-Identifier: BSD-3-Clause
"""What the pages are made from: runs in series, and the history of each check in them.

Nothing here depends on today's date: ages are counted up to the newest run of the store, so equal
stores give equal sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from torch_conformance.spec.outcome import Outcome, is_unexpected

NIGHTLY = "nightly"
REFERENCE = "cpu"
"""The device type that is no accelerator, and so has no level to reach."""


class Key(NamedTuple):
    """Which series: runs that ask the same of the same."""

    backend: str
    """Name of the report, and of the driver if it has several: `cpu`, `puone-sim`."""
    line: str
    """The release line of PyTorch, `2.13`; `nightly` if it is not a release."""


@dataclass(frozen=True)
class Blocker:
    """What stands between a run and a level (torch_conformance.results.levels.Blocker)."""

    what: str
    why: str
    checks: int
    example: str | None


@dataclass(frozen=True)
class Step:
    """How far a run is with one conformance level, apart from the levels before it."""

    name: str
    title: str
    verified: int
    must: int
    should_verified: int
    should: int
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True)
class Run:
    """A run of the suite, without its results."""

    id: str
    """SHA-256 of the report, in hex; its first 12 digits are its name in addresses."""
    key: Key
    device_type: str
    torch: str
    torch_git: str | None
    suite: str
    suite_commit: str | None
    suite_digest: str
    python: str
    platform: str
    driver: Mapping[str, Any] | None
    devices: tuple[str, ...]
    seed: int
    options: Mapping[str, Any]
    started: datetime
    """In UTC."""
    duration_s: float
    why_not: str | None
    """Why it is not aligned, or None: a complete run of the standard selection."""
    level: str | None
    """Name of the conformance level that was reached."""
    title: str
    """Of the level; `none` without one."""
    steps: tuple[Step, ...]
    """One for each level, lowest first; none where the run is not aligned."""
    without: tuple[str, ...]
    """Capabilities that the backend lacks."""
    broken: Mapping[str, str]
    """Those that a probe found broken, with what it saw."""
    totals: Mapping[str, int]
    """How many checks had each outcome."""
    bad: int
    """How many of them make the run red: what is unexpected."""
    evidence: Mapping[str, int]
    """How many checks had evidence `native`, `composite`, `fallback`."""
    surfaces: Mapping[str, Mapping[str, int]]
    """The totals of each surface."""
    standings: Mapping[str, str]
    """Of each requirement what the run says (torch_conformance.results.levels.Standing)."""
    told: Mapping[str, Any]
    """Of the report's `run`, what torch_conformance.results.comparison goes by."""
    kept: bool = True
    """Whether the store keeps its results; past their retention only the run itself is known."""

    @property
    def is_reference(self) -> bool:
        """Whether it is of PyTorch's own CPU, which others are compared with."""
        return self.device_type == REFERENCE


@dataclass(frozen=True)
class Stale:
    """The column of a series is not of the newest nightly run."""

    days: int
    """How much older than the newest run of the store."""
    reason: str
    """Why later runs do not count, in a sentence."""


@dataclass(frozen=True)
class Series:
    """The aligned runs of a key, oldest first, and what else was tried."""

    key: Key
    runs: tuple[Run, ...]
    others: tuple[Run, ...]
    """Runs that are not aligned, oldest first: they are only listed."""
    stale: Stale | None

    @property
    def column(self) -> Run | None:
        """The run that stands for the series: the newest aligned one."""
        return self.runs[-1] if self.runs else None


class Spell(NamedTuple):
    """Consecutive runs of a series in which a check came out alike, and as bad."""

    outcome: str
    evidence: str | None
    first: int
    """Index into `Series.runs`."""
    last: int
    """Index into `Series.runs`; between two segments may be runs that did not have the check."""


@dataclass(frozen=True)
class Result:
    """What one run says of one check."""

    outcome: str
    evidence: str | None
    duration_s: float
    message: str | None = None
    reason: str | None = None
    repro: str | None = None
    fallbacks: tuple[str, ...] = ()
    waiver: str | None = None
    """`LIST: ID` of the expectation that decided."""
    samples: int | None = None
    issue: str | None = None
    """Of PyTorch, if that blocks the check."""
    mismatch: str | None = None
    """In what a result differs from the expected one, if the check failed by that."""

    @property
    def unexpected(self) -> bool:
        """Whether it makes the run red."""
        return is_unexpected(Outcome(self.outcome), listed=self.waiver is not None)

    @property
    def text(self) -> str:
        """For people: what is wrong, or why it did not pass."""
        return self.message or self.reason or ""


@dataclass(frozen=True)
class Course:
    """One check in one series."""

    spells: tuple[Spell, ...]
    latest: Result | None
    """In the series' column; None if that run did not have the check."""
    last_bad: tuple[int, Result] | None
    """The newest bad result and the index of its run, if `latest` is not bad itself."""
    durations: tuple[float, ...]
    """Seconds, in the newest runs that had the check (at most `DURATIONS`), oldest first."""


DURATIONS = 30


@dataclass(frozen=True)
class Check:
    """One check, in every series that ever had it."""

    id: str
    surface: str
    tier: str
    level: str
    requirements: tuple[str, ...]
    courses: Mapping[Key, Course] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """A check that came out otherwise than in the aligned run before it in its series."""

    key: Key
    run: int
    """Index into `Series.runs`."""
    check: str
    before: str
    """An outcome, or `new`; an evidence, if that is all that changed from or to `fallback`."""
    after: str
    """An outcome, or `gone`; an evidence, as `before`."""
    kind: str
    """`regression`, `improvement` or `other` (torch_conformance.results.comparison)."""
    detail: str = ""
    """First line of message or reason, at most 200 characters."""
    mismatch: str | None = None
    """In what the result now differs from the expected one, if the check fails by that."""


@dataclass(frozen=True)
class Findings:
    """Findings between two torches (schema/findings.schema.json), as in the store."""

    id: str
    """SHA-256 of the document, in hex."""
    before: str
    after: str
    document: Mapping[str, Any]
