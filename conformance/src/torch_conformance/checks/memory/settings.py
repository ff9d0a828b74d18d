# SPDX-License-Identifier: BSD-3-Clause
"""The settings of the allocator are accepted, and change how it rounds and splits blocks."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, why_ended
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    allocate,
    allocated_bytes,
    on_first_device,
    settings,
    settle,
    statistics,
)

_SETTINGS = {
    "max_split_size": "max_split_size_mb:32",
    "garbage_collection": "garbage_collection_threshold:0.8",
    "several": "max_split_size_mb:64,garbage_collection_threshold:0.6",
}


@check("memory/settings", "MEM-045", cases=_SETTINGS, needs=("allocator_settings",))
def allocator_takes_the_standard_settings(dev: Device, case: str) -> None:
    """The standard allocator settings are accepted at run time and allocation works under them."""
    with settings(dev, _SETTINGS[case]):
        blocks = [torch.full((k * 1000,), float(k), device=dev.device()) for k in range(1, 20)]
        for k, block in enumerate(blocks, start=1):
            assert block[-1].item() == k
        for k in (1, 3, 1):
            large = torch.full((k * 8 * MIB,), float(k), device=dev.device())
            assert large[-1].item() == k


#: Divisions of a power of two, a request in KiB, and the size of its block in KiB.
_ROUNDED = {
    "4_low": (4, 1100, 1280),
    "4_high": (4, 1800, 2048),
    "4_exact": (4, 1536, 1536),
    "4_power": (4, 4096, 4096),
    "8": (8, 1100, 1152),
    "2": (2, 20_000, 24_576),
}


@check("memory/rounding", "MEM-066", cases=_ROUNDED, needs=("allocator_settings", "memory_stats"))
def sizes_are_rounded_up_to_parts_of_a_power_of_two(dev: Device, case: str) -> None:
    """With roundup_power2_divisions, blocks have sizes of that many steps between powers of two."""
    divisions, request, block = _ROUNDED[case]
    with on_first_device(dev), settings(dev, f"roundup_power2_divisions:{divisions}"):
        before = allocated_bytes()
        x = allocate(dev, request << 10)
        grown = (allocated_bytes() - before) >> 10
        assert grown == block, f"a block of {grown} KiB for {x.numel() >> 10} KiB"


@check("memory/alignment:rounded", "MEM-001", needs=("allocator_settings", "addresses"))
def small_blocks_stay_aligned_when_sizes_are_rounded(dev: Device) -> None:
    """With the most steps between powers of two, small blocks begin at multiples of 16 bytes."""
    with on_first_device(dev), settings(dev, "roundup_power2_divisions:64"):
        live = [allocate(dev, size) for size in (520, 1028, 2060, 600) for _ in range(5)]
    assert all(x.data_ptr() % 16 == 0 for x in live), [hex(x.data_ptr()) for x in live]


@check(
    "memory/statistic_oversize",
    "MEM-049",
    needs=("memory_stats", "empty_cache", "allocator_settings"),
)
def oversize_blocks_are_counted(dev: Device) -> None:
    """With a largest size to be split, a block beyond it counts as oversize while it lives."""
    if not hasattr(torch._C, "_accelerator_getAllocatorSettings"):
        dev.unsupported("torch before 2.12 does not tell its settings: they could not be put back")
    names = ("oversize_allocations", "oversize_segments")
    former = torch._C._accelerator_getAllocatorSettings()
    with on_first_device(dev):
        if not {f"{name}.current" for name in names} <= set(statistics(0)):
            dev.unsupported("memory_stats has no oversize blocks")
        try:
            torch._C._accelerator_setAllocatorSettings("max_split_size_mb:32")
            before = statistics(0)
            live = [allocate(dev, 2 * LARGE), allocate(dev, MIB)]
            during = statistics(0)
            del live
            settle(dev)
            after = statistics(0)
        finally:
            torch._C._accelerator_setAllocatorSettings(former)
    for name in names:
        for metric, grown, left in (("current", 1, 0), ("allocated", 1, 1), ("freed", 0, 1)):
            key = f"{name}.{metric}"
            changes = (during[key] - before[key], after[key] - before[key])
            assert changes == (grown, left), f"{key} changed by {changes}"


@check("memory/max_split_size:statistic", "MEM-049", needs=("allocator_settings", "memory_stats"))
def the_largest_size_to_be_split_is_a_statistic(dev: Device) -> None:
    """memory_stats says which largest size to be split was set last."""
    if "max_split_size" not in statistics(0):
        dev.unsupported("memory_stats does not say the largest size to be split")
    for megabytes in (32, 64):
        with settings(dev, f"max_split_size_mb:{megabytes}"):
            assert statistics(0)["max_split_size"] == megabytes * MIB


@check(
    "memory/max_split_size:kept_whole",
    "MEM-064",
    needs=("allocator_settings", "memory_stats", "empty_cache", "addresses"),
)
def blocks_beyond_the_largest_size_are_kept_whole(dev: Device) -> None:
    """An unused block beyond the largest size to be split is whole for a request of its size."""
    with on_first_device(dev), settings(dev, "max_split_size_mb:32"):
        x = allocate(dev, 2 * LARGE)
        address = x.data_ptr()
        del x
        small = allocate(dev, LARGE // 2)
        assert not address <= small.data_ptr() < address + 2 * LARGE, "the block was split"
        assert allocate(dev, 2 * LARGE).data_ptr() == address, "the block was not used again"


@check("memory/settings_environment", "MEM-045", needs=("allocator_settings",))
def allocator_takes_settings_from_the_environment(dev: Device) -> None:
    """PYTORCH_ALLOC_CONF is accepted by a fresh process that then allocates and frees."""
    done = dev.python(
        f"import torch\nD = {dev.type!r}\n"
        "for k in range(1, 50):\n"
        "    x = torch.full((k * 1000,), 2.0, device=D)\n"
        "    assert x.sum().item() == k * 2000\n"
        "print('done')",
        env={"PYTORCH_ALLOC_CONF": "max_split_size_mb:32,garbage_collection_threshold:0.7"},
    )
    assert done.returncode == 0 and "done" in done.stdout, why_ended(done)
