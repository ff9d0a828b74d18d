# SPDX-License-Identifier: BSD-3-Clause
"""Several processes that run one program together, each as a rank."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nursery

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


#: Forks the ranks from a process that has imported torch; their program is executed below. Prints
#: how they ended: null for one that had to be killed.
_LAUNCHER = """
import ctypes, json, os, signal, time
code, size, folder, timeout = json.loads(os.environ.pop("RANKS"))
ranks = {}
for rank in range(size):
    ranks[rank] = os.fork()
    if not ranks[rank]:
        break
else:
    end, ended = time.monotonic() + timeout, {}
    while len(ended) < size and time.monotonic() < end:
        for rank in ranks.keys() - ended.keys():
            pid, status = os.waitpid(ranks[rank], os.WNOHANG)
            if pid:
                ended[rank] = os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    for rank in ranks.keys() - ended.keys():
        os.kill(ranks[rank], signal.SIGKILL)
        os.waitpid(ranks[rank], 0)
    print(json.dumps([ended.get(rank) for rank in ranks]))
    raise SystemExit
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with the launcher
output = os.open(f"{folder}/rank{rank}", os.O_WRONLY | os.O_CREAT)
os.dup2(output, 1)
os.dup2(output, 2)
os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
exec(compile(code, "<rank>", "exec"))
"""


def run_ranks(
    code: str,
    *,
    size: int = 2,
    timeout: float = 120,
    env: Mapping[str, str] | None = None,
    statuses: Mapping[int, int] | None = None,
) -> list[str]:
    """Run the code in `size` processes; return what each printed.

    Each has to end with status 0, or with the one that `statuses` has for its rank. All are killed
    after `timeout` seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        launcher = nursery.run_code(
            _LAUNCHER,
            cwd=Path.cwd(),
            env=_environment(folder, size)
            | dict(env or {})
            | {"RANKS": json.dumps([PRELUDE + code, size, folder, timeout])},
            timeout=timeout + 30,
        )
        assert launcher.returncode == 0, launcher.stderr
        texts = [Path(folder, f"rank{rank}").read_text(errors="replace") for rank in range(size)]
    ended = json.loads(launcher.stdout)
    wanted = [(statuses or {}).get(rank, 0) for rank in range(size)]
    shown = "\n".join(f"--- rank {rank}: {text}" for rank, text in enumerate(texts))
    assert ended == wanted, f"ranks ended with {ended} (None: not in time)\n{shown}"
    return texts


def _environment(folder: str, size: int) -> dict[str, str]:
    paths = [str(ROOT / "reference_backend"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "PUONE_DRIVER": "sim",
        "WORLD_SIZE": str(size),
        "STORE": str(Path(folder, "store-")),
    }
