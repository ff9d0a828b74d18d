# SPDX-License-Identifier: BSD-3-Clause
"""The verdict: what the gate found, as values and as JSON.

It is written by a run that has no rights and read by one that has them, so `parse` believes
nothing: neither the types, nor that the outcome follows from what is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from torch_backend_ci import document
from torch_backend_ci.document import Natural, Part, Sha, Sha256, one_of
from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.model import Severity
from torch_conformance.spec.outcome import Outcome as Ended

MAX_BYTES = 8 << 20


class Means(str, Enum):
    """The effect on the change, worst first; `note` is also the outcome `ok`."""

    INFRASTRUCTURE = "infrastructure"  # no usable result
    REGRESSION = "regression"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Means).index(self)


class Outcome(str, Enum):
    """How a configuration, or the whole gate, ended."""

    OK = "ok"
    REGRESSION = "regression"
    INFRASTRUCTURE = "infrastructure"


class Class(str, Enum):
    """How a check changed; the most important classes first."""

    MISSING = "missing"  # the run before had it
    NEW_FAILURE = "new_failure"
    WITHDRAWN = "withdrawn"  # passed, and now the backend says that it does not support it
    UNEXPECTED_PASS = "unexpected_pass"  # an expectation is to be deleted
    TO_FALLBACK = "to_fallback"  # passes still, but on the CPU now
    FLAKY = "flaky"  # failed and passed in one run
    EXCUSED = "excused"  # not good before or now, and nothing is asked of it any more
    BLOCKED_UPSTREAM = "blocked_upstream"  # newly prevented by a known fault of PyTorch
    BROKEN_TRUNK = "broken_trunk"  # bad before and now
    FIXED = "fixed"
    NEW = "new"
    UNCHANGED = "unchanged"


_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
LaneName = Annotated[str, Meta(pattern=_NAME, max_length=64)]
Count = Annotated[int, Meta(ge=0, le=100_000_000)]
Short = Annotated[str, Meta(max_length=200)]
Long = Annotated[str, Meta(max_length=4000)]
EndedWord = Annotated[str, one_of(*(outcome.value for outcome in Ended))]
ClassWord = Annotated[str, one_of(*(kind.value for kind in Class))]
MeansWord = Annotated[str, one_of(*(means.value for means in Means))]
Texts = Annotated[tuple[Long, ...], Meta(max_length=100)]
Identity = Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
RequirementId = Annotated[str, Meta(pattern="^[A-Z][A-Z0-9]*-[0-9]{3}$")]


class Since(Part, frozen=True):
    """A finding that may be why a check fails."""

    finding: Annotated[Identity, Meta(description="Its identity.")]
    by: Annotated[
        Literal["name", "surface"],
        Meta(
            description="name: the failure names the declaration; surface: both are of one part "
            "of PyTorch."
        ),
    ]


class Check(Part, frozen=True):
    """How one check changed in one configuration."""

    lane: LaneName
    id: Annotated[str, Meta(min_length=1, max_length=500)]
    kind: Class = field(name="class")
    means: Means
    before: Ended | None
    after: Ended | None
    duration_s: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Null for a check that is gone.")
    ]
    requirements: Annotated[tuple[RequirementId, ...], Meta(max_length=100)]
    surface: Short
    message: Long
    since: Annotated[
        tuple[Since, ...],
        Meta(max_length=10, description="Findings that may be why, the most likely one first."),
    ]
    repro: Long


class Shard(Part, frozen=True):
    """One of the reports of a configuration."""

    shard: Annotated[str, Meta(pattern="^[1-9][0-9]{0,5}/[1-9][0-9]{0,5}$")] | None
    checks: Annotated[
        Natural | None, Meta(description="Null for a shard that had been merged before.")
    ]
    started: Short | None
    duration_s: Annotated[float, Meta(ge=0)]
    platform: Long | None
    sha256: Sha256


class Lane(Part, frozen=True):
    """One run of the suite: a torch and a driver."""

    name: LaneName
    required: Annotated[bool, Meta(description="Whether it decides.")]
    outcome: Outcome
    backend: Short | None
    torch: Annotated[
        Short | None, Meta(description="Its version; null for a report that does not say.")
    ]
    baseline: Annotated[
        Short | None,
        Meta(
            description="The torch of the run that it is compared with, `unknown` if that does not "
            "say; null: compared with nothing."
        ),
    ]
    counts: Annotated[
        Mapping[Annotated[str, one_of(*(outcome.value for outcome in Ended))], Count],
        Meta(description="Checks by outcome."),
    ]
    classes: Annotated[
        Mapping[Annotated[str, one_of(*(kind.value for kind in Class))], Count],
        Meta(description="Checks by class."),
    ]
    means: Annotated[
        Mapping[MeansWord, Count],
        Meta(description="Checks that are not unchanged, by what that means."),
    ]
    problems: Annotated[Texts, Meta(description="Why there is no usable result.")]
    notes: Texts
    shards: Annotated[
        tuple[Shard, ...],
        Meta(max_length=10_000, description="The reports of the configuration."),
    ]


class Cause(Part, frozen=True):
    """A finding that may be the cause of a failure, shortened."""

    identity: Identity
    rule: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,99}$")]
    severity: Severity
    surface: Short
    name: Long
    message: Long
    hint: Long | None


class Verdict(Part, tag_field="schema_version", tag=1, frozen=True):
    """What `torch-backend-ci gate` found."""

    outcome: Annotated[
        Outcome,
        Meta(
            description="The worst of the required configurations; infrastructure also if there is "
            "none, or for `problems`."
        ),
    ]
    head_sha: Annotated[
        Sha | None, Meta(description="The commit that was judged, if the gate knows it.")
    ]
    problems: Annotated[
        Texts, Meta(description="Why there is no usable result, of no configuration in particular.")
    ]
    notes: Texts
    lanes: Annotated[tuple[Lane, ...], Meta(max_length=256)]
    checks: Annotated[
        tuple[Check, ...],
        Meta(
            max_length=2000,
            description="Every check that is not unchanged, worst first, up to a limit.",
        ),
    ]
    left_out: Annotated[Count, Meta(description="Checks that were too many.")]
    findings: Annotated[
        tuple[Cause, ...],
        Meta(max_length=2000, description="Those that may be the cause of a failure."),
    ]

    def of(self, means: Means) -> list[Check]:
        """The checks that mean this, of required lanes first."""
        required = {lane.name for lane in self.lanes if lane.required}
        found = (check for check in self.checks if check.means is means)
        return sorted(found, key=lambda check: check.lane not in required)


def outcome_of(problems: object, means: Mapping[str, int]) -> Outcome:
    """The outcome of a configuration with these problems and checks."""
    if problems or means.get(Means.INFRASTRUCTURE.value):
        return Outcome.INFRASTRUCTURE
    return Outcome.REGRESSION if means.get(Means.REGRESSION.value) else Outcome.OK


def outcome_of_all(problems: object, lanes: tuple[Lane, ...]) -> Outcome:
    """How the gate ends: as the worst of the required lanes; never well without one."""
    required = {lane.outcome for lane in lanes if lane.required}
    if problems or not required or Outcome.INFRASTRUCTURE in required:
        return Outcome.INFRASTRUCTURE
    return Outcome.REGRESSION if Outcome.REGRESSION in required else Outcome.OK


def render(verdict: Verdict) -> str:
    """As JSON that `parse` takes: the last checks are left out where they would be too much."""
    text = document.dumps(verdict)
    while len(text) > MAX_BYTES and verdict.checks:
        kept = verdict.checks[: len(verdict.checks) // 2]
        left_out = verdict.left_out + len(verdict.checks) - len(kept)
        verdict = replace(verdict, checks=kept, left_out=left_out)
        text = document.dumps(verdict)
    return text


def parse(data: bytes, name: str) -> Verdict:
    """The verdict in these bytes; CiError if they are none, or one that contradicts itself."""
    verdict = document.decode(data, Verdict, name, MAX_BYTES)
    if problem := _contradiction(verdict):
        raise CiError(f"{name}: the verdict contradicts itself: {problem}")
    return verdict


def _contradiction(verdict: Verdict) -> str | None:
    """What the class cannot say; None if all is well."""
    names = [lane.name for lane in verdict.lanes]
    if len(set(names)) != len(names):
        return "a configuration is there twice"
    for lane in verdict.lanes:
        if lane.outcome is not outcome_of(lane.problems, lane.means):
            return (
                f"configuration {lane.name} is not {lane.outcome.value} by its problems and checks"
            )
    if verdict.outcome is not outcome_of_all(verdict.problems, verdict.lanes):
        return f"it is not {verdict.outcome.value} by its configurations"
    if any(check.lane not in names for check in verdict.checks):
        return "a check is of an unknown configuration"
    listed = len(verdict.checks) + verdict.left_out
    if listed != sum(sum(lane.means.values()) for lane in verdict.lanes):
        return "the number of checks is not that of the configurations"
    known = {finding.identity for finding in verdict.findings}
    if any(since.finding not in known for check in verdict.checks for since in check.since):
        return "a check names a finding that is not listed"
    return None
