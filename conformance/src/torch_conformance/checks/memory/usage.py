# SPDX-License-Identifier: BSD-3-Clause
"""Allocated and free memory: both count each block, on the device that it is on."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    all_returned,
    allocate,
    allocated_bytes,
    free_bytes,
    on_first_device,
)

# Blocks of LARGE bytes that a cache may have kept from the checks before.
CACHED = 16


@check("memory/allocated:rises", "MEM-010", needs=("memory_stats",))
def allocated_memory_rises_by_each_block(dev: Device) -> None:
    """memory_allocated rises by the size of a block, and little more."""
    with on_first_device(dev):
        before = allocated_bytes()
        x = allocate(dev, LARGE)
        grown = allocated_bytes() - before
        assert LARGE <= grown <= LARGE + 4 * MIB, f"{x.numel()} bytes counted as {grown}"


def _collected(dev: Device) -> None:
    cycle: dict[str, Any] = {"x": allocate(dev, LARGE)}
    cycle["me"] = cycle
    del cycle
    gc.collect()


#: What allocates memory and returns it.
_RETURNED: dict[str, Callable[[Device], object]] = {
    "returns": lambda dev: allocate(dev, LARGE),
    "temporaries": lambda dev: ((torch.ones(1000, device=dev.device()) * 2 + 1) / 3).sum(),
    "garbage_cycle": _collected,
}


@check("memory/allocated", "MEM-010", cases=_RETURNED, needs=("memory_stats",))
def allocated_memory_returns_to_its_start(dev: Device, case: str) -> None:
    """memory_allocated returns to its start after a block, temporaries, or garbage of a cycle."""
    gc.collect()  # so that only this check's garbage is left to be collected
    with all_returned(dev):
        _RETURNED[case](dev)


@check("memory/allocated:sums", "MEM-010", needs=("memory_stats",))
def allocated_memory_counts_every_block(dev: Device) -> None:
    """memory_allocated counts all live blocks, and falls with each that is freed."""
    with all_returned(dev):
        live: list[torch.Tensor] = []
        before = allocated_bytes()
        for k in range(1, 8):
            live.append(allocate(dev, k * MIB))
            assert allocated_bytes() - before >= sum(x.numel() for x in live)
        while live:
            last = allocated_bytes()
            live.pop()
            assert allocated_bytes() < last


def _in_context(dev: Device) -> torch.Tensor:
    with torch.accelerator.device_index(1):
        return torch.empty(LARGE, dtype=torch.uint8, device=dev.type)


def _on_stream(dev: Device) -> torch.Tensor:
    dev.require("streams")
    with dev.stream(1):
        return torch.empty(LARGE, dtype=torch.uint8, device=dev.type)


#: Ways to make a large block on device 1.
_ON_DEVICE_1: dict[str, Callable[[Device], torch.Tensor]] = {
    "by_argument": lambda dev: allocate(dev, LARGE, index=1),
    "by_context": _in_context,
    "by_stream": _on_stream,
    "to": lambda dev: torch.ones(LARGE, dtype=torch.uint8).to(dev.device(1)),
    "like": lambda dev: torch.empty_like(
        torch.ones(LARGE, dtype=torch.uint8), device=dev.device(1)
    ),
    "resize": lambda dev: allocate(dev, 1, index=1).resize_(LARGE),
}


@check("memory/right_device", "MEM-015", cases=_ON_DEVICE_1, needs=("multi_device", "memory_stats"))
def memory_is_booked_on_the_device_it_is_on(dev: Device, case: str) -> None:
    """A block on device 1 is booked on device 1, and not on device 0."""
    with on_first_device(dev):
        allocate(dev, 1, index=1)
        before = allocated_bytes(0), allocated_bytes(1)
        x = _ON_DEVICE_1[case](dev)
        assert x.device == dev.device(1)
        assert allocated_bytes(0) == before[0], "booked on device 0"
        assert allocated_bytes(1) - before[1] >= LARGE, "not booked on device 1"


@check("memory/right_device:memory_info", "MEM-015", needs=("multi_device", "memory_stats"))
def memory_is_taken_from_the_device_it_is_on(dev: Device) -> None:
    """A block on device 1 takes free memory of device 1, and not of device 0."""
    dev.require("memory_info")
    with on_first_device(dev):
        allocate(dev, 1, index=1)
        free = free_bytes(0), free_bytes(1)
        x = allocate(dev, LARGE, index=1)
        assert free[0] == free_bytes(0), "the memory was taken from device 0"
        assert _falls(dev, free[1], index=1), f"{x.numel()} bytes were not taken from device 1"


def _falls(dev: Device, free: int, index: int = 0) -> bool:
    """Whether free memory falls below `free` when much is allocated.

    A cache that cannot be emptied may serve some of it: what it gives is held until it has no more.
    """
    held: list[torch.Tensor] = []
    while free - free_bytes(index) < LARGE and len(held) < CACHED:
        held.append(allocate(dev, LARGE, index=index))
    return free - free_bytes(index) >= LARGE


@check("memory/info:bounds", "MEM-016", needs=("memory_info",))
def free_memory_is_no_more_than_the_total(dev: Device) -> None:
    """get_memory_info gives, for every device, free bytes that are no more than the total."""
    with on_first_device(dev):
        for index in range(dev.count):
            free, total = torch.accelerator.get_memory_info(index)
            assert 0 <= free <= total and total > 0


@check("memory/info:parity", "MEM-016", needs=("memory_info",))
def both_modules_report_the_same_total(dev: Device) -> None:
    """torch.<type> and torch.accelerator report the same total."""
    with on_first_device(dev):
        assert dev.module.mem_get_info(0)[1] == torch.accelerator.get_memory_info(0)[1]


@check("memory/info:falls", "MEM-016", needs=("memory_info",))
def free_memory_falls_with_use(dev: Device) -> None:
    """get_memory_info gives less free memory when much is allocated."""
    with on_first_device(dev):
        assert _falls(dev, free_bytes()), f"{LARGE} bytes were taken from nowhere"


@check("memory/info:total_is_constant", "MEM-016", needs=("memory_info",))
def the_total_does_not_change_with_use(dev: Device) -> None:
    """get_memory_info gives the same total when much is allocated."""
    with on_first_device(dev):
        total = torch.accelerator.get_memory_info(0)[1]
        x = allocate(dev, LARGE)
        assert torch.accelerator.get_memory_info(0)[1] == total, f"with {x.numel()} bytes"
