# SPDX-License-Identifier: BSD-3-Clause
"""``python -m torch_conformance.bench.throughput``: verified OpInfo samples per second on the CPU.

Runs the samples in the style of upstream's tests under pytest-xdist, and through the suite with its
isolation, journal and report, in turn on the same machine with the same number of processes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Timing:
    """One run: samples, wall clock and CPU time of the whole command, wall clock of its running."""

    samples: int
    wall_s: float
    cpu_s: float
    running_s: float | None

    def line(self, name: str) -> str:
        """One line of the table."""
        text = (
            f"{name:<10}{self.samples:>8} samples{self.wall_s:>8.1f} s wall"
            f"{self.samples / self.wall_s:>8.0f}/s{self.cpu_s:>8.1f} s CPU"
            f"{self.samples / self.cpu_s:>8.0f}/s"
        )
        if self.running_s is not None:
            rate = self.samples / self.running_s
            text += f"   without imports{self.running_s:>8.1f} s wall{rate:>8.0f}/s"
        return text


def main() -> int:
    """Run both styles in turn and print the ratio."""
    parser = argparse.ArgumentParser(prog="python -m torch_conformance.bench.throughput")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--dtypes", choices=("float32", "all"), default="float32")
    parser.add_argument("--only", choices=("suite", "upstream"))
    arguments = parser.parse_args()
    for _ in range(arguments.rounds):
        timings = {}
        for name, run in (("upstream", _upstream), ("suite", _suite)):
            if arguments.only in (None, name):
                timings[name] = run(arguments.processes, arguments.dtypes)
                print(timings[name].line(name), flush=True)
        if len(timings) == 2:
            print(_ratio(timings["suite"], timings["upstream"]))
    return 0


def _ratio(suite: Timing, upstream: Timing) -> str:
    wall = (suite.samples / suite.wall_s) / (upstream.samples / upstream.wall_s)
    cpu = (suite.samples / suite.cpu_s) / (upstream.samples / upstream.cpu_s)
    return f"the suite verifies {wall:.1f} times as many per second, {cpu:.1f} per CPU second"


def _upstream(processes: int, dtypes: str) -> Timing:
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        environment = {"BENCH_COUNTS": str(counts), "BENCH_DTYPES": dtypes}
        file = PACKAGE / "bench" / "upstream_style.py"
        times = _pytest(folder, f"-n{processes}", str(file), environment=environment)
        samples = sum(int(line) for line in counts.read_text().split())
    return Timing(samples, *times, running_s=None)


def _suite(processes: int, dtypes: str) -> Timing:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ("--backend=cpu", f"--workers={processes}", f"--dtypes={dtypes}")
        target = str(PACKAGE / "opinfo" / "forward.py")
        times = _pytest(folder, target, *options, f"--report={report}")
        content = json.loads(report.read_text())
    samples = sum(check.get("samples", 0) for check in content["checks"])
    return Timing(samples, *times, running_s=content["run"]["duration_s"])


def _pytest(
    folder: str, *arguments: str, environment: dict[str, str] | None = None
) -> tuple[float, float]:
    """Run pytest; return the seconds of wall clock and of CPU, its children's included."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    begin, used = time.perf_counter(), cpu_of_children()
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
    return time.perf_counter() - begin, cpu_of_children() - used


def cpu_of_children() -> float:
    """CPU seconds of the processes that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
