# SPDX-License-Identifier: BSD-3-Clause
"""Random allocations, uses and frees; statistics of memory are compared with snapshots of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.program._common import SEEDS, restored

MIB = 1 << 20
#: On both sides of what allocators treat in another way.
_BYTES = (1, 512, 3000, 200_000, MIB, MIB + 1, 3 * MIB, 9 * MIB, 12 * MIB)
MOVES = 60


def _from_blocks(segments: list[dict[str, Any]]) -> Counter[str]:
    """What statistics of memory have to be, by the segments of a snapshot."""
    found: Counter[str] = Counter()
    for segment in segments:
        for pool in ("all", f"{segment['segment_type']}_pool"):
            found[f"segment.{pool}"] += 1
            found[f"reserved_bytes.{pool}"] += segment["total_size"]
            for block in segment["blocks"]:
                for name, amount in _of_block(block, segment["total_size"]):
                    found[f"{name}.{pool}"] += amount
    return found


def _of_block(block: dict[str, Any], whole: int) -> Iterator[tuple[str, int]]:
    size = block["size"]
    if block["state"] == "active_allocated":
        yield from (("allocation", 1), ("allocated_bytes", size))
    if block["state"] != "inactive":
        yield from (("active", 1), ("active_bytes", size))
        yield "requested_bytes", block["requested_size"]
    elif size != whole:
        yield from (("inactive_split", 1), ("inactive_split_bytes", size))


class _Blocks:
    """Tensors of random sizes that come and go on several streams."""

    def __init__(self, dev: Device, seed: int, index: int) -> None:
        self._dev, self._index, self._random = dev, index, random.Random(seed)
        self._streams = [dev.current_stream(index), dev.stream(index), dev.stream(index)]
        self._live: list[Tensor] = []

    def move(self) -> str:
        """Take or free one block, or use one on another stream; says which."""
        draw = self._random.random()
        stream = self._random.choice(self._streams)
        if draw < 0.5 or not self._live:
            size = self._random.choice(_BYTES)
            with stream:
                device = self._dev.device(self._index)
                self._live.append(torch.empty(size, dtype=torch.uint8, device=device))
            return f"a block of {size} bytes"
        place = self._random.randrange(len(self._live))
        if draw < 0.6:
            with stream:
                if self._dev.has("delay"):
                    self._dev.delay(1)
                self._live[place].record_stream(stream)
            return "record_stream"
        if draw < 0.63:
            self._dev.synchronize(self._index)
            return "a synchronisation"
        if draw < 0.66:
            torch.accelerator.empty_cache()
            return "empty_cache"
        del self._live[place]
        return "a block that is freed"

    def compare(self, after: str) -> None:
        """Statistics against a snapshot of the same moment."""
        for _ in range(10):  # a pending free may end between the two
            before, snapshot, found = self._statistics(), self._segments(), self._statistics()
            if before == found:
                break
        wanted = _from_blocks(snapshot)
        known = {key for key in found if key in wanted or found[key]}
        wrong = {key: (found[key], wanted[key]) for key in known if found[key] != wanted[key]}
        assert not wrong, f"after {after}, (statistic, by the snapshot): {wrong}"

    def _statistics(self) -> dict[str, int]:
        """What is current, of the statistics that a snapshot tells."""
        told = {name for name, _ in (*_of_block(_ACTIVE, 2), *_of_block(_FREE, 2))}
        told |= {"segment", "reserved_bytes"}
        statistics = torch.accelerator.memory_stats(self._index)
        return {
            key.removesuffix(".current"): int(value)
            for key, value in statistics.items()
            if key.endswith(".current") and key.partition(".")[0] in told
        }

    def _segments(self) -> list[dict[str, Any]]:
        snapshot = torch.get_device_module(self._dev.type).memory._snapshot()
        return [each for each in snapshot["segments"] if each["device"] == self._index]


_ACTIVE = {"state": "active_allocated", "size": 1, "requested_size": 1}
_FREE = {"state": "inactive", "size": 1}


@check(
    "program/memory",
    "PROG-004",
    cases=SEEDS[:6],
    needs=("memory_history", "memory_stats", "streams", "record_stream", "empty_cache"),
)
def statistics_follow_random_allocations(dev: Device, case: str) -> None:
    """After each allocation, use and free the statistics are those of the blocks there are."""
    index = int(case) % dev.count
    with restored(dev):
        blocks = _Blocks(dev, int(case), index)
        for _ in range(MOVES):
            blocks.compare(blocks.move())
