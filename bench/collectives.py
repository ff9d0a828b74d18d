# SPDX-License-Identifier: BSD-3-Clause
"""What `pccl` costs beside Gloo on CPU tensors: `python -m bench.collectives [--rounds N]`.

Two ranks on sim reduce the same sizes with both, in turn, so that a busy machine slows both. Prints
the bandwidth of 64 MiB as a fraction of Gloo's, the latency of 4 bytes as a multiple of Gloo's, and
how long the call takes behind 200 ms of queued work. Ends with status 1 outside the limits.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue

MIN_BANDWIDTH = 0.7
MAX_LATENCY = 4.0
MAX_CALL_MS = 5.0
LARGE, SMALL = 1 << 24, 1  # float32
HELD_MS = 200.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.collectives", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    import torch.multiprocessing as processes

    with tempfile.TemporaryDirectory() as folder:
        context = processes.get_context("spawn")
        queue = context.SimpleQueue()
        ranks = [
            context.Process(target=_measure, args=(rank, folder, rounds, queue)) for rank in (0, 1)
        ]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        if any(rank.exitcode for rank in ranks):
            return 1
        bandwidth, latency, call_ms = queue.get()
    print(f"all_reduce of 64 MiB: {bandwidth:.2f} of Gloo's bandwidth (at least {MIN_BANDWIDTH})")
    print(f"all_reduce of 4 bytes: {latency:.2f} times Gloo's latency (at most {MAX_LATENCY})")
    print(f"call behind {HELD_MS:.0f} ms of work: {call_ms:.2f} ms (less than {MAX_CALL_MS})")
    return int(bandwidth < MIN_BANDWIDTH or latency > MAX_LATENCY or call_ms >= MAX_CALL_MS)


def _measure(
    rank: int, folder: str, rounds: int, queue: SimpleQueue[tuple[float, float, float]]
) -> None:
    os.environ["PUONE_DRIVER"] = "sim"
    import torch
    import torch.distributed as dist

    import torch_puone

    torch.set_num_threads(1)
    device = torch.device("puone", rank)
    torch_puone.set_device(device)
    dist.init_process_group(
        "cpu:gloo,puone:pccl",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=120),
    )

    def seconds(tensor: torch.Tensor, times: int) -> float:
        dist.barrier()
        torch.accelerator.synchronize()
        begun = time.perf_counter()
        for _ in range(times):
            dist.all_reduce(tensor)
            torch.accelerator.synchronize()
        return (time.perf_counter() - begun) / times

    def ratios(elements: int, times: int) -> list[float]:
        host, ours = torch.zeros(elements), torch.zeros(elements, device=device)
        measured = [(seconds(host, times), seconds(ours, times)) for _ in range(rounds + 1)]
        return [ours / host for host, ours in measured[1:]]

    large, small = ratios(LARGE, 1), ratios(SMALL, 20)
    calls = _call_times(dist.all_reduce, torch.zeros(1 << 20, device=device), rounds)
    if rank == 0:
        queue.put(
            (1 / statistics.median(large), statistics.median(small), statistics.median(calls))
        )
    dist.destroy_process_group()


def _call_times(call: Callable[..., object], tensor: object, rounds: int) -> list[float]:
    """Milliseconds of the host for a call behind held work."""
    import torch_puone

    times = []
    for _ in range(rounds):
        torch_puone._sleep_ms(HELD_MS)
        begun = time.perf_counter()
        call(tensor)
        times.append((time.perf_counter() - begun) * 1e3)
        torch_puone.synchronize()
    return times


if __name__ == "__main__":
    sys.exit(main())
