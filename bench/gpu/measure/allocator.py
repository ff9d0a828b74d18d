# SPDX-License-Identifier: BSD-3-Clause
"""The caching allocators: blocks taken and given back, and the traffic of a training step."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.gpu.measure.case import Case, Operation, WrongResult
from bench.gpu.measure.scale import Scale
from bench.gpu.measure.side import Side

CYCLES = {"512 B": 512, "1 MB": 1 << 20, "64 MB": 64 << 20}
LAYERS = 24
# Of a layer, by the bytes of its activations: what forward keeps, and what it needs for a moment.
KEPT, PASSING = (1, 1, 3, 1, 4, 4, 1), (3, 1, 4, 1)


@dataclass(frozen=True)
class Act:
    """Take `size` bytes for `slot`, or give them back."""

    slot: int
    size: int  # 0: give back


def training_step(activation: int, seed: int = 0) -> list[Act]:
    """Acts of one step: layers forward with temporaries, then backward in the reverse order."""
    chance = random.Random(seed)
    acts: list[Act] = []
    slots = 0
    kept: list[list[int]] = []

    def take(part: int) -> int:
        nonlocal slots
        slots += 1
        # Sequences differ in length.
        acts.append(Act(slots, max(1, int(part * activation * chance.uniform(0.8, 1.0)))))
        return slots

    def give(slot: int) -> None:
        acts.append(Act(slot, 0))

    for _ in range(LAYERS):
        kept.append([take(part) for part in KEPT])
        for slot in [take(part) for part in PASSING]:
            give(slot)
    for layer in reversed(kept):
        gradients = [take(part) for part in KEPT]
        for slot in (*reversed(layer), *gradients):
            give(slot)
    return acts


def cases(scale: Scale) -> Iterator[Case]:
    """Cycles of one size, then the trace with large and with small activations."""
    for name, size in CYCLES.items():
        yield Case("allocator", f"{name}, taken and given back", "host", _cycle(size))
    for name, activation in (("16 MB", 16 << 20), ("64 KB", 64 << 10)):
        scaled = min(activation, scale.tensor_bytes)
        yield Case("allocator", f"training step, activations of {name}", "host", _trace(scaled))


def _cycle(size: int) -> Callable[[Side], Operation]:
    def make(side: Side) -> Operation:
        device = side.device

        def verify() -> None:
            block = _block(size, device).fill_(7)
            if int(block[0]) != 7 or int(block[-1]) != 7:
                raise WrongResult("memory does not keep what is written")

        return Operation(lambda turn: _block(size, device), verify)

    return make


def _trace(activation: int) -> Callable[[Side], Operation]:
    acts = training_step(activation)

    def make(side: Side) -> Operation:
        device = side.device

        def step(turn: int) -> None:
            held: dict[int, Tensor] = {}
            for act in acts:
                if act.size:
                    held[act.slot] = _block(act.size, device)
                else:
                    del held[act.slot]

        def verify() -> None:
            step(0)
            before = side.module.memory_allocated()
            step(1)
            if side.module.memory_allocated() != before:
                raise WrongResult("a step does not give back all that it takes")

        return Operation(step, verify)

    return make


def _block(size: int, device: torch.device) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, device=device)
