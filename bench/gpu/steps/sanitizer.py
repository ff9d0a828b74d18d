# SPDX-License-Identifier: BSD-3-Clause
"""compute-sanitizer, watching every kind of kernel on few elements."""

from __future__ import annotations

import sys

from bench.gpu.machine import tool
from bench.gpu.outcome import Outcome, done, failed, not_run
from bench.gpu.run import Run

TOOL = "compute-sanitizer"
KINDS = ("memcheck", "racecheck")
FOUND_SOMETHING = 97


def sanitizer(run: Run) -> Outcome:
    """Memory errors and races between the threads of a block: none."""
    program = tool(TOOL)
    if program is None:
        return not_run(f"{TOOL} is missing")
    if not run.library.is_file():
        return not_run(f"{run.library} is not there: see the step build")
    verdicts = {kind: _watch(run, program, kind) for kind in KINDS}
    wrong = [f"{kind}: {verdict}" for kind, verdict in verdicts.items() if verdict != "clean"]
    return failed("\n".join(wrong), **verdicts) if wrong else done(**verdicts)


def _watch(run: Run, program: str, kind: str) -> str:
    ended = run.call(
        kind,
        *(program, f"--tool={kind}", f"--error-exitcode={FOUND_SOMETHING}"),
        *(sys.executable, "-m", "bench.gpu.parity.collect", "--small"),
        *("--out", run.work / f"{kind}.pickle"),
    )
    return "clean" if ended.code == 0 else ended.why()
