# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: E402 - a script, which finds its packages itself
"""Random programs of collectives, against a model in plain Python.

    python test/reference_backend/random_collectives.py --runs 1000 [--first SEED]

A program is a list of steps on the slots of each rank, made from a seed. The ranks run it on puone,
with delays on host and device in random places; the model runs it on lists of CPU tensors. In some
programs a rank ends in the middle: the other one must get an error or the right result, in time.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

sys.path[:0] = [
    str(Path(__file__).parents[2] / part) for part in ("conformance/src", "reference_backend")
]

from torch_conformance.authoring.device import Device
from torch_conformance.authoring.ranks import Died, Rank, on_ranks
from torch_conformance.spec import descriptor

RANKS, SLOTS = 2, 4
SIZES = (1, 3, 1000, 60_001, 1 << 20)
#: Seconds that a call may wait for the other rank, and that a program may take.
TIMEOUT_S, LIMIT_S = 6.0, 60.0

State = list[list[torch.Tensor]]


@dataclass(frozen=True)
class Step:
    """One call of every rank, or a message."""

    name: str
    slot: int
    other: int
    root: int
    group: int
    host_ms: tuple[int, int]
    """By rank, before the call."""
    device_ms: tuple[int, int]
    waits: bool
    """Whether the call is waited for at once, not at the end of the program."""


@dataclass(frozen=True)
class Program:
    """What all ranks run."""

    size: int
    steps: list[Step]
    dies: tuple[int, int] | None
    """Which rank ends, and before which step."""


def plan(seed: int) -> Program:
    """The program of a seed."""
    choose = random.Random(seed)

    def delay(often: float, most: int) -> tuple[int, int]:
        return tuple(  # type: ignore[return-value]
            choose.randrange(most) if choose.random() < often else 0 for _ in range(RANKS)
        )

    steps = []
    for _ in range(choose.randint(3, 14)):
        slot, other = choose.sample(range(SLOTS), 2)
        steps.append(
            Step(
                name=choose.choice(list(CALLS)),
                slot=slot,
                other=other,
                root=choose.randrange(RANKS),
                group=choose.randrange(2),
                host_ms=delay(0.2, 15),
                device_ms=delay(0.3, 20),
                waits=choose.random() < 0.6,
            )
        )
    dies = (choose.randrange(RANKS), choose.randrange(len(steps))) if seed % 4 == 3 else None
    return Program(choose.choice(SIZES), steps, dies)


def start(rank: int, size: int) -> list[torch.Tensor]:
    """The slots of a rank: whole numbers, so that sums are exact; calls keep them small."""
    base = torch.arange(size, dtype=torch.float64)
    return [(base * (3 + 2 * slot) + 5 * rank + slot) % 7 for slot in range(SLOTS)]


# ---- what a step does, in a rank and in the model ----


def _all_reduce(rank: int, step: Step, slots: list[torch.Tensor], group: Any) -> Any:
    return dist.all_reduce(slots[step.slot], group=group, async_op=True)


def _model_all_reduce(step: Step, state: State) -> None:
    total = sum(slots[step.slot] for slots in state)
    for slots in state:
        slots[step.slot] = torch.as_tensor(total).clone()


def _broadcast(rank: int, step: Step, slots: list[torch.Tensor], group: Any) -> Any:
    return dist.broadcast(slots[step.slot], step.root, group=group, async_op=True)


def _model_broadcast(step: Step, state: State) -> None:
    for slots in state:
        slots[step.slot] = state[step.root][step.slot].clone()


def _all_gather(rank: int, step: Step, slots: list[torch.Tensor], group: Any) -> Any:
    whole = torch.empty(RANKS * slots[0].numel(), dtype=torch.float64, device=slots[0].device)
    work = dist.all_gather_into_tensor(whole, slots[step.slot], group=group, async_op=True)
    work.wait()
    slots[step.other] = whole.view(RANKS, -1)[1 - rank].clone()
    return work


def _model_all_gather(step: Step, state: State) -> None:
    values = [slots[step.slot].clone() for slots in state]
    for rank, slots in enumerate(state):
        slots[step.other] = values[1 - rank]


def _reduce_scatter(rank: int, step: Step, slots: list[torch.Tensor], group: Any) -> Any:
    both = torch.cat([slots[step.slot], slots[step.other]])
    return dist.reduce_scatter_tensor(slots[step.other], both, group=group, async_op=True)


def _model_reduce_scatter(step: Step, state: State) -> None:
    parts = [
        torch.as_tensor(sum(slots[slot] for slots in state)) for slot in (step.slot, step.other)
    ]
    for rank, slots in enumerate(state):
        slots[step.other] = parts[rank].clone()


def _exchange(rank: int, step: Step, slots: list[torch.Tensor], group: Any) -> Any:
    got = torch.empty_like(slots[step.slot])
    dist.isend(slots[step.slot], 1 - rank, group=group)
    work = dist.irecv(got, 1 - rank, group=group)
    assert work is not None
    slots[step.other] = got
    return work


_model_exchange = _model_all_gather


def _barrier(rank: int, step: Step, slots: list[torch.Tensor], group: Any) -> Any:
    return dist.barrier(group=group, async_op=True)


Call = Callable[[int, Step, list[torch.Tensor], Any], Any]
Model = Callable[[Step, State], None]
CALLS: dict[str, tuple[Call, Model]] = {
    "all_reduce": (_all_reduce, _model_all_reduce),
    "broadcast": (_broadcast, _model_broadcast),
    "all_gather": (_all_gather, _model_all_gather),
    "reduce_scatter": (_reduce_scatter, _model_reduce_scatter),
    "exchange": (_exchange, _model_exchange),
    "barrier": (_barrier, lambda step, state: None),
}


def model(program: Program) -> State:
    """The slots of every rank at the end."""
    state = [start(rank, program.size) for rank in range(RANKS)]
    for step in program.steps:
        CALLS[step.name][1](step, state)
        for slots in state:  # as the ranks do
            slots[step.slot] = slots[step.slot] % 101
    return state


def run(rank: Rank, seed: int) -> list[torch.Tensor] | str:
    """In a rank: the slots at the end, or the error that ended the program."""
    program = plan(seed)
    try:
        return _run(rank, program)
    except Exception as error:
        if program.dies is None:
            raise
        ended = f"{type(error).__name__}: {error}"
    for _ in range(4):  # each group that failed has an error of its own
        with contextlib.suppress(RuntimeError):
            rank.dev.synchronize()
    return ended


def _run(rank: Rank, program: Program) -> list[torch.Tensor]:
    slots = [values.to(rank.device) for values in start(rank.index, program.size)]
    with rank.group(timeout=TIMEOUT_S):
        groups = [dist.group.WORLD, dist.new_group([0, 1])]
        for number, step in enumerate(program.steps):
            if program.dies == (rank.index, number):
                os._exit(0)
            time.sleep(step.host_ms[rank.index] / 1e3)
            rank.dev.delay(step.device_ms[rank.index])
            work = CALLS[step.name][0](rank.index, step, slots, groups[step.group])
            work.wait()
            slots[step.slot] = slots[step.slot] % 101
            if step.waits:
                torch.accelerator.synchronize()
        return [values.cpu() for values in slots]


def check(dev: Device, seed: int) -> str:
    """Run the program of a seed; return how it ended: "right" or "error"."""
    program = plan(seed)
    dying = frozenset({program.dies[0]}) if program.dies else frozenset()
    results = on_ranks(dev, run, seed=seed, limit=LIMIT_S, dying=dying)
    wanted = model(program)
    ended = "right"
    for rank, got in enumerate(results):
        if isinstance(got, Died):
            continue
        if isinstance(got, str):
            assert "Error" in got, got
            ended = "error"
            continue
        for slot, (values, expected) in enumerate(zip(got, wanted[rank], strict=True)):
            assert torch.equal(values, expected), f"seed {seed}: slot {slot} of rank {rank}"
    return ended


def device() -> Device:
    """The handle of puone in a process that uses no device itself."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    os.environ.setdefault("PUONE_DRIVER", "sim")
    import torch_puone  # noqa: F401

    target = descriptor.find("puone")
    present = frozenset(name for name, has in target.capabilities.items() if has)
    return Device(target, capabilities=present)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    dev = device()
    counts: dict[str, int] = {}
    for seed in range(options.first, options.first + options.runs):
        ended = check(dev, seed)
        counts[ended] = counts.get(ended, 0) + 1
    print(f"{options.runs} programs: {counts}")


if __name__ == "__main__":
    # The ranks import the functions from here by the module's own name.
    importlib.import_module("random_collectives").main()
