# SPDX-License-Identifier: BSD-3-Clause
"""The cache: freed memory serves later requests, and empty_cache returns it to the driver."""

from __future__ import annotations

from itertools import permutations

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    allocate,
    allocated_bytes,
    free_bytes,
    keep_their_contents,
    on_first_device,
    reserved_bytes,
)

#: Bytes of the parts of a block, and the orders in which they can be freed.
_PART, _ORDERS = 8 * MIB, tuple(permutations(range(3)))


@check("memory/split:contents", "MEM-003", needs=("accelerator",))
def parts_of_a_freed_block_do_not_overlap(dev: Device) -> None:
    """Blocks of many sizes that take the place of a large one keep what is written to them."""
    with on_first_device(dev):
        for size in (3 * _PART, MIB, 300_000):
            allocate(dev, size)
            keep_their_contents(dev, [allocate(dev, size // k) for k in (2, 5, 9, 11, 30, 700)])


@check("memory/split:merged", "MEM-018", needs=("memory_stats", "empty_cache"))
def parts_of_a_block_become_a_whole_again(dev: Device) -> None:
    """Parts of a block that were freed in any order serve a request for the whole again."""
    with on_first_device(dev):
        for order in _ORDERS:
            torch.accelerator.empty_cache()
            allocate(dev, 3 * _PART)
            parts: list[torch.Tensor | None] = [allocate(dev, _PART) for _ in range(3)]
            for k in order:
                parts[k] = None
            reserved = reserved_bytes()
            whole = allocate(dev, 3 * _PART)
            assert reserved_bytes() == reserved, (
                f"{whole.numel()} bytes, freed in the order {order}"
            )
            del whole


_CACHE = ("empty_cache", "memory_stats")


def _cache_and_empty(dev: Device) -> None:
    """Let a large block go to the cache, and empty it."""
    x = allocate(dev, LARGE)
    assert reserved_bytes() >= LARGE
    del x
    torch.accelerator.empty_cache()


@check("memory/empty_cache:reserved_falls", "MEM-017", needs=_CACHE)
def empty_cache_returns_a_large_block(dev: Device) -> None:
    """After empty_cache a large block that was freed is no longer reserved."""
    with on_first_device(dev):
        _cache_and_empty(dev)
        assert reserved_bytes() < LARGE


@check("memory/empty_cache:many_sizes", "MEM-017", needs=_CACHE)
def empty_cache_returns_blocks_of_many_sizes(dev: Device) -> None:
    """empty_cache returns blocks of many sizes, whatever the order in which they were freed."""
    with on_first_device(dev):
        reserved = reserved_bytes()
        blocks = [allocate(dev, 1 + k * k * 997) for k in range(64)]
        del blocks[::2]
        del blocks
        torch.accelerator.empty_cache()
        assert reserved_bytes() == reserved, f"{reserved_bytes() - reserved} bytes stay reserved"


@check("memory/empty_cache:every_device", "MEM-017", needs=_CACHE)
def empty_cache_returns_memory_of_every_device(dev: Device) -> None:
    """empty_cache also empties the cache of a device that is not current."""
    dev.require("multi_device")
    with on_first_device(dev):
        reserved = reserved_bytes(1)
        allocate(dev, LARGE, index=1)
        torch.accelerator.empty_cache()
        assert reserved_bytes(1) <= reserved, "the cache of a device that is not current stayed"


@check("memory/empty_cache:free_rises", "MEM-017", needs=_CACHE)
def empty_cache_returns_memory_to_the_driver(dev: Device) -> None:
    """After empty_cache the device has as much free memory as before."""
    dev.require("memory_info")
    with on_first_device(dev):
        start = free_bytes()
        _cache_and_empty(dev)
        assert free_bytes() >= start, f"{start - free_bytes()} bytes never came back to the driver"


@check("memory/empty_cache:live_blocks_stay", "MEM-017", needs=_CACHE)
def empty_cache_leaves_live_blocks(dev: Device) -> None:
    """empty_cache does not change the contents of a live block."""
    with on_first_device(dev):
        kept = torch.arange(1000.0, device=dev.device())
        _cache_and_empty(dev)
        dev.assert_equal(kept, torch.arange(1000.0))


@check("memory/empty_cache:idempotent", "MEM-017", needs=_CACHE)
def empty_cache_can_be_called_again(dev: Device) -> None:
    """Another empty_cache, also that of the device module, changes nothing."""
    with on_first_device(dev):
        kept = torch.arange(1000.0, device=dev.device())
        _cache_and_empty(dev)
        reserved = reserved_bytes()
        torch.accelerator.empty_cache()
        dev.module.empty_cache()
        assert reserved_bytes() == reserved
        dev.assert_equal(kept, torch.arange(1000.0))


@check("memory/empty_cache:pending_work", "MEM-017", needs=_CACHE)
def empty_cache_leaves_memory_of_queued_work(dev: Device) -> None:
    """empty_cache does not unmap a freed block that queued work has yet to read."""
    dev.require("delay")
    with on_first_device(dev):
        x = allocate(dev, LARGE)
        dev.delay(LATE_MS)
        x.fill_(7)
        y = x.to(torch.int16)
        del x
        torch.accelerator.empty_cache()
        assert y[0].item() == 7 and y[-1].item() == 7, "memory was unmapped under queued work"


@check("memory/cache:same_size", "MEM-018", needs=("memory_stats",))
def a_freed_block_is_used_again(dev: Device) -> None:
    """Freed memory serves the next request of the same size."""
    with on_first_device(dev):
        x = allocate(dev, LARGE)
        reserved = reserved_bytes()
        for _ in range(20):
            del x
            x = allocate(dev, LARGE)
        assert reserved_bytes() == reserved, f"for {x.numel()} bytes at a time"


#: Sizes of blocks that are freed, and of those that they serve together.
_SERVED: dict[str, tuple[list[int], list[int]]] = {
    "little_less": ([LARGE], [LARGE - 1]),
    "half": ([LARGE], [LARGE // 2]),
    "both_halves": ([LARGE], [LARGE // 2, LARGE // 2]),
    "quarters": ([LARGE], [LARGE // 4] * 4),
    "merged_halves": ([LARGE // 2, LARGE // 2], [LARGE // 2, LARGE // 2]),
    "two": ([LARGE, 2 * LARGE], [2 * LARGE, LARGE]),
    "smaller_first": ([3 * LARGE, LARGE], [LARGE, 3 * LARGE]),
    "small": ([200_000], [100_000, 100_000 - 512]),
}


@check("memory/cache_served", "MEM-018", cases=_SERVED, needs=("memory_stats", "empty_cache"))
def freed_blocks_serve_smaller_requests(dev: Device, case: str) -> None:
    """Freed memory serves requests that fit into it, a part of a block each, the best fit first."""
    freed, requested = _SERVED[case]
    with on_first_device(dev):
        blocks = [allocate(dev, size) for size in freed]
        reserved = reserved_bytes()
        del blocks
        served = [allocate(dev, size) for size in requested]
        sizes = [x.numel() for x in served]
        assert reserved_bytes() == reserved, f"{sizes} bytes in the place of {freed}"


@check("memory/cache:sum_of_small", "MEM-018", needs=("memory_stats",))
def small_freed_blocks_are_used_again(dev: Device) -> None:
    """Small blocks that were freed between live ones serve requests of their size."""
    with on_first_device(dev):
        small = [allocate(dev, 2000) for _ in range(200)]
        reserved = reserved_bytes()
        for k in range(0, 200, 2):
            small[k] = allocate(dev, 1)
        for k in range(0, 200, 2):
            small[k] = allocate(dev, 2000)
        assert reserved_bytes() <= reserved + 8 * MIB, "small blocks are not reused"


@check("memory/cache:thousand_times", "MEM-018", needs=("memory_stats",))
def steady_use_takes_a_steady_amount(dev: Device) -> None:
    """A computation that is repeated neither allocates nor reserves more than the first time."""

    def step() -> None:
        a = torch.ones(100, 50, device=dev.device())
        ((a * 2).t() + 1).contiguous()

    with on_first_device(dev):
        step()
        before = allocated_bytes(), reserved_bytes()
        for _ in range(1000):
            step()
        dev.synchronize()
        assert (allocated_bytes(), reserved_bytes()) == before, "a thousand equal steps leak memory"
