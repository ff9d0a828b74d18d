# SPDX-License-Identifier: BSD-3-Clause
"""Several processes that run one program together, each as a rank."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: `begin()` makes the default group on the device of the rank.
PRELUDE = """
import datetime, os, signal, sys, threading, time
import torch, torch_puone, torch.distributed as dist
torch.set_num_threads(1)
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("puone", rank % 2)
def begin(timeout=60.0, name="group", **options):
    torch.puone.set_device(device)
    dist.init_process_group(
        device_id=device, rank=rank, world_size=size,
        init_method="file://" + os.environ["STORE"] + name,
        timeout=datetime.timedelta(seconds=timeout), **options,
    )
"""

#: A collective on a side stream and one on what it gives, with no synchronisation, 30 times, for
#: two ranks.
COLLECTIVES_ON_A_SIDE_STREAM = """
begin()
for step in range(30):
    n = 1 + 997 * step
    x = torch.full((n,), rank + 1.0, device=device)
    side = torch.Stream(device=device)
    side.wait_stream(torch.puone.current_stream(device.index))
    with side:
        x.mul_(2)
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        whole = torch.empty(2 * n, device=device)
        dist.all_gather_into_tensor(whole, x + rank)
        got = whole.cpu()
    assert got[:n].unique().tolist() == [6.0] and got[n:].unique().tolist() == [7.0]
dist.destroy_process_group()
"""


def run_ranks(
    code: str,
    *,
    size: int = 2,
    timeout: float = 120,
    env: Mapping[str, str] | None = None,
    statuses: Mapping[int, int] | None = None,
) -> list[str]:
    """Run the code in `size` fresh interpreters; return what each printed.

    Each has to end with status 0, or with the one that `statuses` has for its rank. All are killed
    after `timeout` seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder, f"rank{rank}") for rank in range(size)]
        processes = [
            _start(code, rank, size, folder, output, env or {})
            for rank, output in enumerate(outputs)
        ]
        end = time.monotonic() + timeout
        try:
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, end - time.monotonic()))
            ended = [process.poll() for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        texts = [output.read_text(errors="replace") for output in outputs]
    wanted = [(statuses or {}).get(rank, 0) for rank in range(size)]
    shown = "\n".join(f"--- rank {rank}: {text}" for rank, text in enumerate(texts))
    assert ended == wanted, f"ranks ended with {ended} (None: not in time)\n{shown}"
    return texts


def _start(
    code: str, rank: int, size: int, folder: str, output: Path, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    paths = [str(ROOT / "reference_backend"), *filter(None, [os.environ.get("PYTHONPATH")])]
    with output.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
                "PUONE_DRIVER": "sim",
                "OMP_NUM_THREADS": "1",
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(size),
                "STORE": str(Path(folder, "store-")),
                **env,
            },
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
