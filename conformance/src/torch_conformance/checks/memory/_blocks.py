# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: blocks of memory, what is counted, and settings."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torch_conformance.authoring.api import Device, raised

MIB = 1 << 20
#: Larger than any sensible small-block threshold, small enough for any device.
LARGE = 32 * MIB
#: What a check needs that asks a device for more than it has.
LIMITED = ("memory_limit", "memory_info")


def allocate(dev: Device, count: int, index: int = 0) -> torch.Tensor:
    """A block of so many bytes on a device."""
    return torch.empty(count, dtype=torch.uint8, device=dev.device(index))


def allocated_bytes(index: int = 0) -> int:
    """The bytes that are allocated on a device."""
    return int(torch.accelerator.memory_allocated(index))


def reserved_bytes(index: int = 0) -> int:
    """The bytes that the allocator holds of a device."""
    return int(torch.accelerator.memory_reserved(index))


def free_bytes(index: int = 0) -> int:
    """The bytes of a device that are free."""
    return int(torch.accelerator.get_memory_info(index)[0])


@contextmanager
def on_first_device(dev: Device) -> Iterator[None]:
    """Device 0 is current, idle and has an empty cache; nobody else's garbage is freed inside."""
    collecting = gc.isenabled()
    gc.disable()
    with torch.accelerator.device_index(0):
        allocate(dev, 1)
        settle(dev)
        try:
            yield
        finally:
            settle(dev)
            if collecting:
                gc.enable()


def settle(dev: Device) -> None:
    """Wait for all work, and empty the cache."""
    dev.synchronize()
    if dev.has("empty_cache"):
        torch.accelerator.empty_cache()


def keep_their_contents(dev: Device, live: list[torch.Tensor]) -> None:
    """Blocks that are filled one after the other hold what was written to each."""
    for k, x in enumerate(live):
        x.fill_(k)
    for k, x in enumerate(live):
        dev.assert_equal(x, torch.full_like(x, k, device="cpu"))


@contextmanager
def all_returned(dev: Device) -> Iterator[None]:
    """On device 0, all memory that is allocated inside is returned inside."""
    with on_first_device(dev):
        before = allocated_bytes()
        yield
        assert allocated_bytes() == before, f"{allocated_bytes() - before} bytes stay allocated"


def statistics(index: int) -> dict[str, int]:
    """The statistics of a device."""
    return {name: int(value) for name, value in torch.accelerator.memory_stats(index).items()}


def exhaust(dev: Device, index: int) -> torch.OutOfMemoryError:
    """The error of asking a device for more than it has, while device 0 is current."""
    total = torch.accelerator.get_memory_info(index)[1]
    error = raised(lambda: allocate(dev, total + MIB, index))
    assert isinstance(error, torch.OutOfMemoryError), f"{type(error).__name__}: {error}"
    return error


@contextmanager
def settings(dev: Device, text: str) -> Iterator[None]:
    """The allocator has these settings inside."""
    if not hasattr(torch._C, "_accelerator_getAllocatorSettings"):
        dev.unsupported("torch before 2.12 does not tell its settings: they could not be put back")
    former = torch._C._accelerator_getAllocatorSettings()
    try:
        torch._C._accelerator_setAllocatorSettings(text)
        yield
    finally:
        torch._C._accelerator_setAllocatorSettings(former)


@contextmanager
def history(dev: Device, **options: Any) -> Iterator[Callable[[], dict[str, Any]]]:
    """Allocations are recorded inside; gives what takes a snapshot."""
    memory = torch.get_device_module(dev.type).memory
    memory._record_memory_history(stacks="python", **options)
    try:
        yield memory._snapshot
    finally:
        memory._record_memory_history(None)


def first_segments(snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    """The segments of the first device."""
    return [segment for segment in snapshot["segments"] if segment["device"] == 0]
