# SPDX-License-Identifier: BSD-3-Clause
"""The verdict: what the gate found, as values and as JSON (schema/verdict.schema.json).

It is written by a run that has no rights and read by one that has them, so `parse` believes
nothing: neither the types, nor that the outcome follows from what is listed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import jsonschema

from ci.errors import CiError
from torch_conformance.spec import strict

SCHEMA = Path(__file__).parent / "schema" / "verdict.schema.json"
SCHEMA_VERSION = 1
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


@dataclass(frozen=True)
class Since:
    """A finding that may be why a check fails."""

    finding: str  # its identity
    by: str  # "name": the failure names the declaration; "surface": it is of the same part


@dataclass(frozen=True)
class Check:
    """How one check changed in one configuration."""

    lane: str
    id: str
    kind: Class
    means: Means
    before: str | None  # outcomes
    after: str | None
    requirements: tuple[str, ...] = ()
    surface: str = ""
    message: str = ""
    since: tuple[Since, ...] = ()
    repro: str = ""


@dataclass(frozen=True)
class Shard:
    """One of the reports of a configuration."""

    shard: str | None  # "2/4"; null: the whole run
    checks: int | None  # null: of a shard that was merged before
    started: str | None
    duration_s: float
    platform: str | None
    sha256: str


@dataclass(frozen=True)
class Lane:
    """One run of the suite: a torch and a driver."""

    name: str
    required: bool
    outcome: Outcome
    backend: str | None
    torch: str | None
    baseline: str | None  # the torch that it is compared with; null: with nothing
    counts: Mapping[str, int]  # checks by outcome
    classes: Mapping[str, int]  # checks by class
    means: Mapping[str, int]  # checks, but for the unchanged ones, by what they mean
    problems: tuple[str, ...]  # why there is no usable result
    notes: tuple[str, ...]
    shards: tuple[Shard, ...]


@dataclass(frozen=True)
class Cause:
    """A finding that may be the cause of a failure, shortened."""

    identity: str
    rule: str
    severity: str
    surface: str
    name: str
    message: str
    hint: str | None


@dataclass(frozen=True)
class Verdict:
    """What the gate found."""

    outcome: Outcome
    head_sha: str | None
    problems: tuple[str, ...]  # of no lane in particular
    notes: tuple[str, ...]
    lanes: tuple[Lane, ...]
    checks: tuple[Check, ...]  # worst first; none that is unchanged
    left_out: int  # checks that were too many
    findings: tuple[Cause, ...]

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
    text = _dumps(verdict)
    while len(text) > MAX_BYTES and verdict.checks:
        kept = verdict.checks[: len(verdict.checks) // 2]
        left_out = verdict.left_out + len(verdict.checks) - len(kept)
        verdict = replace(verdict, checks=kept, left_out=left_out)
        text = _dumps(verdict)
    return text


def _dumps(verdict: Verdict) -> str:
    document = {"schema_version": SCHEMA_VERSION, **asdict(verdict)}
    for check in document["checks"]:
        check["class"] = check.pop("kind")
    return json.dumps(document, indent=1) + "\n"


def parse(data: bytes, name: str) -> Verdict:
    """The verdict in these bytes; CiError if they are none, or one that contradicts itself."""
    if len(data) > MAX_BYTES:
        raise CiError(f"{name}: not a verdict: larger than {MAX_BYTES >> 20} MiB")
    try:
        document = strict.loads(data)
    except strict.Malformed as error:
        raise CiError(f"{name}: not a verdict: {error}") from None
    if wrong := next(_validator().iter_errors(document), None):
        place = "/".join(map(str, wrong.absolute_path)) or "the document"
        raise CiError(f"{name}: not a verdict: {place}: {wrong.message[:200]}")
    verdict = _read(document)
    if problem := _contradiction(verdict):
        raise CiError(f"{name}: the verdict contradicts itself: {problem}")
    return verdict


@functools.cache
def _validator() -> Any:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _read(document: dict[str, Any]) -> Verdict:
    return Verdict(
        outcome=Outcome(document["outcome"]),
        head_sha=document["head_sha"],
        problems=tuple(document["problems"]),
        notes=tuple(document["notes"]),
        lanes=tuple(map(_read_lane, document["lanes"])),
        checks=tuple(map(_read_check, document["checks"])),
        left_out=document["left_out"],
        findings=tuple(Cause(**finding) for finding in document["findings"]),
    )


def _read_lane(entry: dict[str, Any]) -> Lane:
    texts = {key: tuple(entry[key]) for key in ("problems", "notes")}
    shards = tuple(Shard(**shard) for shard in entry["shards"])
    return Lane(**{**entry, **texts, "outcome": Outcome(entry["outcome"]), "shards": shards})


def _read_check(entry: dict[str, Any]) -> Check:
    rest = {key: value for key, value in entry.items() if key != "class"}
    read = {
        "kind": Class(entry["class"]),
        "means": Means(entry["means"]),
        "requirements": tuple(entry["requirements"]),
        "since": tuple(Since(**since) for since in entry["since"]),
    }
    return Check(**{**rest, **read})


def _contradiction(verdict: Verdict) -> str | None:
    """What the schema cannot say; None if all is well."""
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
