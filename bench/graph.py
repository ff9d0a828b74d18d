# SPDX-License-Identifier: BSD-3-Clause
"""What a replay costs the host: `python -m bench.graph [--rounds N] [--kernels N]`.

The processor time of the calling thread for one replay of a graph of small kernels, against that of
issuing the same kernels one by one, in turn in one process. The device is idle before each and is
not waited for. Elapsed time is for information: the simulated device competes for the cores.
Ends with status 1 if the ratio is above LIMIT.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

LIMIT = 0.1


@dataclass(frozen=True)
class Cost:
    """In microseconds."""

    processor: float
    elapsed: float


def cost(call: Callable[[], object]) -> Cost:
    """What one call costs the calling thread while the device is idle."""
    torch.accelerator.synchronize()
    elapsed, processor = time.perf_counter_ns(), time.thread_time_ns()
    call()
    processor, elapsed = time.thread_time_ns() - processor, time.perf_counter_ns() - elapsed
    return Cost(processor / 1e3, elapsed / 1e3)


def measure(kernels: int, rounds: int) -> list[tuple[Cost, Cost]]:
    """(issuing, replaying), a pair for each round."""
    x = torch.zeros(1, device="puone")
    stream = torch.Stream("puone")

    def issue() -> None:
        for _ in range(kernels):
            x.add_(1)

    graph = torch.accelerator.Graph()
    with stream, graph:
        issue()
    with stream:
        for warm in (issue, graph.replay):
            cost(warm)
        return [(cost(issue), cost(graph.replay)) for _ in range(rounds)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.graph", description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--kernels", type=int, default=1000)
    args = parser.parse_args()
    rounds = measure(args.kernels, args.rounds)
    for name, place in (("issuing", 0), ("replaying", 1)):
        costs = [pair[place] for pair in rounds]
        processor = statistics.median(one.processor for one in costs)
        elapsed = statistics.median(one.elapsed for one in costs)
        print(
            f"{name:<10}{args.kernels} kernels {processor:9.1f} us of the thread's processor time, "
            f"{elapsed:9.1f} us elapsed"
        )
    ratio = statistics.median(replay.processor / issue.processor for issue, replay in rounds)
    print(f"ratio      {ratio:.3f}, allowed {LIMIT}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
