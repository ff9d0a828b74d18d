# SPDX-License-Identifier: BSD-3-Clause
"""Tensors between processes that end without notice, and many of them.

    python test/endurance/shared_tensors.py --seeds 100 --tensors 10000

For each seed a sender and a receiver are forked, and one of them is killed at a random moment. A
receiver whose sender was killed has the right values or an error that says that the process has
ended; it neither hangs nor crashes. A sender whose receiver was killed has all its memory back.
Then one pair exchanges many tensors, after which both have as many blocks, descriptors and
mappings as before.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import torch
from torch import Tensor, multiprocessing

import torch_puone

# The parent only forks: it never uses the device.
CONTEXT = multiprocessing.get_context("fork")
DEADLINE = 60.0  # seconds for what takes less than one
MOST_UNANSWERED = 8  # tensors that a sender is ahead of its receiver
Role = Callable[[Connection], None]


def value_of(number: int) -> Tensor:
    """A tensor that shows which one it is, of a size that varies."""
    return torch.full((1 + number * 997 % 40_000,), float(number), device=f"puone:{number % 2}")


def send_without_end(channel: Connection) -> None:
    number = 0
    while True:
        tensor = value_of(number)
        tensor.add_(1)  # queued when it is sent
        channel.send((number, tensor))
        number += 1
        if number % MOST_UNANSWERED == 0:
            channel.recv()


def receive_until_the_end(channel: Connection) -> None:
    """Check what arrives; end when the sender has."""
    kept: list[tuple[int, Tensor]] = []
    while True:
        try:
            number, tensor = channel.recv()
        except (EOFError, ConnectionError):
            break
        except RuntimeError as error:
            assert "ended" in str(error), error
            break
        assert bool((tensor == number + 1).all()), f"tensor {number} is wrong"
        kept = [*kept[-3:], (number, tensor)]
        if number % MOST_UNANSWERED == MOST_UNANSWERED - 1:
            try:
                channel.send(None)
            except ConnectionError:
                break
    for number, tensor in kept:  # what was received stays
        assert bool((tensor == number + 1).all()), f"tensor {number} changed"


def send_until_the_end(channel: Connection) -> None:
    """Send until the receiver has ended; then all memory comes back."""
    try:
        send_without_end(channel)
    except (EOFError, ConnectionError):
        pass
    gc.collect()
    end = time.monotonic() + DEADLINE / 2
    while used := in_use():
        # What was on its way when the receiver died stays: nobody knows who was to receive it.
        if used <= MOST_UNANSWERED and time.monotonic() > end - DEADLINE / 2 + 1:
            return
        assert time.monotonic() < end, f"{used} tensors are not given back"
        time.sleep(0.01)


def in_use() -> int:
    """Blocks that tensors of this process take."""
    torch_puone.ipc_collect()
    return sum(
        torch_puone.memory_stats(device).get("allocation.all.current", 0)
        for device in range(torch_puone.device_count())
    )


def fork(role: Role, channel: Connection, *others: Connection) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        for other in others:
            other.close()
        role(channel)
        status = 0
    except BaseException as error:
        print(f"{role.__name__}: {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(status)


def ends_well(pid: int) -> str:
    """Empty if the process ends with status 0 in time."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else f"ended with {code}"
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hangs"


def kill_one(seed: int) -> str:
    """What went wrong when one of two processes was killed; empty if nothing."""
    chance = random.Random(seed)
    kills_sender = chance.random() < 0.7
    here, there = CONTEXT.Pipe()
    sender = fork(send_without_end if kills_sender else send_until_the_end, here, there)
    receiver = fork(receive_until_the_end, there, here)
    here.close()
    there.close()
    time.sleep(chance.expovariate(1 / 0.15))
    victim, other = (sender, receiver) if kills_sender else (receiver, sender)
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)
    wrong = ends_well(other)
    name = "receiver" if kills_sender else "sender"
    return f"seed {seed}: the {name} {wrong}" if wrong else ""


def footprint() -> tuple[int, ...]:
    """What a process holds: blocks, descriptors, mappings of shared memory."""
    blocks = in_use()  # first, because it gives back what can be
    with open("/proc/self/maps") as maps:
        mapped = sum("memfd:puone" in line for line in maps)
    return blocks, len(os.listdir("/proc/self/fd")), mapped


def exchange(count: int) -> str:
    """Send `count` tensors and get each back; what was left behind, empty if nothing."""
    here, there = CONTEXT.Pipe()
    report, results = CONTEXT.Pipe(duplex=False)

    def echo(channel: Connection) -> None:
        before = footprint()
        for number in range(count + 10):
            if number == 10:  # everything exists by now
                before = footprint()
            tensor = channel.recv()
            tensor += 1
            channel.send(tensor)
            del tensor
        channel.recv()
        after = footprint()
        assert all(a <= b for a, b in zip(after, before, strict=True)), f"{before}, then {after}"

    def drive(channel: Connection) -> None:
        before = footprint()
        for number in range(count + 10):
            if number == 10:
                before = footprint()
            tensor = value_of(number)
            channel.send(tensor)
            back = channel.recv()
            torch_puone.synchronize(back.device)
            assert back.data_ptr() == tensor.data_ptr()
            assert bool((back == number + 1).all()), f"tensor {number} is wrong"
            del tensor, back
        channel.send(None)
        assert channel.poll(DEADLINE)  # the other has ended, and given everything back
        after = footprint()
        torch_puone.empty_cache()  # a cached segment that was shared has a descriptor
        emptied = footprint()
        assert after[0] == 0, f"{after[0]} blocks are in use"
        assert all(a <= b for a, b in zip(emptied, before, strict=True)), (
            f"{before}, then {emptied}"
        )
        results.send(
            f"{count} tensors; blocks, descriptors and mappings of the sender: {before} after ten "
            f"of them, {after} at the end, {emptied} with an empty cache"
        )

    pids = [fork(drive, here, there), fork(echo, there, here)]
    for end in (here, there, results):
        end.close()
    wrong = [text for pid in pids if (text := ends_well(pid))]
    if not wrong:
        print(report.recv(), flush=True)
    return "; ".join(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--tensors", type=int, default=300)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    wrong = [text for seed in seeds if (text := kill_one(seed))]
    if text := exchange(options.tensors):
        wrong.append(text)
    print("\n".join(wrong or [f"{len(seeds)} seeds, {options.tensors} tensors: nothing is wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
