# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in what operators do with memory when they fail."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie, plant

_kept: list[Any] = []


@lie("MEM-019", "memory/after_exception:operator")
def failures_keep_their_operands(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator that fails keeps what it was given."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        _kept.append(args)
        raise


@lie("MEM-019", "memory/after_half")
def first_results_are_lost(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator without memory for its second result forgets to return that of the first."""
    if not name.startswith("sort"):
        return call(*args, **kwargs)
    _kept.append(torch.empty_like(args[0]))
    result = call(*args, **kwargs)
    _kept.pop()
    return result


@lie("MEM-049", "memory/statistic:active memory/statistic_pending", planted=True)
def pending_memory_is_inactive() -> None:
    """The statistics of active blocks are those of allocated ones, and never fall."""
    stats = torch.accelerator.memory_stats

    def without_pending(*device: Any) -> Any:
        now = stats(*device)
        for name in [name for name in now if name.startswith("active.")]:
            _, pool, metric = name.split(".")
            counted = "allocated" if metric == "current" else metric
            now[name] = now[f"allocation.{pool}.{counted}"]
        return now

    plant(torch.accelerator, "memory_stats", without_pending)


@lie("MEM-050", "memory/fraction:*", planted=True)
def limits_are_ignored() -> None:
    """set_per_process_memory_fraction does nothing."""
    module = torch.get_device_module(BACKEND)
    plant(module, "set_per_process_memory_fraction", lambda fraction, device=None: None)


@lie("MEM-049", "memory/statistic_history memory/statistic_sums", planted=True)
def splits_of_the_small_pool_are_never_freed() -> None:
    """The history of split blocks of the small pool has no ends."""
    stats = torch.accelerator.memory_stats

    def without_ends(*device: Any) -> Any:
        return stats(*device) | {"inactive_split.small_pool.freed": 0}

    plant(torch.accelerator, "memory_stats", without_ends)


@lie("MEM-049", "memory/statistic_oversize", planted=True)
def oversize_blocks_stay() -> None:
    """The count of oversize blocks does not fall."""
    stats = torch.accelerator.memory_stats

    def without_falls(*device: Any) -> Any:
        now = stats(*device)
        now["oversize_allocations.current"] = now["oversize_allocations.allocated"]
        return now

    plant(torch.accelerator, "memory_stats", without_falls)


@lie("MEM-051", "memory/first_use", planted=True)
def the_peak_needs_an_allocator() -> None:
    """reset_peak_memory_stats raises before the first use of the device."""
    module = torch.get_device_module(BACKEND)
    reset = module.reset_peak_memory_stats

    def reset_if_used(device: Any = None) -> None:
        if not module.is_initialized():
            raise RuntimeError("the allocator is not initialised")
        reset(device)

    plant(module, "reset_peak_memory_stats", reset_if_used)
