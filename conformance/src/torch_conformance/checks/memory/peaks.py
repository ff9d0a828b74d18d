# SPDX-License-Identifier: BSD-3-Clause
"""Peaks and the history of the counters: what they follow, and what a reset changes."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    allocate,
    allocated_bytes,
    on_first_device,
    reserved_bytes,
    settle,
    statistics,
)


def _peak(index: int = 0) -> int:
    return int(torch.accelerator.max_memory_allocated(index))


def _block_at_the_peak(dev: Device) -> torch.Tensor:
    """A large block, the first one since the peak of device 0 was reset: the peak follows."""
    torch.accelerator.reset_peak_memory_stats(0)
    start = allocated_bytes()
    assert _peak() == start
    x = allocate(dev, LARGE)
    assert _peak() == allocated_bytes() >= start + LARGE
    return x


@check("memory/peak:follows", "MEM-013", needs=("memory_stats",))
def the_peak_follows_the_highest_use(dev: Device) -> None:
    """The peak is what is allocated, as long as that grows."""
    with on_first_device(dev):
        _block_at_the_peak(dev)


@check("memory/peak:stays", "MEM-013", needs=("memory_stats",))
def the_peak_stays_after_memory_is_freed(dev: Device) -> None:
    """The peak stays when memory is freed and less is allocated again."""
    with on_first_device(dev):
        x = _block_at_the_peak(dev)
        peak = _peak()
        del x
        y = allocate(dev, LARGE // 2)
        assert _peak() == peak, f"lost with {y.numel()}"


@check("memory/peak:reset", "MEM-013", needs=("memory_stats",))
def the_peak_can_be_reset(dev: Device) -> None:
    """After a reset the peak is what is allocated."""
    with on_first_device(dev):
        start = allocated_bytes()
        _block_at_the_peak(dev)
        torch.accelerator.reset_peak_memory_stats(0)
        assert _peak() == start


@check("memory/peak:reset_in_use", "MEM-013", needs=("memory_stats",))
def the_peak_can_be_reset_while_memory_is_in_use(dev: Device) -> None:
    """After a reset the peak counts the blocks that live."""
    with on_first_device(dev):
        start = allocated_bytes()
        _block_at_the_peak(dev)
        x = allocate(dev, MIB)
        torch.accelerator.reset_peak_memory_stats(0)
        assert _peak() == allocated_bytes() > start, f"{x.numel()} bytes live"


@check("memory/peak:reset_elsewhere", "MEM-013", needs=("memory_stats",))
def the_peak_of_another_device_stays(dev: Device) -> None:
    """A reset of the peak of device 1 leaves the peak of device 0."""
    dev.require("multi_device")
    with on_first_device(dev):
        _block_at_the_peak(dev)
        peak = _peak()
        allocate(dev, LARGE, index=1)
        torch.accelerator.reset_peak_memory_stats(1)
        assert _peak(1) == allocated_bytes(1)
        assert _peak() == peak, "reset with device 1"


@check("memory/peak:reserved", "MEM-013", needs=("memory_stats",))
def the_peak_of_reserved_memory_is_counted(dev: Device) -> None:
    """The peak of reserved memory covers what is reserved, and can be reset to it."""
    with on_first_device(dev):
        x = _block_at_the_peak(dev)
        assert torch.accelerator.max_memory_reserved(0) >= reserved_bytes() >= LARGE
        del x
        settle(dev)
        torch.accelerator.reset_peak_memory_stats(0)
        assert torch.accelerator.max_memory_reserved(0) == reserved_bytes()


@check("memory/reset_accumulated", "MEM-014", needs=("memory_stats",))
def history_can_be_reset(dev: Device) -> None:
    """reset_accumulated_memory_stats zeroes the history and keeps what is current."""
    with on_first_device(dev):
        x = allocate(dev, 1000)
        current = allocated_bytes()
        torch.accelerator.reset_accumulated_memory_stats(0)
        stats = torch.accelerator.memory_stats(0)
        assert stats["allocation.all.allocated"] == 0 and stats["allocation.all.freed"] == 0
        assert allocated_bytes() == current >= x.numel()


@check("memory/reset_accumulated:only", "MEM-014", needs=("memory_stats",))
def resetting_the_history_changes_nothing_else(dev: Device) -> None:
    """reset_accumulated_memory_stats leaves current values, peaks and every other device."""
    with on_first_device(dev):
        live = [allocate(dev, 1000, index) for index in range(dev.count)]
        index = dev.count - 1
        before = [statistics(i) for i in range(dev.count)]
        torch.accelerator.reset_accumulated_memory_stats(index)
        after = [statistics(i) for i in range(dev.count)]
        assert after[:index] == before[:index], f"reset with device {index}"
        del live
        for name, value in after[index].items():
            metric = name.rpartition(".")[2]
            if metric in ("current", "peak"):
                assert value == before[index][name], name
            elif metric in ("allocated", "freed") or name in ("num_ooms", "num_alloc_retries"):
                assert value == 0, name


@check("memory/peak:every_statistic", "MEM-013", needs=("memory_stats",))
def every_peak_can_be_reset(dev: Device) -> None:
    """reset_peak_memory_stats sets every peak to its current value and changes nothing else."""
    with on_first_device(dev):
        for size in (1000, MIB, LARGE):
            allocate(dev, size)
        live = allocate(dev, 1000)
        before = statistics(0)
        torch.accelerator.reset_peak_memory_stats(0)
        after = statistics(0)
        del live
        for name, value in after.items():
            kind, _, metric = name.rpartition(".")
            expected = f"{kind}.current" if metric == "peak" else name
            assert value == before[expected], name


@check("memory/right_device:peak", "MEM-015", needs=("multi_device", "memory_stats"))
def the_peak_counts_the_memory_of_its_device(dev: Device) -> None:
    """A block on device 1 does not raise the peak of device 0."""
    with on_first_device(dev):
        torch.accelerator.reset_peak_memory_stats(0)
        before = allocated_bytes()
        x = allocate(dev, LARGE, index=1)
        assert _peak() == before, f"it counts {x.numel()} bytes of device 1"
