# SPDX-License-Identifier: BSD-3-Clause
"""The measurements against torch.cuda."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from bench.gpu.outcome import NOT_RUN, Outcome, done, failed, not_run
from bench.gpu.run import Run


def benchmark(run: Run) -> Outcome:
    """Every measurement is in the results as soon as it is taken."""
    if not run.library.is_file():
        return not_run(f"{run.library} is not there: see the step build")
    file = run.work / "measurements.jsonl"
    seen = 0

    def fold() -> None:
        nonlocal seen
        rows = read(file)
        if len(rows) > seen:
            seen = len(rows)
            run.result.measured(rows)

    tiny = ("--tiny",) if run.rehearsal else ()
    ended = run.python("benchmark", "-m", "bench.gpu.measure", "--rows", file, *tiny, tick=fold)
    fold()
    counts = _counts(run.result.value["measurements"])
    if ended.code != 0:
        return failed(ended.why(), **counts)
    return failed("see the measurements", **counts) if counts["broken"] else done(**counts)


def read(file: Path) -> list[dict[str, Any]]:
    """The rows so far; a line that is still being written is left for the next time."""
    if not file.is_file():
        return []
    lines = file.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    counts = Counter("met" if row["met"] else "missed" for row in rows if row["met"] is not None)
    broken = sum(
        not reason.startswith(NOT_RUN) for row in rows for reason in row["problems"].values()
    )
    return {"rows": len(rows), "met": counts["met"], "missed": counts["missed"], "broken": broken}
