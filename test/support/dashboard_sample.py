# SPDX-License-Identifier: BSD-3-Clause
"""A year in small: reports of three backends with three torches, in which everything happens once.

All of them pass torch_conformance.results.reader. What happens, by the names below:

- `cpu` passes everything in every night;
- `puone` on its driver sim breaks `BROKEN` with torch 2.13 in the third night and mends it in the
  fourth; `SLOWED` is left to the CPU from the third night on; `BLOCKED` waits for upstream; with
  the nightly torch `CRASHED` crashes from the second night on; `RENAMED` ends with the second;
- `hostile` says hostile things, has no run in the second night, is incomplete in the fourth with
  torch 2.13 and cannot be loaded with the nightly torch in the third and fourth.
"""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import synthetic
from synthetic import Content, Record

from torch_backend_ci.results.add import Fate, add

TORCHES = ("2.12.1", "2.13.0", "2.14.0.dev20261101")
NIGHTS = ("2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20")
REQUIREMENTS = (
    "AUTOCAST-001",
    "COPY-001",
    "DEV-001",
    "GRAD-001",
    "MEM-001",
    "MEM-003",
    "MODEL-001",
    "OP-001",
    "OP-027",
    "OPINFO-UNARY-001",
    "SMOKE-001",
    "STREAM-001",
)
CHECKS = {synthetic.check_id(id, n): id for id in REQUIREMENTS for n in range(2)}

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)
"""After all of them: a store takes no report from the future."""

BROKEN = synthetic.check_id("MEM-003")
SLOWED = synthetic.check_id("OP-001")
BLOCKED = synthetic.check_id("OP-027")
CRASHED = synthetic.check_id("STREAM-001")
RENAMED = synthetic.check_id("COPY-001", 1)
#: What must never come out as anything but text.
HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202egnp.exe\x1b[31m '\"><img src=x onerror=alert(2)>"

Outcomes = Mapping[str, "str | Record"]


def report(
    backend: str = "cpu",
    torch: str = "2.13.0",
    started: str = "2026-11-20T02:00:00+00:00",
    outcomes: Outcomes | None = None,
    without: tuple[str, ...] = (),
    complete: bool = True,
    **run: Any,
) -> Content:
    """A valid report of `CHECKS`, all passed but for `outcomes`: an outcome or parts of a record.

    `without` names checks that the run does not have; `run` is what it says of itself else.
    """
    changed = {
        id: {"outcome": o} if isinstance(o, str) else o for id, o in (outcomes or {}).items()
    }
    records = [
        _record(id, number, **changed.get(id, {}))
        for number, id in enumerate(CHECKS)
        if id not in without
    ]
    torch_said = {"version": torch, "git": hashlib.sha1(torch.encode()).hexdigest()}
    said = {"backend": backend, "device_type": backend, "torch": torch_said, "started": started}
    made = synthetic.content(records, **{**said, **run})
    named = sorted({id for one in records for id in one["requirements"]})
    made["requirements"] = {id: made["requirements"][id] for id in named}
    made["complete"] = made["complete"] and complete
    return made


def _record(id: str, number: int, **changes: Any) -> Record:
    default = {"evidence": "native" if number % 3 else "composite", "duration_s": number / 1000}
    changes = default | changes
    outcome = changes.pop("outcome", "pass")
    case = id.rpartition(":c")[2]
    return synthetic.record(CHECKS[id], outcome, int(case), **changes)


def unloadable(backend: str, torch: str, started: str, why: str) -> Content:
    """A valid report of a backend that did not come up."""
    made = report(backend, torch, started, without=tuple(CHECKS), complete=False, cannot_load=why)
    made["run"]["selection"] = None
    return made


def sample() -> dict[str, Content]:
    """All reports by names for their files, the oldest first."""
    return {
        f"{made['run']['backend']}-{torch}-{night}": made
        for number, night in enumerate(NIGHTS)
        for hour, torch in enumerate(TORCHES)
        for made in _of_night(number, torch, f"{night}T0{hour + 2}:00:00+00:00")
    }


def _of_night(number: int, torch: str, started: str) -> Iterator[Content]:
    yield report("cpu", torch, started, driver=None)
    yield _puone(number, torch, started)
    if number != 1:
        yield _hostile(number, torch, started)


def _puone(number: int, torch: str, started: str) -> Content:
    outcomes: dict[str, str | Record] = {
        BLOCKED: {"outcome": "blocked_upstream", "reason": "https://github.com/pytorch/pytorch"}
    }
    if number == 2 and torch == TORCHES[1]:
        wrong = {"message": "3 of 8 elements differ\nfirst at [2]", "repro": "import torch\n# ..."}
        outcomes[BROKEN] = {"outcome": "fail", "evidence": "native", **wrong}
    if number >= 2:
        outcomes[SLOWED] = {"evidence": "fallback", "fallbacks": ["aten::add.out"]}
    if number >= 1 and torch == TORCHES[2]:
        outcomes[CRASHED] = {"outcome": "crash", "message": "SIGSEGV", "evidence": None}
    return report(
        "puone",
        torch,
        started,
        outcomes,
        without=(RENAMED,) if number >= 2 else (),
        driver={"name": "sim", "version": "1.0"},
        devices=["sim 0", "sim 1"],
    )


def _hostile(number: int, torch: str, started: str) -> Content:
    if number >= 2 and torch == TORCHES[2]:
        return unloadable("hostile", torch, started, HOSTILE)
    outcomes: dict[str, str | Record] = {
        BROKEN: {"outcome": "fail", "message": HOSTILE * 3, "repro": HOSTILE},
        SLOWED: {
            "outcome": "xfail",
            "reason": HOSTILE,
            "excused": {"list": "xfail", "entry": HOSTILE},
        },
        BLOCKED: {"outcome": "unsupported", "reason": HOSTILE},
        CRASHED: {"evidence": "fallback", "fallbacks": [HOSTILE]},
    }
    if number == 3 and torch == TORCHES[1]:
        outcomes |= dict.fromkeys(list(CHECKS)[6:], "not_run")
    said: dict[str, Any] = {
        "platform": HOSTILE,
        "devices": [HOSTILE],
        "python": HOSTILE,
        "suite": HOSTILE,
        "capabilities": {
            **synthetic.run()["capabilities"],
            "streams": {"value": False, "source": "probed", "broken": HOSTILE},
        },
    }
    return report("hostile", torch, started, outcomes, **said)


def sample_store(folder: Path) -> Path:
    """A store with the whole sample."""
    return store(folder, sample())


def store(folder: Path, reports: Mapping[str, Content]) -> Path:
    """A store with these reports; a store that is there gets them added."""
    with tempfile.TemporaryDirectory() as scratch:
        told = add(folder, write(Path(scratch), reports), NOW)
        refused = [one.detail for one in told if one.fate is Fate.REFUSED]
    if refused:
        raise ValueError(f"the store refused a report: {refused[0]}")
    return folder


def write(folder: Path, reports: Mapping[str, Content]) -> list[Path]:
    """The reports as packed files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.json.gz" for name in reports]
    for file, made in zip(files, reports.values(), strict=True):
        file.write_bytes(gzip.compress(synthetic.encode(made), mtime=0))
    return files
