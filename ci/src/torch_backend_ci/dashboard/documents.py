# SPDX-License-Identifier: BSD-3-Clause
"""Parts that the JSON documents of several kinds of pages have in common.

A page declares its document as the class `Document`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from torch_backend_ci.dashboard.model import Blocker, Key, Result, Run, Series, Step
from torch_backend_ci.document import Natural, Part, Positive, Time, one_of, stamp

NAMESPACE = "urn:torch-conformance:dashboard"

Line = Annotated[str, Meta(description="Of torch's releases; `nightly` for what is no release.")]
RunId = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{12}$",
        max_length=12,
        description="The first 12 digits of the SHA-256 of its report, as in api/run/ID.json.",
    ),
]
Seconds = Annotated[float, Meta(ge=0)]
Counts = Mapping[str, Natural]
Evidence = Annotated[str, one_of("native", "composite", "fallback")]
Level = Annotated[str, one_of("must", "should", "may")]
Tier = Annotated[
    str, one_of("smoke", "core", "inference", "training", "multi_device", "distributed", "compile")
]
Standing = Annotated[str, one_of("verified", "broken", "waived", "untested", "not asked")]
Unlike = Annotated[
    tuple[str, ...],
    Meta(description="What the two runs did not ask alike; then no finding is named."),
]


class RunPart(Part, kw_only=True, frozen=True):
    """A run, as far as it has to be known to be found."""

    id: RunId
    started: Time
    torch: str


class KeyPart(Part, kw_only=True, frozen=True):
    """A series: the runs of a backend with one release line of torch."""

    backend: str
    line: Line


class ColumnPart(KeyPart, kw_only=True, frozen=True):
    """A series, and the run that stands for it."""

    run: RunPart | None


class StalePart(Part, frozen=True):
    """The column of a series is older than the newest nightly run."""

    days: Annotated[Positive, Meta(description="Older than the newest run of the store.")]
    reason: Annotated[str, Meta(description="What became of the runs since.")]


class BlockerPart(Part, frozen=True):
    """What stands between a run and a level."""

    what: Annotated[str, Meta(description="A requirement, or what else the level demands.")]
    why: str
    checks: Natural
    example: Annotated[str | None, Meta(description="One of the checks.")]


class LevelPart(Part, kw_only=True, frozen=True):
    """How far a run is with one level."""

    name: str
    verified: Natural
    must: Natural
    should_verified: Natural
    should: Natural
    blockers: tuple[BlockerPart, ...]


class ResultPart(Part, kw_only=True, frozen=True):
    """All that a run says of a check; what it does not say is left out."""

    outcome: str
    duration_s: Seconds
    evidence: Evidence | UnsetType = UNSET
    message: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    repro: str | UnsetType = UNSET
    fallbacks: tuple[str, ...] | UnsetType = UNSET
    waiver: Annotated[
        str | UnsetType, Meta(description="LIST: ID of the expectation that decided.")
    ] = UNSET
    samples: Natural | UnsetType = UNSET


def schema(kind: str) -> str:
    """What a document says it is; schema/dashboard has its schema."""
    return f"{NAMESPACE}:{kind}:1"


def of_key(key: Key) -> dict[str, str]:
    """What a series is known by, for the parts that say it."""
    return {"backend": key.backend, "line": key.line}


def of_run(run: Run) -> RunPart:
    """A run."""
    return RunPart(id=run.id[:12], started=moment(run), torch=run.torch)


def moment(run: Run) -> str:
    """When it started."""
    return stamp(run.started)


def of_result(result: Result, limit: int | None = None) -> dict[str, Any]:
    """All that a run says of a check, for a ResultPart; texts cut to `limit`."""
    said: Mapping[str, Any] = {
        "evidence": result.evidence,
        "message": result.message and result.message[:limit],
        "reason": result.reason and result.reason[:limit],
        "repro": result.repro and result.repro[:limit],
        "fallbacks": tuple(result.fallbacks),
        "waiver": result.waiver,
        "samples": result.samples,
    }
    found = {name: value for name, value in said.items() if value not in (None, ())}
    return {"outcome": result.outcome, "duration_s": result.duration_s, **found}


def of_column(series: Series) -> dict[str, Any]:
    """The run that stands for a series, for a ColumnPart."""
    return {**of_key(series.key), "run": of_run(series.column) if series.column else None}


def of_level(step: Step) -> dict[str, Any]:
    """How far a run is with a level, for a LevelPart."""
    names = ("name", "verified", "must", "should_verified", "should")
    return {**{name: getattr(step, name) for name in names}, "blockers": of_blockers(step.blockers)}


def of_blockers(blockers: Iterable[Blocker]) -> tuple[BlockerPart, ...]:
    """What stands between a run and a level."""
    return tuple(BlockerPart(b.what, b.why, b.checks, b.example) for b in blockers)
