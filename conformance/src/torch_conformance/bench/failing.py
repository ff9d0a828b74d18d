# SPDX-License-Identifier: BSD-3-Clause
"""``python -m torch_conformance.bench.failing``: what it costs that a backend is broken.

Runs the same 4,000 quick checks green, and with 1,000 failing and 50 crashing among them, in turn.
The whole command is timed, with imports, reruns, report and terminal output.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from torch_conformance.bench.throughput import PACKAGE, cpu_of_children
from torch_conformance.results import causes, reader
from torch_conformance.spec.result import CheckResult

CHECKS = PACKAGE / "bench" / "broken"


@dataclass(frozen=True)
class Timing:
    """One run: wall clock and CPU seconds of the command, and its records."""

    wall_s: float
    cpu_s: float
    checks: tuple[CheckResult, ...]

    @property
    def causes(self) -> int:
        """Rows of the table of causes."""
        return len(causes.grouped(check for check in self.checks if check.unexpected))

    def line(self, name: str) -> str:
        """One line of the table."""
        names = [check.outcome.value for check in self.checks]
        counts = ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))
        return f"{name:<8}{self.wall_s:>7.1f} s wall{self.cpu_s:>7.1f} s CPU   {counts}"


def main() -> int:
    """Run both in turn and print the ratios."""
    parser = argparse.ArgumentParser(prog="python -m torch_conformance.bench.failing")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    ratios = []
    for _ in range(arguments.rounds):
        green = run(broken=False, workers=arguments.workers)
        print(green.line("green"), flush=True)
        red = run(broken=True, workers=arguments.workers)
        print(red.line("broken"), f"  {red.causes} causes", flush=True)
        ratios.append((red.wall_s / green.wall_s, red.cpu_s / green.cpu_s))
    wall, cpu = (median(column) for column in zip(*ratios, strict=True))
    print(f"a broken backend takes {wall:.2f} times as long as a green one, {cpu:.2f} the CPU time")
    return 0


def run(broken: bool, workers: int) -> Timing:
    """One run of the planted checks against the CPU."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "torch_conformance.plugin",
        "-p",
        "no:cacheprovider",
    ]
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        options = (f"--checks-dir={CHECKS}", "--backend=cpu", f"--workers={workers}")
        begin, used = time.perf_counter(), cpu_of_children()
        done = subprocess.run(
            # The suite's conftest.py is above the checks, and not at the root that pytest finds.
            [*command, "--noconftest", *options, "--report=report.json"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "BENCH_BROKEN": "1" if broken else ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wall, cpu = time.perf_counter() - begin, cpu_of_children() - used
        if done.returncode != int(broken):
            raise SystemExit(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")
        document = reader.load(Path(folder) / "report.json")
    return Timing(wall, cpu, document.checks)


if __name__ == "__main__":
    sys.exit(main())
