# SPDX-License-Identifier: BSD-3-Clause
"""Run as a program: random programs of collectives on puone, against a model in NumPy.

    python random_collectives.py --runs 1000 [--ranks 2 4] [--first SEED] [--bound]

Each seed is a program (collective_programs.py) and, for most, an adversarial schedule of the
device. Ranks are forked from this process, which touches no device. In one of three programs a rank
dies, leaves, aborts its groups or comes too late: then every other rank must have what the model
has or end with an error, in time, and one that needs the dead rank must end with an error. Prints
each program that went wrong, with the command that repeats it; status 1 if there is one.

The driver is PUONE_DRIVER, sim by default. With the native transport of pccl, a group that is not
made for a device connects in its first call, and ranks must not order these differently: --bound
makes all groups for a device.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import gc
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, replace
from pathlib import Path

os.environ.setdefault("PUONE_DRIVER", "sim")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
import torch._dynamo  # what functional collectives import at their first call
from collective_programs import Program, Truth, model, plan
from collective_ranks import PATIENT_S, SHORT_S, Result, run
from collective_verdicts import MARGIN_S, Ended, judge

import torch_puone.distributed  # noqa: F401 - ranks are forked with it

# ---- a program ----


def attempt(program: Program, folder: Path) -> list[Ended]:
    """Fork the ranks of a program and wait for them."""
    truth = model(program)
    limit = time.monotonic() + (SHORT_S if program.death else PATIENT_S) + MARGIN_S
    pids = [_fork(program, rank, truth, folder) for rank in range(program.ranks)]
    statuses = _await(pids, limit)
    return [
        Ended(
            statuses[pid],
            _read_result(folder / f"{rank}.json"),
            _read_time(folder / f"{rank}.died"),
            (folder / f"{rank}.txt").read_text(errors="replace"),
        )
        for rank, pid in enumerate(pids)
    ]


def _fork(program: Program, rank: int, truth: Truth, folder: Path) -> int:
    """The process of a rank."""
    pid = os.fork()
    if pid:
        return pid
    status = 0
    try:
        _be_rank(program, rank, truth, folder)
    except BaseException:
        traceback.print_exc()
        status = 1
    if program.shuts_down:
        sys.exit(status)
    os._exit(status)


def _be_rank(program: Program, rank: int, truth: Truth, folder: Path) -> None:
    output = os.open(folder / f"{rank}.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    if program.schedule is not None:
        for driver in ("SIM", "STANDIN"):
            os.environ[f"PUONE_{driver}_SEED"] = str(program.schedule)

    def died() -> None:
        (folder / f"{rank}.died").write_text(str(time.monotonic()))

    result = run(program, rank, truth, str(folder / "store"), died)
    (folder / f"{rank}.json").write_text(json.dumps(asdict(result)))


def _await(pids: list[int], limit: float) -> dict[int, int | None]:
    """The exit statuses; who has not ended by the limit says where it is, and is killed."""
    statuses: dict[int, int | None] = dict.fromkeys(pids)
    with selectors.DefaultSelector() as selector:
        for pid in pids:
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
        while selector.get_map() and (left := limit - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                statuses[key.data] = os.waitstatus_to_exitcode(os.waitpid(key.data, 0)[1])
                selector.unregister(key.fd)
                os.close(key.fd)
        late = list(selector.get_map().values())
        for key in late:
            os.kill(key.data, signal.SIGUSR1)
        time.sleep(1.0 if late else 0.0)
        for key in late:
            os.kill(key.data, signal.SIGKILL)
            os.waitpid(key.data, 0)
            os.close(key.fd)
    return statuses


def _read_result(path: Path) -> Result | None:
    with contextlib.suppress(FileNotFoundError):
        return Result(**json.loads(path.read_text()))
    return None


def _read_time(path: Path) -> float | None:
    with contextlib.suppress(FileNotFoundError):
        return float(path.read_text())
    return None


# ---- all of them ----


def describe(program: Program, reasons: list[str], ranks: list[Ended]) -> str:
    """What went wrong, and how to see it again."""
    script = os.path.relpath(__file__)
    lines = [
        f"seed {program.seed}, {program.ranks} ranks, {program.death or 'no death'}:",
        *(f"  {reason}" for reason in reasons),
        f"  again: python {script} --ranks {program.ranks} --first {program.seed} --runs 1",
    ]
    for rank, ended in enumerate(ranks):
        how = f"{ended.result.how} {ended.result.text}" if ended.result else ""
        lines.append(f"  --- rank {rank}, status {ended.status}: {how}\n{ended.output}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000, help="programs for each number of ranks")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--bound", action="store_true", help="make all groups for a device")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.freeze()  # pages that forked processes share stay so
    owner, folder, begun = os.getpid(), tempfile.mkdtemp(), time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    failed = 0
    try:
        for seed in range(options.first, options.first + options.runs):
            for size in options.ranks:
                program = plan(seed, size)
                program = replace(program, bound=program.bound or options.bound)
                reasons = _one(program, Path(folder, f"{seed}-{size}"), counts)
                failed += bool(reasons)
    finally:
        if os.getpid() == owner:  # a rank leaves this way, too
            shutil.rmtree(folder)
    programs = options.runs * len(options.ranks)
    seconds = time.monotonic() - begun
    print(f"{programs} programs in {seconds:.0f} s, {failed} failed; ranks: {dict(counts)}")
    return 1 if failed else 0


def _one(program: Program, folder: Path, counts: collections.Counter[str]) -> list[str]:
    folder.mkdir()
    ranks = attempt(program, folder)
    reasons = judge(program, ranks)
    if reasons:
        print(describe(program, reasons, ranks), flush=True)
    for ended in ranks:
        counts[ended.result.how if ended.result else "died"] += 1
    shutil.rmtree(folder)
    return reasons


if __name__ == "__main__":
    sys.exit(main())
