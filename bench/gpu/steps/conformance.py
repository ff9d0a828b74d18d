# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite on puone with the driver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.gpu.outcome import Outcome, done, failed
from bench.gpu.run import Run

# Each worker makes a context on the card, which takes longer than a check: few are replaced.
CHUNK = 400
# What our descriptor claims because sim has it, and what depends on driver and machine: left to be
# probed, so that one card alone is not blamed for the second one.
PROBED = ("multi_device", "peer_copy", "memory_protected", "fault_injection", "ipc")
MODULES = ("pytest", "yaml", "numpy", "expecttest", "msgspec")
# The suite's exit codes that are not green; those below 64 are pytest's.
MEANING = {
    1: "some checks failed",
    2: "it was interrupted",
    3: "the suite itself failed",
    4: "it was called in a wrong way",
    5: "no check was selected",
    6: "there were too many warnings",
    64: "the run is incomplete",
    65: "nothing was executed",
    66: "the backend cannot be loaded",
}


def core(run: Run) -> Outcome:
    """What every backend must do, first: it is the most telling part, and quick."""
    return _suite(run, "conformance-core", "--tier", "smoke" if run.rehearsal else "core")


def everything(run: Run) -> Outcome:
    """All tiers."""
    return _suite(run, "conformance", *(("--check=device/count:*",) if run.rehearsal else ()))


def _suite(run: Run, name: str, *selection: str) -> Outcome:
    report = run.work / f"{name}.json"
    workers = ("--workers", str(run.cores), "--chunk", str(CHUNK))
    general = (f"--report={report}", "-q", "-p", "no:cacheprovider")
    backend = f"--backend-file={_descriptor(run)}"
    suite = ("-m", "pytest", "conformance", backend, *selection)
    ended = run.python(name, *suite, *workers, *general)
    told = _summary(json.loads(report.read_text())) if report.is_file() else {}
    if ended.code == 0:
        return done(**told)
    if ended.timed_out or ended.code not in MEANING:
        return failed(ended.why(), **told)
    return failed(f"{MEANING[ended.code]}: see {report.name}", **told)


def _descriptor(run: Run) -> Path:
    """That of puone, with PROBED taken out, and without the faults that only sim can plant.

    Workers are not forked: a plugin of pytest that is installed there may have used CUDA before.
    """
    import yaml  # not every machine has it; then this step is not run

    value = yaml.safe_load(
        (run.root / "conformance/src/torch_conformance/spec/backends/puone.yaml").read_text()
    )
    for name in PROBED:
        value["capabilities"].pop(name, None)
    value.pop("fault", None)
    value["start_method"] = "spawn"
    file = run.work / "puone.yaml"
    file.write_text(yaml.safe_dump(value, sort_keys=False))
    return file


def _summary(report: dict[str, Any]) -> dict[str, Any]:
    """Whether it is all there, what was counted, on which driver, and the ids of what is red."""
    red = {"fail", "error", "crash", "timeout", "device_lost", "xpass", "flaky"}
    return {
        "complete": report["complete"],
        "outcomes": {name: count for name, count in report["totals"].items() if count},
        "driver": (report["run"].get("driver") or {}).get("name"),
        "probed": {
            name: "yes" if found["value"] else "no"
            for name, found in report["run"]["capabilities"].items()
            if name in PROBED
        },
        "red": [check["id"] for check in report["checks"] if check["outcome"] in red],
    }
