# SPDX-License-Identifier: BSD-3-Clause
"""What torch.compile generates, on the driver."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from bench.gpu.outcome import Outcome, done, failed, not_run
from bench.gpu.run import Run

SCRIPT = Path("test/inductor/compiled.py")
LEAST_TORCH = (2, 13)  # docs/integration/compile.md
REHEARSED = ("rows", "tiles")


def compiled(run: Run) -> Outcome:
    """Compiled functions compute what eager ones do."""
    if not run.library.is_file():
        return not_run(f"{run.library} is not there: see the step build")
    torch = version("torch")
    if tuple(map(int, torch.split(".")[:2])) < LEAST_TORCH:
        return not_run(f"torch {torch} lacks what generated kernels need; 2.13 has it")
    output = run.work / "compiled.json"
    ended = run.python("compiled", SCRIPT, output, *(REHEARSED if run.rehearsal else ()))
    if ended.code != 0:
        return failed(ended.why())
    found = json.loads(output.read_text())
    wrong = {name: verdict for name, verdict in found["cases"].items() if verdict}
    counts = {"cases": len(found["cases"]), "kernels": len(found["kernels"]), "wrong": len(wrong)}
    if not wrong:
        return done(**counts)
    name, verdict = next(iter(wrong.items()))
    return failed(f"{', '.join(wrong)}; {name}: {verdict.splitlines()[-1]}", **counts)
