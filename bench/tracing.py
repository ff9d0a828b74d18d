# SPDX-License-Identifier: BSD-3-Clause
"""What watching costs the addition of one element: `python -m bench.tracing [--rounds N]`.

Two processes take turns: one in which nothing was ever watched, and one that switches a tool on or
off before each of its turns. The cost is processor time of the thread that queues the additions, so
that other load on the machine matters little; ratios are medians over the rounds. Ends with status
1 if a limit is exceeded: 1.02 with the profiler off again, 1.15 with the trace of the device on.

"trace of the device" is torch.profiler with PrivateUse1 alone. With the operators of the CPU, most
of the cost is that of PyTorch, so that case is compared with a profile of the CPU alone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

ROOT = Path(__file__).parents[1]
CALLS = 2000


def _profile(*names: str) -> AbstractContextManager[object]:
    from torch.profiler import ProfilerActivity, profile

    return profile(activities=[getattr(ProfilerActivity, name) for name in names])


@contextlib.contextmanager
def _history(context: str | None) -> Iterator[None]:
    import torch

    memory = torch.puone.memory  # type: ignore[attr-defined]  # set at run time
    memory._record_memory_history(context=context, stacks="python", max_entries=10_000)
    yield
    memory._record_memory_history(None)


#: What is on during a turn.
MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "nothing, ever": contextlib.nullcontext,
    "nothing, any more": contextlib.nullcontext,
    "trace of the device": lambda: _profile("PrivateUse1"),
    "profile of the CPU": lambda: _profile("CPU"),
    "profile of the CPU and the device": lambda: _profile("CPU", "PrivateUse1"),
    "memory history without stacks": lambda: _history(None),
    "memory history with Python stacks": lambda: _history("all"),
    "PUONE_STACKS=1": contextlib.nullcontext,
}
BASE = "nothing, ever"
#: mode -> (what it is compared with, the most that the ratio may be)
LIMITS = {
    "nothing, any more": (BASE, 1.02),
    "trace of the device": (BASE, 1.15),
    "profile of the CPU and the device": ("profile of the CPU", 1.15),
}


def serve() -> None:
    """Answer each mode that is read with the nanoseconds of one addition under it."""
    import torch

    x = torch.ones(1, device="puone")
    for line in sys.stdin:
        with MODES[line.strip()]():
            for _ in range(200):
                x + x
            torch.accelerator.synchronize()
            start = time.thread_time_ns()
            for _ in range(CALLS):
                x + x
            took = time.thread_time_ns() - start
            torch.accelerator.synchronize()
        print(took / CALLS, flush=True)


class Process:
    """A process that serves."""

    def __init__(self, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.tracing", "--serve"],
            cwd=ROOT,
            env=os.environ | {"PUONE_DRIVER": "sim", "OMP_NUM_THREADS": "1", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def measure(self, mode: str) -> float:
        """Nanoseconds of one addition."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{mode}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def measure(rounds: int) -> dict[str, list[float]]:
    """Nanoseconds of each round, by mode."""
    watching = Process()
    processes = dict.fromkeys(MODES, watching)
    processes |= {BASE: Process(), "PUONE_STACKS=1": Process(PUONE_STACKS="1")}
    watching.measure("trace of the device")
    for process in processes.values():
        process.measure(BASE)  # the first turn is slow
    found: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode, process in processes.items():
            found[mode].append(process.measure(mode))
    return found


def main() -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.tracing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    found = measure(options.rounds)
    exceeded = False
    for mode, times in found.items():
        base, limit = LIMITS.get(mode, (BASE, 0.0))
        ratio = statistics.median(a / b for a, b in zip(times, found[base], strict=True))
        beside = "" if base == BASE else f" of {base}"
        allowed = f", at most {limit:.2f}" if limit else ""
        print(f"{mode:<36}{statistics.median(times):8.0f} ns{ratio:7.3f}x{beside}{allowed}")
        exceeded |= bool(limit) and ratio > limit
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
