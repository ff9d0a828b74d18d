# SPDX-License-Identifier: BSD-3-Clause
"""How long the surface tools take, and how much memory: `python -m bench.surface [TORCH]`.

Each line is the median of the rounds, wall clock, of a whole process; the memory is that of its
largest process. TORCH (default: the one installed for this Python) is read cold, out of the cache,
compared with a committed snapshot, and a PR to it is judged.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATCH = ROOT / "docs" / "surface" / "examples" / "const-allocate.diff"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.surface", description=__doc__)
    parser.add_argument("torch", nargs="?", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        taken, cache = f"{folder}/snapshot.json", f"{folder}/cache"
        snapshot = ["snapshot", "--torch", args.torch, "-o", taken]
        report("snapshot, cold", [*snapshot, "--no-cache"], args.rounds)
        run([*snapshot, "--cache", cache])
        report("snapshot, cached", [*snapshot, "--cache", cache], args.rounds)
        report("diff of two files", ["diff", "2.11.0", taken], args.rounds)
        check = ["check", "--base", args.torch, "--patch", str(PATCH)]
        run(check)
        report("check of a PR", check, args.rounds)


def report(title: str, words: list[str], rounds: int) -> None:
    """Print the median time of the verb, and its memory."""
    results = [run(words) for _ in range(rounds)]
    seconds = statistics.median(wall for wall, _ in results)
    print(f"{title:20}{seconds:7.2f} s{max(memory for _, memory in results):7.2f} GB", flush=True)


def run(words: list[str]) -> tuple[float, float]:
    """Seconds and the gigabytes of the largest process of one `torch-backend-ci surface`."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "torch_backend_ci", "surface", *words]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: a finding, which the PR has
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    return time.monotonic() - begun, usage.ru_maxrss / 1e6


if __name__ == "__main__":
    main()
