# SPDX-License-Identifier: BSD-3-Clause
"""Parts that the JSON documents of several kinds of pages have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.dashboard.model import Key, Result, Run, Series

NAMESPACE = "urn:torch-conformance:dashboard"


def schema(kind: str) -> str:
    """What a document says it is; ci/dashboard/schema has its schema."""
    return f"{NAMESPACE}:{kind}:1"


def of_key(key: Key) -> dict[str, Any]:
    """A series."""
    return {"backend": key.backend, "line": key.line}


def of_run(run: Run) -> dict[str, Any]:
    """A run, as far as it has to be known to be found."""
    return {"id": run.id[:12], "started": moment(run), "torch": run.torch}


def moment(run: Run) -> str:
    """When it started."""
    return run.started.strftime("%Y-%m-%dT%H:%M:%SZ")


def of_result(result: Result, limit: int | None = None) -> dict[str, Any]:
    """All that a run says of a check, texts cut to `limit`; what it does not say is left out."""
    said: Mapping[str, Any] = {
        "evidence": result.evidence,
        "message": result.message and result.message[:limit],
        "reason": result.reason and result.reason[:limit],
        "repro": result.repro and result.repro[:limit],
        "fallbacks": list(result.fallbacks),
        "waiver": result.waiver,
        "samples": result.samples,
    }
    found = {name: value for name, value in said.items() if value not in (None, [])}
    return {"outcome": result.outcome, "duration_s": result.duration_s, **found}


def of_column(series: Series) -> dict[str, Any]:
    """The run that stands for a series."""
    return {**of_key(series.key), "run": of_run(series.column) if series.column else None}
