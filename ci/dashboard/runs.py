# SPDX-License-Identifier: BSD-3-Clause
"""The runs of a store, as the pages know them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timezone
from typing import Any

import duckdb

from ci.dashboard.model import Blocker, Key, Run, Step


def read(database: duckdb.DuckDBPyConnection) -> list[Run]:
    """Every run, oldest first."""
    found = database.execute("SELECT * FROM runs ORDER BY started, id")
    names = [column[0] for column in found.description]
    return [_run(dict(zip(names, row, strict=True))) for row in found.fetchall()]


def _run(row: Mapping[str, Any]) -> Run:
    driver = row["driver"] and json.loads(row["driver"])
    options = json.loads(row["options"])
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
        steps=tuple(map(_step, row["steps"])),
        without=tuple(row["without"]),
        totals=_sorted(row["totals"]),
        evidence=_sorted(row["evidence"]),
        surfaces={surface: _sorted(counts) for surface, counts in _sorted(row["surfaces"]).items()},
        standings=_sorted(row["standings"]),
        told=_told(row, driver, options),
        kept=bool(row["stored"]),
    )


def _why_not(row: Mapping[str, Any]) -> str | None:
    """A backend that did not come up says more than that the run is incomplete."""
    if row["cannot_load"] is not None:
        return f"the backend cannot be loaded: {row['cannot_load']}"
    found: str | None = row["why_not"]
    return found


def _step(row: Mapping[str, Any]) -> Step:
    return Step(**{**row, "blockers": tuple(Blocker(**blocker) for blocker in row["blockers"])})


def _sorted(counts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: counts[name] for name in sorted(counts)}


def _told(row: Mapping[str, Any], driver: Any, options: Any) -> dict[str, Any]:
    """What conformance.results.comparison goes by."""
    return {
        "backend": row["name"],
        "device_type": row["device_type"],
        "torch": {"version": row["torch"], "git": row["torch_git"]},
        "suite": row["suite"],
        "source": {"commit": row["suite_commit"], "digest": row["suite_digest"]},
        "options": options,
        "selection": {"checks": row["selected"], "differs_by": list(row["differs_by"])},
        "seed": row["seed"],
        "capabilities": _sorted(row["capabilities"]),
        "python": row["python"],
        "platform": row["platform"],
        "driver": driver,
        "devices": list(row["devices"]),
        "descriptor": row["descriptor"],
        "expectations": row["expectations"],
    }
