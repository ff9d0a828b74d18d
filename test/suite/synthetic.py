# SPDX-License-Identifier: BSD-3-Clause
"""Reports made from nothing: of the suite's real requirements, with as many checks as wanted."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from torch_conformance.judging.judge import Judged
from torch_conformance.results import reader, report, source
from torch_conformance.running.result import Result
from torch_conformance.selecting import selection
from torch_conformance.selecting.durations import Durations
from torch_conformance.spec import capabilities, catalogue
from torch_conformance.spec.outcome import Outcome, is_unexpected
from torch_conformance.spec.result import CheckResult

Record = dict[str, Any]
Content = dict[str, Any]


@functools.cache
def requirements() -> dict[str, catalogue.Requirement]:
    """The suite's."""
    return catalogue.load()


def check_id(requirement: str, number: int = 0) -> str:
    """The id of a made-up check of a requirement."""
    surface = requirements()[requirement].surface
    return f"{surface}/{requirement.lower().replace('-', '_')}:c{number}"


def record(requirement: str, outcome: str = "pass", number: int = 0, **more: Any) -> Record:
    """A valid record; a bad outcome gets message and repro, an excused one a reason.

    A `reason` may be a text; `excused` names list and entry of the expectation that decided.
    """
    named = requirements()[requirement]
    made: Record = {
        "id": check_id(requirement, number),
        "requirements": [requirement],
        "surface": named.surface,
        "tier": named.tier,
        "level": named.level,
        "outcome": outcome,
        "duration_s": 0.001,
    }
    if outcome in ("fail", "error", "crash", "timeout", "device_lost", "xpass"):
        made |= {"message": f"{outcome} of 3 elements", "repro": "pytest conformance"}
    elif outcome == "flaky" and not {"excused", "reason"} & more.keys():
        attempts = [{"outcome": "fail", "message": "3 elements"}, {"outcome": "pass"}]
        made |= {"message": "fail, then pass", "repro": "pytest", "attempts": attempts}
    elif outcome != "pass":
        entry = {"list": outcome, "entry": made["id"]} if outcome in ("xfail", "flaky") else None
        said = more.pop("reason", "because")
        made["reason"] = reason(outcome, said, more.pop("excused", entry))
    return made | more


def reason(outcome: str, said: str | Record, excused: Record | None = None) -> Record:
    """A reason that suits an outcome, from a text."""
    if isinstance(said, dict):
        return said
    if excused is not None:
        return {"kind": "excused", **excused, "text": said, "link": "https://example.org/1"}
    if outcome == "blocked_upstream":
        issue, _, message = said.partition("; ")
        return {"kind": "blocked", "issue": issue, "message": message}
    return {"kind": "device_gone" if outcome == "not_run" else "stated", "text": said}


def needs(*names: str) -> Record:
    """The reason of a check that needs capabilities which are absent."""
    return {"kind": "missing_capability", "names": list(names)}


def typed(made: Record) -> CheckResult:
    """A record as the result that it is."""
    return msgspec.convert(made, CheckResult)


def judged(raw: Result) -> Judged:
    """A raw result as a judge without catalogue and expectations would leave it."""
    unexpected = is_unexpected(raw.outcome, listed=False)
    result = CheckResult(
        id=raw.id,
        requirements=("COPY-001",),
        surface="copy",
        tier="core",
        level="must",
        outcome=raw.outcome,
        duration_s=raw.duration,
        message=raw.message if unexpected else None,
        reason=raw.reason,
        repro="again" if unexpected else None,
    )
    return Judged(result, raw)


def totals(records: list[Record]) -> dict[str, int]:
    """How many records have each outcome."""
    counts = Counter(r["outcome"] for r in records)
    return {outcome.value: counts[outcome.value] for outcome in Outcome}


def run(**changes: Any) -> dict[str, Any]:
    """What a report says about its run, but for the selection."""
    return {
        "suite": "0.1.0",
        "source": {"commit": None, "digest": source.digest()},
        "python": "3.11.7",
        "platform": "Linux",
        "started": "2026-11-20T12:00:00+00:00",
        "duration_s": 1.5,
        "backend": "mychip",
        "device_type": "mychip",
        "torch": {"version": "2.13.0", "git": None},
        "seed": 0,
        "descriptor": None,
        "expectations": None,
        "selection": None,
        "capabilities": {n: {"value": True, "source": "probed"} for n in capabilities.MEANING},
        "options": {
            "isolate": "chunk",
            "workers": 2,
            "chunk": 50,
            "dtypes": ["standard"],
            "fallback": "allow",
            "shard": None,
            "tier": None,
            "checks": [],
        },
    } | changes


def content(records: list[Record] | None = None, **changes: Any) -> Content:
    """A valid, complete report; by default of one passing check for each requirement."""
    if records is None:
        records = [record(id) for id in requirements()]
    made: Content = {
        "schema": report.SCHEMA,
        "complete": not any(r["outcome"] == "not_run" for r in records),
        "run": run(**changes),
        "totals": totals(records),
        "requirements": {
            id: {"level": r.level, "tier": r.tier} for id, r in requirements().items()
        },
        "checks": sorted(records, key=lambda r: str(r["id"])),
    }
    if made["run"]["selection"] is None:
        made["run"]["selection"] = select(records)
    return made


def select(records: list[Record], *differs_by: str) -> dict[str, Any]:
    """The selection of exactly these records."""
    ids = [r["id"] for r in records]
    return {
        "checks": len(ids),
        "digest": selection.digest(ids),
        "differs_by": list(differs_by),
    }


def replaced(*records: Record) -> Content:
    """A report of one passing check for each requirement, but for these records."""
    changed = {r["id"]: r for r in records}
    default = {r["id"]: r for r in map(record, requirements())}
    return content(list((default | changed).values()))


def shards(whole: Content, count: int, by: Durations | None = None) -> list[Content]:
    """A report cut into the shards that would have made it."""
    parts = []
    records = {r["id"]: r for r in whole["checks"]}
    for index in range(1, count + 1):
        durations = {"file": by.file, "sha256": by.sha256} if by else None
        said = {"shard": f"{index}/{count}", "durations": durations}
        ids = selection.part(records, index, count, by)
        mine = [records[id] for id in ids]
        part = {"checks": len(ids), "digest": selection.digest(ids)}
        run = {
            "options": whole["run"]["options"] | said,
            "selection": whole["run"]["selection"] | {"part": part},
        }
        parts.append(whole | {"run": whole["run"] | run} | {"totals": totals(mine), "checks": mine})
    return parts


def document(made: Content) -> reader.Document:
    """Read through the strict reader."""
    return reader.parse(encode(made), "report.json")


def encode(made: Content) -> bytes:
    """As the bytes of a file."""
    return json.dumps(made).encode()


def write(file: Path, made: Content) -> Path:
    """As a file."""
    file.write_bytes(encode(made))
    return file


def many(count: int) -> Content:
    """A report of many checks, with some of every outcome."""
    ids = sorted(id for id in requirements() if id.startswith("OPINFO"))
    outcomes = ("fail", "error", "crash", "timeout", "xfail", "unsupported", "flaky")
    records = []
    for number in range(count):
        seed = hashlib.sha256(str(number).encode()).digest()[0]
        outcome = outcomes[seed % 7] if seed < 14 else "pass"
        records.append(record(ids[number % len(ids)], outcome, number, samples=seed))
    return content(records)
