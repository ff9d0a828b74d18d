# SPDX-License-Identifier: BSD-3-Clause
"""A store as large as one of many backends over years, made at once: the reports are never written.

What happens in it is drawn by hashes (dashboard_store.sql): always the same.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec

from torch_backend_ci.results import duck, layout, rows
from torch_backend_ci.results.schema import RESULTS, RUNS, Column, names
from torch_backend_ci.results.segment import commit
from torch_conformance.results import report
from torch_conformance.results.reader import Document
from torch_conformance.spec import capabilities, catalogue
from torch_conformance.spec.outcome import Outcome

SQL = Path(__file__).with_suffix(".sql")
FIRST = datetime(2025, 11, 20, 2, tzinfo=timezone.utc)
DTYPES = ("bfloat16", "bool", "complex64", "float16", "float32", "float64", "int64", "uint8")

Record = dict[str, Any]


class Size(NamedTuple):
    """How much there is."""

    backends: int
    nights: int
    checks: int


class Drawn(NamedTuple):
    """A run."""

    chip: int
    night: int
    torch: str
    started: datetime
    cut: bool
    """Whether it is incomplete."""


def make(store: Path, size: Size, nights: Sequence[int]) -> None:
    """Nights of a store: a whole month as a compaction leaves it, a single night as it is added."""
    layout.create(store)
    checks = list(_checks(size.checks))
    every = [run for night in nights for run in _runs(size, night)]
    period = "%Y-%m-%d" if len(nights) == 1 else "%Y-%m"
    for name, mine in groupby(every, lambda run: run.started.strftime(period)):
        with duck.connected() as database:
            _commit(database, store / name, checks, list(mine))
        print(f"made {name}", flush=True)


@functools.cache
def _known() -> dict[str, catalogue.Requirement]:
    return catalogue.load()


def _checks(count: int) -> Iterator[Record]:
    """Checks of the suite's requirements, most of them of operators, as in the suite."""
    known = list(_known().values())
    operators = [requirement for requirement in known if requirement.surface == "opinfo"]
    for number in range(count):
        among = operators if number % 4 else known
        one = among[number // 4 % len(among)]
        case = f"case_{number // 8:04}:{DTYPES[number % 8]}"
        yield {
            "id": f"{one.surface}/{one.id.lower().replace('-', '_')}:{case}",
            "surface": one.surface,
            "tier": one.tier,
            "level": one.level,
            "requirements": [one.id],
        }


def _runs(size: Size, night: int) -> Iterator[Drawn]:
    """A run of each backend, but for some. Half of the backends go on to the next torch."""
    for chip in range(size.backends):
        drawn = int.from_bytes(hashlib.sha256(f"{chip} {night}".encode()).digest()[:4], "big")
        if drawn % 50 == 0:
            continue
        torch = "2.13.0" if chip % 2 or night < size.nights // 2 else "2.14.0"
        if chip % 5 == 0:
            torch = f"2.15.0.dev{FIRST + timedelta(days=night):%Y%m%d}"
        started = FIRST + timedelta(days=night, minutes=chip)
        yield Drawn(chip, night, torch, started, drawn % 60 == 1)


def _commit(
    database: duckdb.DuckDBPyConnection, folder: Path, checks: list[Record], runs: list[Drawn]
) -> None:
    told = [_row(run, checks) for run in runs]
    _load(database, folder, "told", told, RUNS)
    draw = [
        {"run": row["id"], "chip": run.chip, "night": run.night, "cut": run.cut}
        for row, run in zip(told, runs, strict=True)
    ]
    _load(database, folder, "draw", draw)
    _load(database, folder, "checks", [c | {"nr": nr} for nr, c in enumerate(checks)])
    database.execute(SQL.read_text(encoding="utf-8"))
    stored = {str(row["id"]): len(checks) for row in told}
    judged = f"SELECT {names(RUNS)} FROM judged"
    commit(database, folder, stored, judged, f"SELECT {names(RESULTS)} FROM drawn")


def _load(
    database: duckdb.DuckDBPyConnection,
    folder: Path,
    name: str,
    lines: Iterable[Record],
    columns: dict[str, Column] | None = None,
) -> None:
    file = folder.with_name(f".{folder.name}.json")
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    query = duck.of_json(file, columns) if columns else f"FROM read_json({duck.pattern(file)})"
    database.execute(f"CREATE TABLE {name} AS {query}")
    file.unlink()


def _row(run: Drawn, checks: list[Record]) -> Record:
    """What the store says of a run; what is counted is put in when its results are drawn."""
    content = msgspec.convert(_content(run, checks), report.Report)
    name = hashlib.sha256(f"{run.chip} {run.night}".encode()).hexdigest()
    made = rows.run(Document(name, content, name))
    return made | {
        "totals": {outcome.value: 0 for outcome in Outcome},
        "surfaces": {},
        "stored": len(checks),
    }


def _content(run: Drawn, checks: list[Record]) -> dict[str, Any]:
    """A report with a tenth of the checks, all passed: as much as makes levels and standings."""
    some = [c | {"outcome": "pass", "duration_s": 0.001} for c in checks[::10]]
    return {
        "schema": report.SCHEMA,
        "totals": {},
        "complete": not run.cut,
        "run": {
            "backend": f"chip{run.chip:02}",
            "device_type": "chip",
            "torch": {"version": run.torch, "git": hashlib.sha1(run.torch.encode()).hexdigest()},
            "suite": "0.1.0",
            "source": {"commit": None, "digest": "5" * 64},
            "python": "3.11.7",
            "platform": "Linux-6.1-x86_64",
            "driver": None,
            "devices": [f"chip {run.chip}"],
            "seed": 0,
            "started": run.started.isoformat(),
            "duration_s": 1000.0 + run.chip,
            "descriptor": None,
            "expectations": None,
            "selection": {"checks": len(checks), "digest": "6" * 64, "differs_by": []},
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
        },
        "requirements": {id: {"level": r.level, "tier": r.tier} for id, r in _known().items()},
        "checks": some,
    }
