# SPDX-License-Identifier: BSD-3-Clause
"""``python -m conformance.bench.throughput``: verified OpInfo samples per second on the CPU.

Runs the samples in the style of upstream's tests under pytest-xdist, and through the suite with its
isolation, journal and report, in turn on the same machine with the same number of processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Timing:
    """One run: samples, wall clock of the whole command, and of its running part."""

    samples: int
    wall_s: float
    running_s: float

    def line(self, name: str) -> str:
        """One line of the table."""
        return (
            f"{name:<10}{self.samples:>9} samples{self.wall_s:>9.1f} s"
            f"{self.samples / self.wall_s:>9.0f}/s   running part{self.running_s:>8.1f} s"
            f"{self.samples / self.running_s:>9.0f}/s"
        )


def main() -> int:
    """Run both styles in turn and print the ratio."""
    parser = argparse.ArgumentParser(prog="python -m conformance.bench.throughput")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--dtypes", choices=("float32", "all"), default="float32")
    parser.add_argument("--only", choices=("suite", "upstream"))
    arguments = parser.parse_args()
    for _ in range(arguments.rounds):
        rates = {}
        for name, run in (("upstream", _upstream), ("suite", _suite)):
            if arguments.only in (None, name):
                timing = run(arguments.processes, arguments.dtypes)
                rates[name] = timing.samples / timing.wall_s
                print(timing.line(name), flush=True)
        if len(rates) == 2:
            print(f"the suite is {rates['suite'] / rates['upstream']:.1f} times as fast")
    return 0


def _upstream(processes: int, dtypes: str) -> Timing:
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        environment = {"BENCH_COUNTS": str(counts), "BENCH_DTYPES": dtypes}
        file = PACKAGE / "bench" / "upstream_style.py"
        wall = _pytest(folder, f"-n{processes}", str(file), environment=environment)
        samples = sum(int(line) for line in counts.read_text().split())
    return Timing(samples, wall, wall)


def _suite(processes: int, dtypes: str) -> Timing:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ("--backend=cpu", f"--workers={processes}", f"--dtypes={dtypes}")
        target = str(PACKAGE / "opinfo")
        wall = _pytest(folder, target, *options, f"--report={report}")
        content = json.loads(report.read_text())
    samples = sum(check.get("samples", 0) for check in content["checks"])
    return Timing(samples, wall, content["run"]["duration_s"])


def _pytest(folder: str, *arguments: str, environment: dict[str, str] | None = None) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    begin = time.perf_counter()
    done = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            **(environment or {}),
        },
        capture_output=True,
        text=True,
    )
    if done.returncode > 1:
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
