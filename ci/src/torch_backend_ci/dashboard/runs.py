# SPDX-License-Identifier: BSD-3-Clause
"""The runs of a store, as the pages know them."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping
from datetime import timezone
from operator import itemgetter
from typing import Any

import duckdb

from torch_backend_ci.dashboard.model import Blocker, Key, Run, Step

#: What most runs have in common with others is read as text, so that equal values are one object:
#: thousands of runs with a map of all requirements each would fill gigabytes.
_SHARED = ("broken", "capabilities", "evidence", "standings", "steps", "surfaces", "totals")
_AS_TEXT = ", ".join(f"to_json({name})::VARCHAR AS {name}" for name in _SHARED)
_QUERY = f"SELECT * REPLACE ({_AS_TEXT}) FROM runs ORDER BY started, id"


def read(database: duckdb.DuckDBPyConnection) -> list[Run]:
    """Every run, oldest first."""
    found = database.execute(_QUERY)
    names = [column[0] for column in found.description]
    return [_run(dict(zip(names, row, strict=True))) for row in found.fetchall()]


def _run(row: Mapping[str, Any]) -> Run:
    driver = row["driver"] and _parsed(row["driver"])
    options = _parsed(row["options"])
    return Run(
        id=row["id"],
        key=Key(row["backend"], row["line"]),
        device_type=row["device_type"],
        torch=row["torch"],
        torch_git=row["torch_git"],
        suite=row["suite"],
        suite_commit=row["suite_commit"],
        suite_digest=row["suite_digest"],
        python=row["python"],
        platform=row["platform"],
        driver=driver,
        devices=tuple(row["devices"]),
        seed=row["seed"],
        options=options,
        started=row["started"].replace(tzinfo=timezone.utc),
        duration_s=row["duration_s"],
        why_not=_why_not(row),
        level=row["level"],
        title=row["title"],
        steps=_steps(row["steps"]),
        without=tuple(row["without"]),
        broken=_parsed(row["broken"]),
        totals=_parsed(row["totals"]),
        bad=row["bad"],
        evidence=_parsed(row["evidence"]),
        surfaces=_parsed(row["surfaces"]),
        standings=_parsed(row["standings"]),
        told=_told(row, driver, options),
        kept=bool(row["stored"]),
    )


def _why_not(row: Mapping[str, Any]) -> str | None:
    """A backend that did not come up says more than that the run is incomplete."""
    if row["cannot_load"] is not None:
        return f"the backend cannot be loaded: {row['cannot_load']}"
    found: str | None = row["why_not"]
    return found


@functools.cache
def _steps(text: str) -> tuple[Step, ...]:
    return tuple(_step(step) for step in json.loads(text))


def _step(step: dict[str, Any]) -> Step:
    return Step(**{**step, "blockers": tuple(Blocker(**blocker) for blocker in step["blockers"])})


@functools.cache
def _parsed(text: str) -> Any:
    """JSON with its names sorted; nobody may change it."""
    return json.loads(text, object_pairs_hook=_sorted)


def _sorted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        sys.intern(name): sys.intern(value) if isinstance(value, str) else value
        for name, value in sorted(pairs, key=itemgetter(0))
    }


def _told(row: Mapping[str, Any], driver: Any, options: Any) -> dict[str, Any]:
    """What torch_conformance.results.comparison goes by."""
    return {
        "backend": row["name"],
        "device_type": row["device_type"],
        "torch": {"version": row["torch"], "git": row["torch_git"]},
        "suite": row["suite"],
        "source": {"commit": row["suite_commit"], "digest": row["suite_digest"]},
        "options": options,
        "selection": {"checks": row["selected"], "differs_by": list(row["differs_by"])},
        "seed": row["seed"],
        "capabilities": _parsed(row["capabilities"]),
        "python": row["python"],
        "platform": row["platform"],
        "driver": driver,
        "devices": list(row["devices"]),
        "descriptor": row["descriptor"],
        "expectations": row["expectations"],
    }
