# SPDX-License-Identifier: BSD-3-Clause
"""Memory shared with torch.cuda: the same card, the same process, no copy."""

from __future__ import annotations

import json

from bench.gpu.outcome import Outcome, done, failed, not_run
from bench.gpu.run import Run

ABSENT = 3  # the status of bench.gpu.exchange where there is nobody to exchange with


def exchange(run: Run) -> Outcome:
    """Tensors go both ways by DLPack, in order, and are let go."""
    if not run.library.is_file():
        return not_run(f"{run.library} is not there: see the step build")
    ended = run.python("exchange", "-m", "bench.gpu.exchange")
    lines = ended.log.read_text().splitlines() or [""]
    if ended.code == ABSENT:
        return not_run(lines[-1])
    found = json.loads(lines[-1]) if ended.code in (0, 1) and lines[-1].startswith("{") else {}
    if ended.code == 0:
        return done(**found)
    wrong = [f"{name}: {verdict}" for name, verdict in found.items() if verdict != "good"]
    return failed("\n".join(wrong) or ended.why(), **found)
