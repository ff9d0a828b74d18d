# SPDX-License-Identifier: BSD-3-Clause
"""Makes a store of 60 nights that never were, to show what the dashboard shows over time.

    python docs/dashboard/synthetic.py STORE

No backend and no suite runs: every result is drawn from a seed, and always the same. The store
says of itself that it is synthetic, on every page of its site, and so do the names of its backends.
What happens: `alder` regresses with torch 2.14 and is mended a week later, and regresses with the
nightly build in the last night; `birch` grows from nothing to a level; `cedar` has had no whole
run for five nights, and unstable checks before; single nights are missing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from torch_backend_ci.results import layout
from torch_backend_ci.results.add import Fate, add
from torch_conformance.results import report
from torch_conformance.selecting import selection
from torch_conformance.spec import capabilities, catalogue
from torch_conformance.spec.outcome import Outcome

SEED = "60 nights"
NIGHTS = 60
FIRST = datetime(2026, 9, 28, 2, tzinfo=timezone.utc)
NOTICE = (
    "Synthetic: no backend was run. All results on this site are made up, to show what the "
    "dashboard looks like after 60 nights."
)
#: Nights from which a line of torch is tested.
LINES = {"2.13.0": 0, "2.14.0": 20, "nightly": 0}
#: Capabilities that a backend lacks.
LACKS = {
    "cedar": ("peer_copy", "graphs", "memory_history"),
    "cpu": ("accelerator", "privateuse1"),
}  #: Nights after which a growing backend passes all checks of a tier.
GROWN = {"smoke": 20, "core": 45, "inference": 60}

Record = dict[str, Any]


class Night(NamedTuple):
    """A backend with a torch in a night."""

    backend: str
    torch: str
    number: int


@functools.cache
def drawn(*words: object) -> float:
    """From 0 to 1, the same for the same words."""
    digest = hashlib.sha256(" ".join(map(str, (SEED, *words))).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def alder(night: Night, id: str, tier: str) -> str:
    """Mature: two regressions in 60 nights."""
    since_2_14 = night.torch.startswith("2.14") and 41 <= night.number < 48
    if since_2_14 and id.startswith("copy/") and drawn("alder", id) < 0.4:
        return "fail"
    is_last = ".dev" in night.torch and night.number == NIGHTS - 1
    return "fail" if is_last and id.startswith("memory/") and drawn("alder", id) < 0.08 else "pass"


def birch(night: Night, id: str, tier: str) -> str:
    """Growing: each check passes from some night on, the lowest levels first."""
    return "pass" if night.number >= GROWN.get(tier, 90) * drawn("birch", id) - 9 else "fail"


def cedar(night: Night, id: str, tier: str) -> str:
    """Unstable, and not whole in the last nights."""
    if night.number >= NIGHTS - 5 and drawn("cut", id) < 0.3:
        return "not_run"
    return "flaky" if drawn("cedar", night.number, id) < 0.0005 else "pass"


def cpu(night: Night, id: str, tier: str) -> str:
    """What others are compared with."""
    return "pass"


BACKENDS: dict[str, Callable[[Night, str, str], str]] = {
    "alder": alder,
    "birch": birch,
    "cedar": cedar,
    "cpu": cpu,
}
SAID: dict[str, Record] = {
    "fail": {"message": "AssertionError: 3 of 8 elements differ; first at [2]: 1.0 and 2.0"},
    "flaky": {"message": "fail, then pass"},
    "not_run": {"reason": {"kind": "device_gone", "text": "the device was lost"}},
}


def nights() -> Iterator[Night]:
    """All that is run: now and then a night is missing."""
    for number in range(NIGHTS):
        for backend in BACKENDS:
            for torch, since in LINES.items():
                if number >= since and drawn("missing", backend, torch, number) > 0.03:
                    version = f"2.15.0.dev{FIRST + timedelta(days=number):%Y%m%d}"
                    yield Night(backend, version if torch == "nightly" else torch, number)


def content(night: Night) -> Record:
    """The report of a night."""
    known = catalogue.load()
    lacks = LACKS.get(night.backend, ())
    made = (_record(night, requirement, lacks) for requirement in known.values())
    checks = sorted(made, key=lambda one: str(one["id"]))
    counts = Counter(one["outcome"] for one in checks)
    ids = [one["id"] for one in checks]
    return {
        "schema": report.SCHEMA,
        "complete": "not_run" not in counts,
        "run": _run(night, lacks)
        | {"selection": {"checks": len(ids), "digest": selection.digest(ids), "differs_by": []}},
        "totals": {outcome.value: counts[outcome.value] for outcome in Outcome},
        "requirements": {id: {"level": r.level, "tier": r.tier} for id, r in known.items()},
        "checks": checks,
    }


def _record(night: Night, requirement: catalogue.Requirement, lacks: tuple[str, ...]) -> Record:
    """Each requirement has one check."""
    id = f"{requirement.surface}/{requirement.id.lower().replace('-', '_')}"
    made: Record = {
        "id": id,
        "requirements": [requirement.id],
        "surface": requirement.surface,
        "tier": requirement.tier,
        "level": requirement.level,
        "duration_s": round(0.001 + 0.01 * drawn("duration", id), 4),
    }
    if missing := sorted(set(requirement.needs) & set(lacks)):
        reason = {"kind": "missing_capability", "names": missing}
        return made | {"outcome": "unsupported", "reason": reason}
    outcome = BACKENDS[night.backend](night, id, requirement.tier)
    made |= {"outcome": outcome, **SAID.get(outcome, {})}
    if outcome == "flaky":
        attempts = [{"outcome": "fail", "message": "3 of 8 elements differ"}, {"outcome": "pass"}]
        made |= {"attempts": attempts}
    if "message" in made:
        made["repro"] = f"pytest --pyargs torch_conformance --check {id}"
    return made | ({"evidence": "native"} if outcome in ("pass", "fail") else {})


def _run(night: Night, lacks: tuple[str, ...]) -> Record:
    chip = list(BACKENDS).index(night.backend)
    started = FIRST + timedelta(days=night.number, minutes=40 * chip + len(night.torch))
    name = f"synthetic-{night.backend}"
    return {
        "suite": "0.1.0",
        "source": {"commit": None, "digest": "5" * 64},
        "python": "3.11.7",
        "platform": "synthetic",
        "started": started.isoformat(),
        "duration_s": 900.0 + 60 * chip,
        "backend": name,
        "device_type": "cpu" if night.backend == "cpu" else night.backend,
        "devices": [f"{name} 0"],
        "torch": {"version": night.torch, "git": None},
        "seed": 0,
        "descriptor": None,
        "expectations": None,
        "capabilities": {
            name: {"value": name not in lacks, "source": "declared"}
            for name in capabilities.MEANING
        },
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
    }


def make(store: Path) -> int:
    """The store, in a new directory; returns how many runs it has. ValueError if one is refused."""
    layout.create(store, NOTICE)
    with tempfile.TemporaryDirectory() as scratch:
        files = []
        for night in nights():
            file = Path(scratch) / f"{night.number:02}-{night.backend}-{night.torch}.json"
            file.write_text(json.dumps(content(night)), encoding="utf-8")
            files.append(file)
        told = list(add(store, files, FIRST + timedelta(days=NIGHTS)))
    if refused := [one.detail for one in told if one.fate is Fate.REFUSED]:
        raise ValueError(f"the store refused a report: {refused[0]}")
    return len(told)


if __name__ == "__main__":
    print(f"{make(Path(sys.argv[1]))} runs in {sys.argv[1]}")
