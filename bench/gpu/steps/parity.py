# SPDX-License-Identifier: BSD-3-Clause
"""The driver against sim: the same inputs, one process for each."""

from __future__ import annotations

import json

from bench.gpu.outcome import Outcome, done, failed, not_run
from bench.gpu.run import Run

MODULES = ("yaml", "msgspec")


def parity(run: Run) -> Outcome:
    """Kernels agree within the dtype's tolerance, random numbers to the last bit."""
    if not run.library.is_file():
        return not_run(f"{run.library} is not there: see the step build")
    small = ("--small",) if run.rehearsal else ()
    drivers = {"sim": "sim", "device": run.driver}
    files = {}
    for name, driver in drivers.items():
        files[name] = run.work / f"parity-{name}.pickle"
        log = f"parity-{name}"
        collect = ("-m", "bench.gpu.parity.collect", "--out", files[name], *small)
        ended = run.python(log, *collect, driver=driver)
        if ended.code != 0:
            return failed(f"on {name}: {ended.why()}")
    ended = run.python("parity", "-m", "bench.gpu.parity.compare", *files.values(), *small)
    lines = ended.log.read_text().splitlines()
    counts = json.loads(lines[-1]) if ended.code in (0, 1) and lines[-1].startswith("{") else {}
    if ended.code == 0:
        return done(**counts)
    return failed(f"the drivers do not agree: {ended.why()}", **counts)
