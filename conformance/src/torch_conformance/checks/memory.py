# SPDX-License-Identifier: BSD-3-Clause
"""Device memory, its allocator and statistics, pinned host memory, and running out of memory."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import re
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise, permutations
from typing import Any, NamedTuple

import torch

from torch_conformance.authoring.api import (
    LATE_MS,
    Device,
    check,
    in_thread,
    in_threads,
    raised,
    tail,
    while_held,
    why_ended,
    words,
)

MIB = 1 << 20
#: Larger than any sensible small-block threshold, small enough for any device.
LARGE = 32 * MIB
# Blocks of LARGE bytes that a cache may have kept from the checks before.
CACHED = 16


def _bytes(dev: Device, count: int, index: int = 0) -> torch.Tensor:
    return torch.empty(count, dtype=torch.uint8, device=dev.device(index))


def _allocated(index: int = 0) -> int:
    return int(torch.accelerator.memory_allocated(index))


def _reserved(index: int = 0) -> int:
    return int(torch.accelerator.memory_reserved(index))


def _free(index: int = 0) -> int:
    return int(torch.accelerator.get_memory_info(index)[0])


@contextmanager
def _on_first_device(dev: Device) -> Iterator[None]:
    """Device 0 is current, idle and has an empty cache; nobody else's garbage is freed inside."""
    collecting = gc.isenabled()
    gc.disable()
    with torch.accelerator.device_index(0):
        _bytes(dev, 1)
        _settle(dev)
        try:
            yield
        finally:
            _settle(dev)
            if collecting:
                gc.enable()


def _settle(dev: Device) -> None:
    dev.synchronize()
    if dev.has("empty_cache"):
        torch.accelerator.empty_cache()


# ---- blocks ----------------------------------------------------------------------------------

_SIZES = {"one": 1, "odd": 513, "page": 4096, "large": MIB + 1}


@check("memory/alignment", "MEM-001", cases=_SIZES, needs=("accelerator", "addresses"))
def blocks_are_aligned(dev: Device, case: str) -> None:
    """Every block begins at a multiple of 16 bytes, the largest element there is."""
    live = [_bytes(dev, _SIZES[case]) for _ in range(9)]
    assert all(x.data_ptr() % 16 == 0 for x in live), [hex(x.data_ptr()) for x in live]


@check("memory/alignment_vector", "MEM-002", cases=_SIZES, needs=("accelerator", "addresses"))
def blocks_are_aligned_for_vectors(dev: Device, case: str) -> None:
    """Every block begins at a multiple of 64 bytes."""
    live = [_bytes(dev, _SIZES[case]) for _ in range(9)]
    assert all(x.data_ptr() % 64 == 0 for x in live), [hex(x.data_ptr()) for x in live]


_LIVE = [1 + (k * k * 37) % 5000 for k in range(96)] + [LARGE, LARGE, MIB, 3 * MIB + 5]


def _keep_their_contents(dev: Device, live: list[torch.Tensor]) -> None:
    """Blocks that are filled one after the other hold what was written to each."""
    for k, x in enumerate(live):
        x.fill_(k)
    for k, x in enumerate(live):
        dev.assert_equal(x, torch.full_like(x, k, device="cpu"))


@check("memory/no_overlap:addresses", "MEM-003", needs=("accelerator", "addresses"))
def addresses_of_live_blocks_do_not_overlap(dev: Device) -> None:
    """A live block ends before the one with the next higher address begins."""
    live = [_bytes(dev, size) for size in _LIVE]
    spans = sorted((x.data_ptr(), x.data_ptr() + x.numel()) for x in live)
    for (_, end), (begin, _) in pairwise(spans):
        assert end <= begin, f"a block ends at {end:#x}, the next begins at {begin:#x}"


@check("memory/no_overlap:contents", "MEM-003", needs=("accelerator",))
def live_blocks_do_not_overlap(dev: Device) -> None:
    """What is written to live blocks does not change any other."""
    _keep_their_contents(dev, [_bytes(dev, size) for size in _LIVE])


@check("memory/no_overlap:after_reuse", "MEM-003", needs=("accelerator",))
def live_blocks_do_not_overlap_after_reuse(dev: Device) -> None:
    """What is written to live blocks does not change any other, after others were freed."""
    live = [_bytes(dev, size) for size in _LIVE]
    for k in range(0, len(live), 2):
        live[k] = _bytes(dev, 1)
    for k in range(0, len(live), 2):
        live[k] = _bytes(dev, _LIVE[-1 - k] // 2 + 1)
    _keep_their_contents(dev, live)


#: What holds of a tensor of 0 x 3 elements.
_OF_NO_ELEMENTS: dict[str, Callable[[torch.Tensor], bool]] = {
    "shape": lambda x: (*x.shape, x.numel(), x.untyped_storage().nbytes()) == (0, 3, 0, 0),
    "copy": lambda x: x.cpu().shape == (0, 3) and torch.empty(0).to(x.device).numel() == 0,
    "operator": lambda x: (x + 1).shape == (0, 3) and x.sum().item() == 0.0,
    "resize": lambda x: torch.equal(x.resize_(2, 3).fill_(4).cpu(), torch.full((2, 3), 4.0)),
}


@check("memory/zero_size", "MEM-004", cases=_OF_NO_ELEMENTS, needs=("accelerator",))
def empty_tensors_are_tensors(dev: Device, case: str) -> None:
    """A tensor without elements can be made, copied, computed with and grown."""
    x = torch.empty(0, 3, device=dev.device())
    assert _OF_NO_ELEMENTS[case](x), x


@check("memory/zero_size:statistics", "MEM-004", needs=("accelerator",))
def empty_tensors_need_no_memory(dev: Device) -> None:
    """Tensors without elements do not count as allocated memory."""
    dev.require("memory_stats")
    before = _allocated()
    kept = [torch.empty(0, device=dev.device(0)) for _ in range(10)]
    assert _allocated() == before, f"{len(kept)} empty tensors count as allocated memory"


_KEEPERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "slice": lambda x: x[100:200],
    "reshape": lambda x: x.view(-1, 2),
    "storage": lambda x: x.untyped_storage(),
    "detach": lambda x: x.detach(),
}


@check("memory/kept_alive", "MEM-005", cases=_KEEPERS, needs=("memory_stats",))
def a_view_keeps_the_block(dev: Device, case: str) -> None:
    """A block lives as long as anything refers to it, and is returned with the last reference."""
    with _on_first_device(dev):
        before = _allocated()
        x = _bytes(dev, MIB)
        x.fill_(9)
        keeper = _KEEPERS[case](x)
        del x
        assert _allocated() - before >= MIB, "the block was freed under a live view"
        if isinstance(keeper, torch.Tensor):
            other = _bytes(dev, MIB).fill_(1)
            dev.assert_equal(keeper, torch.full_like(keeper, 9, device="cpu"))
            del other
        del keeper
        assert _allocated() == before, "the block was not returned"


@check("memory/freed_elsewhere", "MEM-005", needs=("memory_stats", "multi_device"))
def blocks_return_whatever_device_is_current(dev: Device) -> None:
    """A block freed while another device is current is returned to its own."""
    with _on_first_device(dev):
        before = _allocated()
        x = _bytes(dev, MIB)
        with torch.accelerator.device_index(1):
            del x
        assert _allocated() == before, "the block was not returned"


# ---- storages --------------------------------------------------------------------------------


_COUNT = torch.arange(64, dtype=torch.uint8)
_STORAGE_SIZES = {"storage_grows": 4096, "storage_shrinks": 16}


@check("memory/resize", "MEM-006", cases=_STORAGE_SIZES)
def resizing_a_storage_keeps_the_contents(dev: Device, case: str) -> None:
    """Growing or shrinking a storage keeps the bytes that stay."""
    dev.require("storage_resize")
    size = _STORAGE_SIZES[case]
    x = _COUNT.to(dev.device(), copy=True)
    x.untyped_storage().resize_(size)
    assert x.untyped_storage().nbytes() == size
    stored = torch.empty(0, dtype=torch.uint8, device=x.device).set_(x.untyped_storage())
    dev.assert_equal(stored[:64], _COUNT[:size])


#: The sizes that a tensor is given, one after the other.
_SIZES_IN_TURN = {
    "tensor_grows": (1000,),
    "tensor_shrinks": (8,),
    "repeatedly": tuple(range(64, 1280, 64)),
}


@check("memory/resize", "MEM-006", cases=_SIZES_IN_TURN)
def resizing_a_tensor_keeps_the_contents(dev: Device, case: str) -> None:
    """Growing or shrinking a tensor keeps the elements that stay."""
    x = _COUNT.to(dev.device(), copy=True)
    for size in _SIZES_IN_TURN[case]:
        x.resize_(size)
        assert x.shape == (size,)
    dev.assert_equal(x[:64], _COUNT[: len(x)])


def _shrink_storage(x: torch.Tensor) -> torch.Tensor:
    x.untyped_storage().resize_(1024 * x.element_size())
    return torch.empty(0, device=x.device).set_(x.untyped_storage())


_RESIZES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tensor_grows": lambda x: x.resize_(9000),
    "storage_shrinks": _shrink_storage,
}


@check("memory/resize_late", "MEM-006", cases=_RESIZES, needs=("delay",))
def resizing_waits_for_the_contents(dev: Device, case: str) -> None:
    """What is queued for a tensor before it is resized is among the contents that stay."""
    x = torch.zeros(4096, device=dev.device())
    dev.synchronize()
    dev.delay(LATE_MS)
    x.fill_(3)
    x = _RESIZES[case](x)
    dev.assert_equal(x[:1024], torch.full((1024,), 3.0))


def _released(dev: Device) -> torch.Tensor:
    """A tensor whose storage gave its memory back."""
    before = _allocated()
    x = _bytes(dev, LARGE)
    x.untyped_storage().resize_(0)
    assert _allocated() == before, "the memory is still allocated"
    return x


@check("memory/storage_release:released", "MEM-007", needs=("memory_stats",))
def storage_of_size_zero_releases_its_memory(dev: Device) -> None:
    """storage.resize_(0) gives the memory back while the tensor lives."""
    with _on_first_device(dev):
        _released(dev)


@check("memory/storage_release:usable_again", "MEM-007", needs=("memory_stats",))
def a_released_storage_can_be_filled_again(dev: Device) -> None:
    """A storage that was resized to zero can grow and be filled again."""
    with _on_first_device(dev):
        x = _released(dev)
        x.untyped_storage().resize_(LARGE)
        x.fill_(5)
        assert x[LARGE - 1].item() == 5


# ---- statistics ------------------------------------------------------------------------------


@contextmanager
def _all_returned(dev: Device) -> Iterator[None]:
    """On device 0, all memory that is allocated inside is returned inside."""
    with _on_first_device(dev):
        before = _allocated()
        yield
        assert _allocated() == before, f"{_allocated() - before} bytes stay allocated"


@check("memory/allocated:rises", "MEM-010", needs=("memory_stats",))
def allocated_memory_rises_by_each_block(dev: Device) -> None:
    """memory_allocated rises by the size of a block, and little more."""
    with _on_first_device(dev):
        before = _allocated()
        x = _bytes(dev, LARGE)
        grown = _allocated() - before
        assert LARGE <= grown <= LARGE + 4 * MIB, f"{x.numel()} bytes counted as {grown}"


def _collected(dev: Device) -> None:
    cycle: dict[str, Any] = {"x": _bytes(dev, LARGE)}
    cycle["me"] = cycle
    del cycle
    gc.collect()


#: What allocates memory and returns it.
_RETURNED: dict[str, Callable[[Device], object]] = {
    "returns": lambda dev: _bytes(dev, LARGE),
    "temporaries": lambda dev: ((torch.ones(1000, device=dev.device()) * 2 + 1) / 3).sum(),
    "garbage_cycle": _collected,
}


@check("memory/allocated", "MEM-010", cases=_RETURNED, needs=("memory_stats",))
def allocated_memory_returns_to_its_start(dev: Device, case: str) -> None:
    """memory_allocated returns to its start after a block, temporaries, or garbage of a cycle."""
    gc.collect()  # so that only this check's garbage is left to be collected
    with _all_returned(dev):
        _RETURNED[case](dev)


@check("memory/allocated:sums", "MEM-010", needs=("memory_stats",))
def allocated_memory_counts_every_block(dev: Device) -> None:
    """memory_allocated counts all live blocks, and falls with each that is freed."""
    with _all_returned(dev):
        live: list[torch.Tensor] = []
        before = _allocated()
        for k in range(1, 8):
            live.append(_bytes(dev, k * MIB))
            assert _allocated() - before >= sum(x.numel() for x in live)
        while live:
            last = _allocated()
            live.pop()
            assert _allocated() < last


def _stats_of_five_blocks(dev: Device) -> dict[str, Any]:
    """The statistics of device 0 while five blocks of a thousand bytes live."""
    with _on_first_device(dev):
        live = [_bytes(dev, 1000) for _ in range(5)]
        stats: dict[str, Any] = torch.accelerator.memory_stats(0)
        del live
    return stats


@check("memory/counters:keys", "MEM-011", needs=("memory_stats",))
def statistics_have_the_documented_keys(dev: Device) -> None:
    """memory_stats has the documented keys."""
    core = ("allocation", "allocated_bytes", "active_bytes", "reserved_bytes", "segment")
    metrics = ("current", "peak", "allocated", "freed")
    wanted = {f"{name}.all.{metric}" for name in core for metric in metrics}
    missing = {*wanted, "num_alloc_retries", "num_ooms"} - set(_stats_of_five_blocks(dev))
    assert not missing, f"missing: {sorted(missing)}"


@check("memory/counters:integers", "MEM-011", needs=("memory_stats",))
def statistics_are_integers(dev: Device) -> None:
    """The counters of memory_stats are integers and not negative."""
    now = _stats_of_five_blocks(dev)
    counters = {k: v for k, v in now.items() if "." in k or k.startswith("num_")}
    wrong = {k: v for k, v in counters.items() if not isinstance(v, int) or v < 0}
    assert counters and not wrong, wrong


@check("memory/counters:difference", "MEM-011", needs=("memory_stats",))
def statistics_agree_with_each_other(dev: Device) -> None:
    """What is current is what was allocated less what was freed."""
    now = _stats_of_five_blocks(dev)
    for name in ("allocation", "allocated_bytes", "reserved_bytes"):
        current = now[f"{name}.all.allocated"] - now[f"{name}.all.freed"]
        assert now[f"{name}.all.current"] == current, name


@check("memory/counters:bounds", "MEM-011", needs=("memory_stats",))
def statistics_are_within_their_bounds(dev: Device) -> None:
    """What is allocated is no more than what is reserved, and neither exceeds its peak."""
    now = _stats_of_five_blocks(dev)
    allocated, reserved = (now[f"{n}_bytes.all.current"] for n in ("allocated", "reserved"))
    assert 5000 <= allocated <= reserved
    assert now["allocated_bytes.all.peak"] >= allocated
    assert now["reserved_bytes.all.peak"] >= reserved


def _counted(name: str) -> int:
    return int(torch.accelerator.memory_stats(0)[f"allocation.all.{name}"])


@check("memory/counters:count_of_blocks", "MEM-011", needs=("memory_stats",))
def statistics_count_the_live_blocks(dev: Device) -> None:
    """The number of current allocations is that of the live blocks."""
    with _on_first_device(dev):
        before = _counted("current")
        live = [_bytes(dev, 1000) for _ in range(5)]
        assert _counted("current") - before == len(live)
        del live
        assert _counted("current") == before


@check("memory/counters:history", "MEM-011", needs=("memory_stats",))
def statistics_count_what_was_allocated_and_freed(dev: Device) -> None:
    """The history counts each block that was allocated, and each that was freed."""
    with _on_first_device(dev):
        allocated, freed = _counted("allocated"), _counted("freed")
        live = [_bytes(dev, 1000) for _ in range(5)]
        del live
        assert _counted("allocated") == allocated + 5
        assert _counted("freed") == freed + 5


def _statistics(index: int) -> dict[str, int]:
    return {name: int(value) for name, value in torch.accelerator.memory_stats(index).items()}


class _Counted(NamedTuple):
    """What a block adds to a statistic."""

    of_bytes: bool = False  # the bytes of the block and little more; otherwise one
    of_segments: bool = False  # only of a block that is too large for what is reserved already


_STATISTICS = {
    "allocation": _Counted(),
    "active": _Counted(),
    "segment": _Counted(of_segments=True),
    "allocated_bytes": _Counted(of_bytes=True),
    "active_bytes": _Counted(of_bytes=True),
    "requested_bytes": _Counted(of_bytes=True),
    "reserved_bytes": _Counted(of_bytes=True, of_segments=True),
}

#: The pool of a block, its bytes, and which other pool it does not concern.
_POOL_OF_BLOCK = {"small_pool": (1000, "large_pool"), "large_pool": (LARGE, "small_pool")}


def _changes(before: dict[str, int], after: dict[str, int], name: str, pool: str) -> list[int]:
    """The changes of current, allocated and freed."""
    keys = [f"{name}.{pool}.{metric}" for metric in ("current", "allocated", "freed")]
    return [after[key] - before[key] for key in keys]


def _counts_a_block(dev: Device, name: str, pool: str, index: int) -> None:
    """A statistic, as a whole and of a pool, counts a block of the pool that comes and goes."""
    size, other_pool = _POOL_OF_BLOCK[pool]
    counted = _STATISTICS[name]
    before = _statistics(index)
    x = _bytes(dev, size, index)
    during = _statistics(index)
    del x
    _settle(dev)
    after = _statistics(index)
    least, most = (size, size + 4 * MIB) if counted.of_bytes else (1, 1)
    for key in ("all", pool):
        grown, allocated, freed = _changes(before, during, name, key)
        assert least <= grown <= most, f"{name}.{key} grew by {grown} with {size} bytes"
        assert allocated - freed == grown, f"{name}.{key}: {allocated} - {freed} is not {grown}"
        peak, current = (during[f"{name}.{key}.{metric}"] for metric in ("peak", "current"))
        assert peak >= current, f"the peak of {name}.{key}, {peak}, is less than {current}"
        assert _changes(during, after, name, key)[0] == -grown, f"{name}.{key} did not fall"
        freed = after[f"{name}.{key}.freed"] - during[f"{name}.{key}.freed"]
        assert freed >= grown, f"{name}.{key}.freed grew by {freed}, not by {grown}"
    assert _changes(before, during, name, other_pool) == [0, 0, 0], f"{name} of the {other_pool}"


@check("memory/statistic", "MEM-049", cases=_STATISTICS, needs=("memory_stats", "empty_cache"))
def each_statistic_counts_a_block(dev: Device, case: str) -> None:
    """Each statistic rises and falls with a block, in its pool and on its device alone."""
    pools = ["large_pool"] if _STATISTICS[case].of_segments else [*_POOL_OF_BLOCK]
    with _on_first_device(dev):
        if f"{case}.all.current" not in _statistics(0):
            dev.unsupported(f"memory_stats has no {case}")
        for index in {0, dev.count - 1}:
            _bytes(dev, 1, index)
            _settle(dev)
            for pool in pools:
                others = {i: _statistics(i) for i in range(dev.count) if i != index}
                _counts_a_block(dev, case, pool, index)
                assert others == {i: _statistics(i) for i in others}, "of another device"


#: Counters of calls to the driver, and what a block that comes and goes adds.
_CALLS = {"num_device_alloc": "allocated", "num_device_free": "freed"}


@check("memory/statistic_calls", "MEM-049", cases=_CALLS, needs=("memory_stats", "empty_cache"))
def calls_of_the_driver_are_counted(dev: Device, case: str) -> None:
    """num_device_alloc and num_device_free count the segments that came and went."""
    with _on_first_device(dev):
        before = _statistics(0)
        if case not in before:
            dev.unsupported(f"memory_stats has no {case}")
        for _ in range(3):
            _bytes(dev, LARGE)
            torch.accelerator.empty_cache()
        after = _statistics(0)
        segments = f"segment.all.{_CALLS[case]}"
        assert after[case] - before[case] == after[segments] - before[segments] == 3


@check("memory/statistic_balance", "MEM-049", needs=("memory_stats", "empty_cache"))
def reserved_memory_is_active_or_split(dev: Device) -> None:
    """After empty_cache, reserved memory is in use or belongs to segments that are in use."""
    with _on_first_device(dev):
        live = [_bytes(dev, size) for size in (1000, 200_000, 3 * MIB, LARGE, 700, 5 * MIB)]
        del live[::2]
        torch.accelerator.empty_cache()
        now = _statistics(0)
        for pool in ("all", "small_pool", "large_pool"):
            reserved, active, split = (
                now[f"{name}.{pool}.current"]
                for name in ("reserved_bytes", "active_bytes", "inactive_split_bytes")
            )
            assert reserved == active + split, f"{pool}: {reserved} is not {active} + {split}"
            assert bool(split) == bool(now[f"inactive_split.{pool}.current"]), pool


def _work_of_blocks(dev: Device, index: int) -> Iterator[dict[str, int]]:
    """The statistics of a device while blocks of both pools come, are split, and go."""
    yield _statistics(index)
    live = [_bytes(dev, size, index) for size in (1000, 200_000, LARGE, 700, 3 * MIB)]
    yield _statistics(index)
    del live[::2]
    part = _bytes(dev, LARGE // 4, index)
    yield _statistics(index)
    del live[:]
    yield _statistics(index)
    del part
    _settle(dev)
    yield _statistics(index)


_POOLS_OF_ALL = ("small_pool", "large_pool")


@check("memory/statistic_sums", "MEM-049", needs=("memory_stats", "empty_cache"))
def each_statistic_is_the_sum_of_its_pools(dev: Device) -> None:
    """Of every statistic, what is current, allocated and freed is the sum over both pools."""
    with _on_first_device(dev):
        for index in {0, dev.count - 1}:
            for now in _work_of_blocks(dev, index):
                _sums_of_pools(now)


def _sums_of_pools(now: dict[str, int]) -> None:
    for key, whole in now.items():
        name, _, metric = key.rpartition(".all.")
        parts = [f"{name}.{pool}.{metric}" for pool in _POOLS_OF_ALL]
        if name and metric != "peak" and all(part in now for part in parts):
            total = sum(now[part] for part in parts)
            assert whole == total, f"{key} is {whole}, the sum over its pools is {total}"


@check("memory/statistic_history", "MEM-049", needs=("memory_stats", "empty_cache"))
def each_statistic_is_the_difference_of_its_history(dev: Device) -> None:
    """Every statistic changes, in each pool, by what its history says was allocated less freed."""
    with _on_first_device(dev):
        for index in {0, dev.count - 1}:
            for before, after in pairwise(_work_of_blocks(dev, index)):
                _differs_by_its_history(before, after)


def _differs_by_its_history(before: dict[str, int], after: dict[str, int]) -> None:
    for key in (key for key in after if key.endswith(".current")):
        counted = key.removesuffix(".current")
        changed, allocated, freed = (
            after[f"{counted}.{metric}"] - before[f"{counted}.{metric}"]
            for metric in ("current", "allocated", "freed")
        )
        assert changed == allocated - freed, f"{key} changed by {changed}"
        assert allocated >= 0 and freed >= 0, f"the history of {counted} went back"
        peak = after[f"{counted}.peak"]
        assert peak >= after[key], f"the peak of {counted} is {peak}"


@check("memory/statistic_returns", "MEM-049", needs=("memory_stats", "empty_cache"))
def each_statistic_returns_with_its_blocks(dev: Device) -> None:
    """Once all blocks are freed and the cache is empty, every current value is as before."""
    with _on_first_device(dev):
        for index in {0, dev.count - 1}:
            _bytes(dev, 1, index)
            _settle(dev)
            first, *_, last = _work_of_blocks(dev, index)
            current = {key for key in first if key.endswith(".current")}
            left = {key: last[key] - first[key] for key in current if last[key] != first[key]}
            assert not left, f"of device {index}: {left}"


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
    with _on_first_device(dev):
        if not {f"{name}.current" for name in names} <= set(_statistics(0)):
            dev.unsupported("memory_stats has no oversize blocks")
        try:
            torch._C._accelerator_setAllocatorSettings("max_split_size_mb:32")
            before = _statistics(0)
            live = [_bytes(dev, 2 * LARGE), _bytes(dev, MIB)]
            during = _statistics(0)
            del live
            _settle(dev)
            after = _statistics(0)
        finally:
            torch._C._accelerator_setAllocatorSettings(former)
    for name in names:
        for metric, grown, left in (("current", 1, 0), ("allocated", 1, 1), ("freed", 0, 1)):
            key = f"{name}.{metric}"
            changes = (during[key] - before[key], after[key] - before[key])
            assert changes == (grown, left), f"{key} changed by {changes}"


#: Calls of functions of memory, and what is true of their results before anything is allocated.
_FIRST_USES = {
    "stats": "torch.accelerator.memory_stats() is not None",
    "allocated": "torch.accelerator.memory_allocated() == 0",
    "max_reserved": "torch.accelerator.max_memory_reserved() == 0",
    "reset_peak": "torch.accelerator.reset_peak_memory_stats() is None",
    "reset_accumulated": "torch.accelerator.reset_accumulated_memory_stats() is None",
    "empty_cache": "torch.accelerator.empty_cache() is None",
    "info": "0 <= torch.accelerator.get_memory_info()[0] <= torch.accelerator.get_memory_info()[1]",
    "module_allocated": "module.memory_allocated() == 0",
    "module_reset_peak": "module.reset_peak_memory_stats() is None",
    "module_empty_cache": "module.empty_cache() is None",
}
_FIRST_USE = """import os, sys, traceback
import torch
module = torch.get_device_module({type!r})
for name, code in {calls!r}.items():
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            assert eval(code), code
            torch.ones(3, device={type!r})
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(name, os.waitpid(child, 0)[1])
"""


def _offers(dev: Device, name: str, code: str) -> bool:
    """Whether the backend has the function; the chapter registration asks for those it lacks."""
    if name == "info":
        return dev.has("memory_info")
    function = code.partition("module.")[2].partition("(")[0]
    return not function or hasattr(dev.bare_module, function)


@check("memory/first_use", "MEM-051", needs=("memory_stats", "fork"))
def memory_can_be_asked_about_first(dev: Device) -> None:
    """Every function of memory works as the first use of the device, which then allocates."""
    calls = {name: code for name, code in _FIRST_USES.items() if _offers(dev, name, code)}
    done = dev.python(_FIRST_USE.format(type=dev.type, calls=calls))
    assert done.returncode == 0, why_ended(done)
    ended = dict(line.split() for line in done.stdout.splitlines() if line.split()[0] in calls)
    wrong = [name for name in calls if ended.get(name) != "0"]
    assert not wrong, f"{wrong} before the first use of the device: {tail(done.stderr)}"


@check(
    "memory/statistic_pending",
    "MEM-049",
    needs=("memory_stats", "record_stream", "streams", "delay"),
)
def memory_in_use_by_another_stream_is_active(dev: Device) -> None:
    """A freed block is no longer allocated, but active until a stream that uses it is done."""
    names = ("allocation", "allocated_bytes", "active", "active_bytes")

    def current() -> list[int]:
        now = _statistics(0)
        return [now[f"{name}.all.current"] for name in names]

    with _on_first_device(dev):
        before = current()
        other = dev.stream()

        def look() -> list[int]:
            x = _bytes(dev, MIB)
            x.record_stream(other)
            del x
            return current()

        with other:
            dev.delay(1)  # so that the stream has work, whatever stream is held below
        seen = _while_stream_is_held(dev, other, look)
        _settle(dev)
        _bytes(dev, 1)
        after = current()
    blocks, size = seen[2] - before[2], seen[3] - before[3]
    assert seen[:2] == before[:2], "it still counts as allocated"
    assert blocks >= 1 and size >= MIB, f"{blocks} blocks of {size} bytes are active"
    assert after[:3:2] == before[:3:2], "it never became inactive"


def _while_stream_is_held(
    dev: Device, stream: torch.Stream, look: Callable[[], list[int]]
) -> list[int]:
    """What `look` sees on the current stream while another one is held."""
    outer = dev.current_stream()

    def look_outside() -> list[int]:
        with outer:
            return look()

    with stream:
        return while_held(dev, look_outside)


#: What a module reports of a device.
_REPORTED: dict[str, Callable[[Any, int], Any]] = {
    "allocated": lambda module, index: module.memory_allocated(index),
    "reserved": lambda module, index: module.memory_reserved(index),
    "max_allocated": lambda module, index: module.max_memory_allocated(index),
    "max_reserved": lambda module, index: module.max_memory_reserved(index),
    "stats": lambda module, index: dict(module.memory_stats(index)),
}


@check("memory/parity", "MEM-012", cases=_REPORTED, needs=("memory_stats",))
def both_modules_report_the_same(dev: Device, case: str) -> None:
    """torch.<type> and torch.accelerator report the same numbers for every device."""
    kept = [_bytes(dev, 3000 * (index + 1), index) for index in range(dev.count)]
    for index in range(len(kept)):
        assert _REPORTED[case](dev.module, index) == _REPORTED[case](torch.accelerator, index)


def _peak(index: int = 0) -> int:
    return int(torch.accelerator.max_memory_allocated(index))


def _block_at_the_peak(dev: Device) -> torch.Tensor:
    """A large block, the first one since the peak of device 0 was reset: the peak follows."""
    torch.accelerator.reset_peak_memory_stats(0)
    start = _allocated()
    assert _peak() == start
    x = _bytes(dev, LARGE)
    assert _peak() == _allocated() >= start + LARGE
    return x


@check("memory/peak:follows", "MEM-013", needs=("memory_stats",))
def the_peak_follows_the_highest_use(dev: Device) -> None:
    """The peak is what is allocated, as long as that grows."""
    with _on_first_device(dev):
        _block_at_the_peak(dev)


@check("memory/peak:stays", "MEM-013", needs=("memory_stats",))
def the_peak_stays_after_memory_is_freed(dev: Device) -> None:
    """The peak stays when memory is freed and less is allocated again."""
    with _on_first_device(dev):
        x = _block_at_the_peak(dev)
        peak = _peak()
        del x
        y = _bytes(dev, LARGE // 2)
        assert _peak() == peak, f"lost with {y.numel()}"


@check("memory/peak:reset", "MEM-013", needs=("memory_stats",))
def the_peak_can_be_reset(dev: Device) -> None:
    """After a reset the peak is what is allocated."""
    with _on_first_device(dev):
        start = _allocated()
        _block_at_the_peak(dev)
        torch.accelerator.reset_peak_memory_stats(0)
        assert _peak() == start


@check("memory/peak:reset_in_use", "MEM-013", needs=("memory_stats",))
def the_peak_can_be_reset_while_memory_is_in_use(dev: Device) -> None:
    """After a reset the peak counts the blocks that live."""
    with _on_first_device(dev):
        start = _allocated()
        _block_at_the_peak(dev)
        x = _bytes(dev, MIB)
        torch.accelerator.reset_peak_memory_stats(0)
        assert _peak() == _allocated() > start, f"{x.numel()} bytes live"


@check("memory/peak:reset_elsewhere", "MEM-013", needs=("memory_stats",))
def the_peak_of_another_device_stays(dev: Device) -> None:
    """A reset of the peak of device 1 leaves the peak of device 0."""
    dev.require("multi_device")
    with _on_first_device(dev):
        _block_at_the_peak(dev)
        peak = _peak()
        _bytes(dev, LARGE, index=1)
        torch.accelerator.reset_peak_memory_stats(1)
        assert _peak(1) == _allocated(1)
        assert _peak() == peak, "reset with device 1"


@check("memory/peak:reserved", "MEM-013", needs=("memory_stats",))
def the_peak_of_reserved_memory_is_counted(dev: Device) -> None:
    """The peak of reserved memory covers what is reserved, and can be reset to it."""
    with _on_first_device(dev):
        x = _block_at_the_peak(dev)
        assert torch.accelerator.max_memory_reserved(0) >= _reserved() >= LARGE
        del x
        _settle(dev)
        torch.accelerator.reset_peak_memory_stats(0)
        assert torch.accelerator.max_memory_reserved(0) == _reserved()


@check("memory/reset_accumulated", "MEM-014", needs=("memory_stats",))
def history_can_be_reset(dev: Device) -> None:
    """reset_accumulated_memory_stats zeroes the history and keeps what is current."""
    with _on_first_device(dev):
        x = _bytes(dev, 1000)
        current = _allocated()
        torch.accelerator.reset_accumulated_memory_stats(0)
        stats = torch.accelerator.memory_stats(0)
        assert stats["allocation.all.allocated"] == 0 and stats["allocation.all.freed"] == 0
        assert _allocated() == current >= x.numel()


def _in_context(dev: Device) -> torch.Tensor:
    with torch.accelerator.device_index(1):
        return torch.empty(LARGE, dtype=torch.uint8, device=dev.type)


def _on_stream(dev: Device) -> torch.Tensor:
    dev.require("streams")
    with dev.stream(1):
        return torch.empty(LARGE, dtype=torch.uint8, device=dev.type)


@check("memory/reset_accumulated:only", "MEM-014", needs=("memory_stats",))
def resetting_the_history_changes_nothing_else(dev: Device) -> None:
    """reset_accumulated_memory_stats leaves current values, peaks and every other device."""
    with _on_first_device(dev):
        live = [_bytes(dev, 1000, index) for index in range(dev.count)]
        index = dev.count - 1
        before = [_statistics(i) for i in range(dev.count)]
        torch.accelerator.reset_accumulated_memory_stats(index)
        after = [_statistics(i) for i in range(dev.count)]
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
    with _on_first_device(dev):
        for size in (1000, MIB, LARGE):
            _bytes(dev, size)
        live = _bytes(dev, 1000)
        before = _statistics(0)
        torch.accelerator.reset_peak_memory_stats(0)
        after = _statistics(0)
        del live
        for name, value in after.items():
            kind, _, metric = name.rpartition(".")
            expected = f"{kind}.current" if metric == "peak" else name
            assert value == before[expected], name


#: Ways to make a large block on device 1.
_ON_DEVICE_1: dict[str, Callable[[Device], torch.Tensor]] = {
    "by_argument": lambda dev: _bytes(dev, LARGE, index=1),
    "by_context": _in_context,
    "by_stream": _on_stream,
    "to": lambda dev: torch.ones(LARGE, dtype=torch.uint8).to(dev.device(1)),
    "like": lambda dev: torch.empty_like(
        torch.ones(LARGE, dtype=torch.uint8), device=dev.device(1)
    ),
    "resize": lambda dev: _bytes(dev, 1, index=1).resize_(LARGE),
}


@check("memory/right_device", "MEM-015", cases=_ON_DEVICE_1, needs=("multi_device", "memory_stats"))
def memory_is_booked_on_the_device_it_is_on(dev: Device, case: str) -> None:
    """A block on device 1 is booked on device 1, and not on device 0."""
    with _on_first_device(dev):
        _bytes(dev, 1, index=1)
        before = _allocated(0), _allocated(1)
        x = _ON_DEVICE_1[case](dev)
        assert x.device == dev.device(1)
        assert _allocated(0) == before[0], "booked on device 0"
        assert _allocated(1) - before[1] >= LARGE, "not booked on device 1"


@check("memory/right_device:memory_info", "MEM-015", needs=("multi_device", "memory_stats"))
def memory_is_taken_from_the_device_it_is_on(dev: Device) -> None:
    """A block on device 1 takes free memory of device 1, and not of device 0."""
    dev.require("memory_info")
    with _on_first_device(dev):
        _bytes(dev, 1, index=1)
        free = _free(0), _free(1)
        x = _bytes(dev, LARGE, index=1)
        assert free[0] == _free(0), "the memory was taken from device 0"
        assert _falls(dev, free[1], index=1), f"{x.numel()} bytes were not taken from device 1"


@check("memory/right_device:peak", "MEM-015", needs=("multi_device", "memory_stats"))
def the_peak_counts_the_memory_of_its_device(dev: Device) -> None:
    """A block on device 1 does not raise the peak of device 0."""
    with _on_first_device(dev):
        torch.accelerator.reset_peak_memory_stats(0)
        before = _allocated()
        x = _bytes(dev, LARGE, index=1)
        assert _peak() == before, f"it counts {x.numel()} bytes of device 1"


def _falls(dev: Device, free: int, index: int = 0) -> bool:
    """Whether free memory falls below `free` when much is allocated.

    A cache that cannot be emptied may serve some of it: what it gives is held until it has no more.
    """
    held: list[torch.Tensor] = []
    while free - _free(index) < LARGE and len(held) < CACHED:
        held.append(_bytes(dev, LARGE, index=index))
    return free - _free(index) >= LARGE


@check("memory/info:bounds", "MEM-016", needs=("memory_info",))
def free_memory_is_no_more_than_the_total(dev: Device) -> None:
    """get_memory_info gives, for every device, free bytes that are no more than the total."""
    with _on_first_device(dev):
        for index in range(dev.count):
            free, total = torch.accelerator.get_memory_info(index)
            assert 0 <= free <= total and total > 0


@check("memory/info:parity", "MEM-016", needs=("memory_info",))
def both_modules_report_the_same_total(dev: Device) -> None:
    """torch.<type> and torch.accelerator report the same total."""
    with _on_first_device(dev):
        assert dev.module.mem_get_info(0)[1] == torch.accelerator.get_memory_info(0)[1]


@check("memory/info:falls", "MEM-016", needs=("memory_info",))
def free_memory_falls_with_use(dev: Device) -> None:
    """get_memory_info gives less free memory when much is allocated."""
    with _on_first_device(dev):
        assert _falls(dev, _free()), f"{LARGE} bytes were taken from nowhere"


@check("memory/info:total_is_constant", "MEM-016", needs=("memory_info",))
def the_total_does_not_change_with_use(dev: Device) -> None:
    """get_memory_info gives the same total when much is allocated."""
    with _on_first_device(dev):
        total = torch.accelerator.get_memory_info(0)[1]
        x = _bytes(dev, LARGE)
        assert torch.accelerator.get_memory_info(0)[1] == total, f"with {x.numel()} bytes"


# ---- the cache -------------------------------------------------------------------------------


#: Bytes of the parts of a block, and the orders in which they can be freed.
_PART, _ORDERS = 8 * MIB, tuple(permutations(range(3)))


@check("memory/split:contents", "MEM-003", needs=("accelerator",))
def parts_of_a_freed_block_do_not_overlap(dev: Device) -> None:
    """Blocks of many sizes that take the place of a large one keep what is written to them."""
    with _on_first_device(dev):
        for size in (3 * _PART, MIB, 300_000):
            _bytes(dev, size)
            _keep_their_contents(dev, [_bytes(dev, size // k) for k in (2, 5, 9, 11, 30, 700)])


@check("memory/split:merged", "MEM-018", needs=("memory_stats", "empty_cache"))
def parts_of_a_block_become_a_whole_again(dev: Device) -> None:
    """Parts of a block that were freed in any order serve a request for the whole again."""
    with _on_first_device(dev):
        for order in _ORDERS:
            torch.accelerator.empty_cache()
            _bytes(dev, 3 * _PART)
            parts: list[torch.Tensor | None] = [_bytes(dev, _PART) for _ in range(3)]
            for k in order:
                parts[k] = None
            reserved = _reserved()
            whole = _bytes(dev, 3 * _PART)
            assert _reserved() == reserved, f"{whole.numel()} bytes, freed in the order {order}"
            del whole


_CACHE = ("empty_cache", "memory_stats")


def _cache_and_empty(dev: Device) -> None:
    """Let a large block go to the cache, and empty it."""
    x = _bytes(dev, LARGE)
    assert _reserved() >= LARGE
    del x
    torch.accelerator.empty_cache()


@check("memory/empty_cache:reserved_falls", "MEM-017", needs=_CACHE)
def empty_cache_returns_a_large_block(dev: Device) -> None:
    """After empty_cache a large block that was freed is no longer reserved."""
    with _on_first_device(dev):
        _cache_and_empty(dev)
        assert _reserved() < LARGE


@check("memory/empty_cache:many_sizes", "MEM-017", needs=_CACHE)
def empty_cache_returns_blocks_of_many_sizes(dev: Device) -> None:
    """empty_cache returns blocks of many sizes, whatever the order in which they were freed."""
    with _on_first_device(dev):
        reserved = _reserved()
        blocks = [_bytes(dev, 1 + k * k * 997) for k in range(64)]
        del blocks[::2]
        del blocks
        torch.accelerator.empty_cache()
        assert _reserved() == reserved, f"{_reserved() - reserved} bytes stay reserved"


@check("memory/empty_cache:every_device", "MEM-017", needs=_CACHE)
def empty_cache_returns_memory_of_every_device(dev: Device) -> None:
    """empty_cache also empties the cache of a device that is not current."""
    dev.require("multi_device")
    with _on_first_device(dev):
        reserved = _reserved(1)
        _bytes(dev, LARGE, index=1)
        torch.accelerator.empty_cache()
        assert _reserved(1) <= reserved, "the cache of a device that is not current stayed"


@check("memory/empty_cache:free_rises", "MEM-017", needs=_CACHE)
def empty_cache_returns_memory_to_the_driver(dev: Device) -> None:
    """After empty_cache the device has as much free memory as before."""
    dev.require("memory_info")
    with _on_first_device(dev):
        start = _free()
        _cache_and_empty(dev)
        assert _free() >= start, f"{start - _free()} bytes never came back to the driver"


@check("memory/empty_cache:live_blocks_stay", "MEM-017", needs=_CACHE)
def empty_cache_leaves_live_blocks(dev: Device) -> None:
    """empty_cache does not change the contents of a live block."""
    with _on_first_device(dev):
        kept = torch.arange(1000.0, device=dev.device())
        _cache_and_empty(dev)
        dev.assert_equal(kept, torch.arange(1000.0))


@check("memory/empty_cache:idempotent", "MEM-017", needs=_CACHE)
def empty_cache_can_be_called_again(dev: Device) -> None:
    """Another empty_cache, also that of the device module, changes nothing."""
    with _on_first_device(dev):
        kept = torch.arange(1000.0, device=dev.device())
        _cache_and_empty(dev)
        reserved = _reserved()
        torch.accelerator.empty_cache()
        dev.module.empty_cache()
        assert _reserved() == reserved
        dev.assert_equal(kept, torch.arange(1000.0))


@check("memory/empty_cache:pending_work", "MEM-017", needs=_CACHE)
def empty_cache_leaves_memory_of_queued_work(dev: Device) -> None:
    """empty_cache does not unmap a freed block that queued work has yet to read."""
    dev.require("delay")
    with _on_first_device(dev):
        x = _bytes(dev, LARGE)
        dev.delay(LATE_MS)
        x.fill_(7)
        y = x.to(torch.int16)
        del x
        torch.accelerator.empty_cache()
        assert y[0].item() == 7 and y[-1].item() == 7, "memory was unmapped under queued work"


@check("memory/cache:same_size", "MEM-018", needs=("memory_stats",))
def a_freed_block_is_used_again(dev: Device) -> None:
    """Freed memory serves the next request of the same size."""
    with _on_first_device(dev):
        x = _bytes(dev, LARGE)
        reserved = _reserved()
        for _ in range(20):
            del x
            x = _bytes(dev, LARGE)
        assert _reserved() == reserved, f"for {x.numel()} bytes at a time"


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
    with _on_first_device(dev):
        blocks = [_bytes(dev, size) for size in freed]
        reserved = _reserved()
        del blocks
        served = [_bytes(dev, size) for size in requested]
        sizes = [x.numel() for x in served]
        assert _reserved() == reserved, f"{sizes} bytes in the place of {freed}"


@check("memory/cache:sum_of_small", "MEM-018", needs=("memory_stats",))
def small_freed_blocks_are_used_again(dev: Device) -> None:
    """Small blocks that were freed between live ones serve requests of their size."""
    with _on_first_device(dev):
        small = [_bytes(dev, 2000) for _ in range(200)]
        reserved = _reserved()
        for k in range(0, 200, 2):
            small[k] = _bytes(dev, 1)
        for k in range(0, 200, 2):
            small[k] = _bytes(dev, 2000)
        assert _reserved() <= reserved + 8 * MIB, "small blocks are not reused"


@check("memory/cache:thousand_times", "MEM-018", needs=("memory_stats",))
def steady_use_takes_a_steady_amount(dev: Device) -> None:
    """A computation that is repeated neither allocates nor reserves more than the first time."""

    def step() -> None:
        a = torch.ones(100, 50, device=dev.device())
        ((a * 2).t() + 1).contiguous()

    with _on_first_device(dev):
        step()
        before = _allocated(), _reserved()
        for _ in range(1000):
            step()
        dev.synchronize()
        assert (_allocated(), _reserved()) == before, "a thousand equal steps leak memory"


#: What fails, with a vector of a thousand elements that requires a gradient.
_FAILURES: dict[str, Callable[[torch.Tensor], object]] = {
    "operator": lambda x: (x * 2) + torch.ones(999, device=x.device),
    "backward": lambda x: (x * 2).backward(),  # not a scalar
    "allocation": lambda x: x.new_empty(1 << 46, dtype=torch.uint8),
}


@check("memory/after_exception", "MEM-019", cases=_FAILURES, needs=("memory_stats",))
def exceptions_leak_no_memory(dev: Device, case: str) -> None:
    """Memory held by a failed operation is returned once its exception is gone."""

    def fail() -> None:
        _FAILURES[case](torch.ones(1000, device=dev.device(), requires_grad=True))

    with _all_returned(dev):
        for _ in range(5):
            raised(fail)


@check("memory/after_half", "MEM-019", needs=("memory_limit", "memory_info", "memory_stats"))
def operations_that_fail_half_way_leak_no_memory(dev: Device) -> None:
    """An operator that has memory for its first result only returns that, too."""
    with _on_first_device(dev):
        x = torch.empty(LARGE // 8, device=dev.device()).zero_()
        # Room for the sorted values, and not for their indices, which are twice as large.
        ballast = _bytes(dev, _free() - LARGE)
        before = _allocated()
        for _ in range(3):
            assert isinstance(raised(x.sort), torch.OutOfMemoryError)
        assert _allocated() == before, f"{_allocated() - before} bytes stay allocated"
        del ballast
        assert x.clone()[-1].item() == 0


# ---- running out -----------------------------------------------------------------------------


def _too_much(dev: Device) -> torch.Tensor:
    return _bytes(dev, torch.accelerator.get_memory_info(0)[1] + MIB)


_LIMITED = ("memory_limit", "memory_info")


def _runs_out(dev: Device) -> None:
    error = raised(lambda: _too_much(dev))
    assert isinstance(error, torch.OutOfMemoryError), f"{type(error).__name__}: {error}"


def _runs_out_again(dev: Device) -> None:
    for _ in range(5):
        _runs_out(dev)


def _adds(dev: Device) -> None:
    # Not in memory that was cached: the driver has to be asked.
    result = torch.ones(8 * MIB, device=dev.device()) + 1
    dev.assert_equal(result, torch.full((8 * MIB,), 2.0))


@check("memory/oom:type", "MEM-020", needs=_LIMITED)
def running_out_raises_out_of_memory(dev: Device) -> None:
    """More than the device has raises torch.OutOfMemoryError."""
    with _on_first_device(dev):
        _runs_out(dev)


@check("memory/oom:in_thread", "MEM-020", needs=_LIMITED)
def running_out_raises_out_of_memory_in_a_thread(dev: Device) -> None:
    """More than the device has raises torch.OutOfMemoryError in another thread as well."""
    with _on_first_device(dev):
        _runs_out(dev)
        in_thread(lambda: _runs_out(dev))


#: What is done after memory has run out.
_AFTERWARDS: dict[str, Callable[[Device], None]] = {
    "usable_after": _adds,
    "repeatedly": _runs_out_again,
}


@check("memory/oom", "MEM-048", cases=_AFTERWARDS, needs=_LIMITED)
def running_out_leaves_the_device_usable(dev: Device, case: str) -> None:
    """After torch.OutOfMemoryError the device computes, and raises it again when it is due."""
    with _on_first_device(dev):
        _runs_out(dev)
        _AFTERWARDS[case](dev)


@check("memory/oom:runtime_error", "MEM-020", needs=_LIMITED)
def running_out_can_be_caught_as_a_runtime_error(dev: Device) -> None:
    """More than the device has raises a RuntimeError."""
    with _on_first_device(dev):
        error = raised(lambda: _too_much(dev))
        assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


@check("memory/oom:nothing_leaked", "MEM-019", needs=_LIMITED)
def running_out_leaks_no_memory(dev: Device) -> None:
    """An out-of-memory error leaves no more memory allocated than before."""
    dev.require("memory_stats")
    with _all_returned(dev):
        _runs_out(dev)


#: What the message says when so many bytes were asked for.
_SAID: dict[str, Callable[[str, int], bool]] = {
    "out_of_memory": lambda message, asked: "out of memory" in message.lower(),
    "size": lambda message, asked: any(abs(s / asked - 1) < 0.12 for s in _sizes(message)),
    "device": lambda message, asked: "0" in words(message),
}


@check("memory/oom_message", "MEM-021", cases=_SAID, needs=_LIMITED)
def out_of_memory_says_what_happened(dev: Device, case: str) -> None:
    """The message says out of memory, how much was asked for, and of which device."""
    with _on_first_device(dev):
        # Not to be taken for any other number of the message.
        asked = 3 * torch.accelerator.get_memory_info(0)[1]
        message = str(raised(lambda: _bytes(dev, asked)))
    assert _SAID[case](message, asked), message


_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}


def _sizes(message: str) -> list[float]:
    """The numbers of bytes that a text names; units of 1000 and of 1024 are taken for the same."""
    found = re.findall(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])i?b\b|bytes|b\b)?", message, re.IGNORECASE)
    return [float(number) * 2 ** _UNITS.get(unit.lower(), 0) for number, unit in found]


@check("memory/oom_counted", "MEM-022", needs=("memory_limit", "memory_info", "memory_stats"))
def out_of_memory_is_counted(dev: Device) -> None:
    """Each out-of-memory error raises num_ooms by one."""
    with _on_first_device(dev):
        before = torch.accelerator.memory_stats(0)["num_ooms"]
        for count in (1, 2):
            raised(lambda: _too_much(dev))
            assert torch.accelerator.memory_stats(0)["num_ooms"] == before + count


def _exhaust(dev: Device, index: int) -> torch.OutOfMemoryError:
    """The error of asking a device for more than it has, while device 0 is current."""
    total = torch.accelerator.get_memory_info(index)[1]
    error = raised(lambda: _bytes(dev, total + MIB, index))
    assert isinstance(error, torch.OutOfMemoryError), f"{type(error).__name__}: {error}"
    return error


@check("memory/oom_elsewhere:message", "MEM-021", needs=(*_LIMITED, "multi_device"))
def out_of_memory_names_the_device_that_ran_out(dev: Device) -> None:
    """Running out on the last device while the first is current names the last device."""
    with _on_first_device(dev):
        message = str(_exhaust(dev, dev.count - 1))
    assert str(dev.count - 1) in words(message), f"device {dev.count - 1} is not named: {message}"


@check("memory/oom_elsewhere:counted", "MEM-022", needs=(*_LIMITED, "memory_stats", "multi_device"))
def out_of_memory_is_counted_where_it_happened(dev: Device) -> None:
    """Running out on the last device raises num_ooms of that device alone."""
    with _on_first_device(dev):
        before = [torch.accelerator.memory_stats(i).get("num_ooms", 0) for i in range(dev.count)]
        _exhaust(dev, dev.count - 1)
        after = [torch.accelerator.memory_stats(i).get("num_ooms", 0) for i in range(dev.count)]
    assert after == [*before[:-1], before[-1] + 1]


@check("memory/oom_restores", "MEM-019", needs=(*_LIMITED, "memory_stats", "empty_cache"))
def running_out_takes_no_free_memory(dev: Device) -> None:
    """After out-of-memory errors each device has as much free and reserved memory as before."""
    with _on_first_device(dev):
        for index in {0, dev.count - 1}:
            _bytes(dev, 1, index)
            _settle(dev)
            before = _free(index), _reserved(index)
            for _ in range(3):
                _exhaust(dev, index)
            _settle(dev)
            assert (_free(index), _reserved(index)) == before, f"(free, reserved) of {index}"


@check("memory/oom_restores:fill_up", "MEM-019", needs=(*_LIMITED, "memory_stats", "empty_cache"))
def memory_that_ran_out_comes_back(dev: Device) -> None:
    """A device that was filled with blocks until none was left has all its memory again."""
    with _on_first_device(dev):
        before = _free(), _reserved()
        size = max(before[0] // 24, LARGE) // MIB * MIB
        live: list[torch.Tensor] = []
        with suppress(torch.OutOfMemoryError):
            while len(live) < 100:
                live.append(_bytes(dev, size))
        assert 1 <= len(live) < 100 and _free() < size, f"{len(live)} blocks, {_free()} bytes free"
        live.clear()
        _settle(dev)
        assert (_free(), _reserved()) == before, "(free, reserved)"


#: Shares of a device's memory: what the allocator may take, what it refuses and what it gives then.
_SHARE, _MORE, _LESS = 0.5, 0.7, 0.3


@contextmanager
def _limited(dev: Device, index: int) -> Iterator[int]:
    """The allocator of a device may take a half of its memory, whose total is yielded."""
    limit = dev.module.set_per_process_memory_fraction
    with _on_first_device(dev):
        total = torch.accelerator.get_memory_info(index)[1]
        if _free(index) < total * 0.8 or _reserved(index) > total * 0.05:
            dev.unsupported("needs a device whose memory is mostly free")
        limit(_SHARE, index)
        try:
            yield total
        finally:
            limit(1.0, index)


@check("memory/fraction", "MEM-050", cases=("first", "last"), needs=(*_LIMITED, "memory_stats"))
def a_limited_device_gives_its_share_only(dev: Device, case: str) -> None:
    """With a limit of a half, seven tenths raise torch.OutOfMemoryError and three do not."""
    index = {"first": 0, "last": dev.count - 1}[case]
    with _limited(dev, index) as total:
        error = raised(lambda: _bytes(dev, int(total * _MORE), index))
        assert isinstance(error, torch.OutOfMemoryError), f"{type(error).__name__}: {error}"
        _bytes(dev, int(total * _LESS), index)
        _bytes(dev, int(total * (_LESS + 0.1)), index)  # what is cached does not count against it
    _bytes(dev, int(total * _MORE), index)  # without the limit


@check("memory/fraction:other_device", "MEM-050", needs=(*_LIMITED, "memory_stats", "multi_device"))
def a_limit_concerns_one_device(dev: Device) -> None:
    """The limit of one device does not limit another one."""
    for limited, other in ((0, dev.count - 1), (dev.count - 1, 0)):
        with _limited(dev, limited) as total:
            assert _bytes(dev, int(total * _MORE), other).numel() > total * _SHARE


def _more_than_half_fits(dev: Device, free: int) -> None:
    """Seven tenths of the memory that was free can be allocated and written to."""
    y = _bytes(dev, free * 7 // 10)
    y[-1].fill_(3)
    assert y[-1].item() == 3


@check("memory/oom_flush:other_size", "MEM-023", needs=(*_LIMITED, "memory_stats"))
def cached_memory_is_flushed_before_giving_up(dev: Device) -> None:
    """A request that fits once the cache is emptied succeeds by itself."""
    with _on_first_device(dev):
        free = _free()
        _bytes(dev, free * 6 // 10)
        _more_than_half_fits(dev, free)  # neither in the cached block nor beside it


@check("memory/oom_flush:other_stream", "MEM-023", needs=(*_LIMITED, "memory_stats"))
def memory_cached_for_a_stream_is_flushed_before_giving_up(dev: Device) -> None:
    """A request that fits once the cache of another stream is emptied succeeds by itself."""
    dev.require("streams")
    with _on_first_device(dev):
        free = _free()
        with dev.stream(0):
            x = _bytes(dev, free * 6 // 10)
        del x
        _more_than_half_fits(dev, free)


@check(
    "memory/oom_waits",
    "MEM-023",
    needs=("memory_limit", "memory_info", "record_stream", "streams", "delay"),
)
def memory_in_use_is_waited_for_before_giving_up(dev: Device) -> None:
    """A request that fits once another stream is done with freed memory succeeds by itself."""
    with _on_first_device(dev):
        free = _free()
        x = _bytes(dev, free * 6 // 10)
        with dev.stream(0) as other:
            dev.delay(LATE_MS)
            x[:1].fill_(1)
        x.record_stream(other)
        del x
        y = _bytes(dev, free * 7 // 10)
        y[-1].fill_(3)
        assert y[-1].item() == 3


@check(
    "memory/oom_retry:driver_refuses_once",
    "MEM-023",
    needs=("fault_injection", "memory_stats", "empty_cache"),
)
def allocation_is_tried_again_after_a_flush(dev: Device) -> None:
    """When the driver refuses once, the allocator flushes, tries again, counts it and succeeds."""
    with _on_first_device(dev):
        _bytes(dev, MIB)  # goes to the cache, so that there is something to flush
        before = torch.accelerator.memory_stats(0)
        dev.fault.out_of_memory_at(1)
        try:
            x = _bytes(dev, LARGE).fill_(8)
        finally:
            dev.fault.reset()
        assert x[-1].item() == 8
        after = torch.accelerator.memory_stats(0)
        assert after["num_alloc_retries"] == before["num_alloc_retries"] + 1
        assert after["num_ooms"] == before["num_ooms"]


@check(
    "memory/oom_retry:last_device",
    "MEM-023",
    needs=("fault_injection", "memory_stats", "empty_cache", "multi_device"),
)
def allocation_on_another_device_is_tried_again(dev: Device) -> None:
    """When the driver refuses once for the last device, its allocator alone tries again."""
    index = dev.count - 1

    def retries() -> list[int]:
        return [_statistics(i).get("num_alloc_retries", 0) for i in range(dev.count)]

    with _on_first_device(dev):
        _bytes(dev, MIB, index)
        before = retries()
        dev.fault.out_of_memory_at(1)
        try:
            x = _bytes(dev, LARGE, index).fill_(8)
        finally:
            dev.fault.reset()
        assert x[-1].item() == 8
        assert retries() == [*before[:-1], before[-1] + 1]


_IMPOSSIBLE: dict[str, Callable[[torch.device], Any]] = {
    "empty": lambda d: torch.empty(1 << 46, dtype=torch.uint8, device=d),
    "zeros": lambda d: torch.zeros(1 << 44, device=d),
    "resize": lambda d: torch.empty(1, dtype=torch.uint8, device=d).resize_(1 << 46),
    "overflow": lambda d: torch.empty(1 << 62, 1 << 62, device=d),
    "just_below_overflow": lambda d: torch.empty((1 << 61) - 1, device=d),
}


def _is_impossible(dev: Device, make: Callable[[torch.device], Any]) -> None:
    error = raised(lambda: make(dev.device()))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    dev.assert_equal(torch.ones(2, device=dev.device()), torch.ones(2))


@check("memory/impossible", "MEM-024", cases=_IMPOSSIBLE, needs=("accelerator",))
def impossible_sizes_are_refused(dev: Device, case: str) -> None:
    """64 TiB and sizes that overflow raise RuntimeError at once; nothing is promised or wrapped."""
    _is_impossible(dev, _IMPOSSIBLE[case])


@check("memory/impossible:storage", "MEM-024", needs=("accelerator",))
def an_impossible_storage_is_refused(dev: Device) -> None:
    """A storage of 64 TiB raises RuntimeError at once."""
    dev.require("storage_allocation")
    _is_impossible(dev, lambda d: torch.UntypedStorage(1 << 46, device=d))


# ---- stream-ordered reuse --------------------------------------------------------------------


def _ones_and_zeros_late(dev: Device) -> tuple[torch.Tensor, torch.Tensor]:
    """A block of ones and one of zeros, whose stream is busy for a while."""
    y = torch.zeros(4096, device=dev.device())
    x = torch.ones(4096, device=dev.device())
    dev.synchronize()
    dev.delay(LATE_MS)
    return x, y


def _was_read_in_time(dev: Device, y: torch.Tensor) -> None:
    """Blocks that are made and written now do not change what `y` was to be."""
    again = [torch.empty(4096, device=dev.device()).fill_(2) for _ in range(4)]
    dev.assert_equal(y, torch.ones(4096))
    for z in again:
        dev.assert_equal(z, torch.full((4096,), 2.0))


#: Ways to drop the one block of a list.
_DROPS: dict[str, Callable[[list[torch.Tensor]], None]] = {
    "free_then_fill": lambda live: live.clear(),
    "freed_by_thread": lambda live: in_thread(live.clear),
}


@check("memory/reuse", "MEM-030", cases=_DROPS, needs=("delay",))
def memory_is_reused_in_stream_order(dev: Device, case: str) -> None:
    """A block freed while work on it is queued is not overwritten before that work ran."""
    x, y = _ones_and_zeros_late(dev)
    y.copy_(x)
    live = [x]
    del x
    _DROPS[case](live)
    _was_read_in_time(dev, y)


@check("memory/reuse:temporary_chain", "MEM-030", needs=("delay",))
def temporaries_are_reused_in_stream_order(dev: Device) -> None:
    """Blocks freed one after the other while work is queued are not overwritten too early."""
    x, y = _ones_and_zeros_late(dev)
    for _ in range(10):
        x = x.clone()
    y.copy_(x)
    del x
    _was_read_in_time(dev, y)


_Record = Callable[[torch.Tensor, torch.Stream], None]


def _skip(x: torch.Tensor, stream: torch.Stream) -> None:
    """The block is not recorded."""


def _record(x: torch.Tensor, stream: torch.Stream) -> None:
    x.record_stream(stream)


def _record_twice(x: torch.Tensor, stream: torch.Stream) -> None:
    x.record_stream(stream)
    x.record_stream(stream)


def _record_view(x: torch.Tensor, stream: torch.Stream) -> None:
    x[x.numel() // 2 :].record_stream(stream)


#: name -> (elements, which streams copy the block late, how it is recorded before and after that).
_RECORDED: dict[str, tuple[int, tuple[bool, ...], _Record, _Record]] = {
    "small": (2048, (True,), _skip, _record),
    "large": (4 * MIB, (True,), _skip, _record),
    "two_streams": (2048, (True, False), _skip, _record),
    "two_streams_last_late": (2048, (False, True), _skip, _record),
    "twice_the_same": (2048, (True,), _skip, _record_twice),
    # What counts is the work queued when the block is freed.
    "before_use": (2048, (True,), _record, _skip),
    "view": (2048, (True,), _skip, _record_view),
}


@check(
    "memory/record_stream", "MEM-031", cases=_RECORDED, needs=("record_stream", "streams", "delay")
)
def record_stream_defers_reuse(dev: Device, case: str) -> None:
    """A block recorded on another stream is not reused before that stream is done."""
    count, late, before, after = _RECORDED[case]
    x = torch.ones(count, device=dev.device())
    users = [dev.stream() for _ in late]
    ys = [torch.zeros(count, device=dev.device()) for _ in users]
    dev.synchronize()
    for stream, y, is_late in zip(users, ys, late, strict=True):
        before(x, stream)
        with stream:
            if is_late:
                dev.delay(LATE_MS)
            y.copy_(x)
        if not is_late:
            stream.synchronize()
        after(x, stream)
    del x
    again = [torch.empty(count, device=dev.device()).fill_(2) for _ in range(4)]
    for y in ys:
        dev.assert_equal(y, torch.ones(count))
    assert all(z[0].item() == 2 for z in again)


@check(
    "memory/record_stream:last_device",
    "MEM-031",
    needs=("record_stream", "streams", "delay", "multi_device"),
)
def record_stream_defers_reuse_on_every_device(dev: Device) -> None:
    """A block of the last device, freed while the first is current, waits for its recorded user."""
    where = dev.device(dev.count - 1)
    x, y = torch.ones(2048, device=where), torch.zeros(2048, device=where)
    dev.synchronize()
    with dev.stream(where.index) as user:
        dev.delay(LATE_MS)
        y.copy_(x)
    with torch.accelerator.device_index(0):
        x.record_stream(user)
        del x
    again = [torch.empty(2048, device=where).fill_(2) for _ in range(4)]
    dev.assert_equal(y, torch.ones(2048))
    assert all(z[0].item() == 2 for z in again)


@check("memory/record_stream_neighbour", "MEM-031", needs=("record_stream", "streams", "delay"))
def recorded_blocks_stay_apart(dev: Device) -> None:
    """A block that another stream still uses is not part of a larger one that is handed out."""
    y = torch.zeros(2048, device=dev.device())
    live = [torch.ones(2048, device=dev.device()) for _ in range(8)]
    dev.synchronize()
    with dev.stream() as other:
        dev.delay(LATE_MS)
        y.copy_(live[3])
    live[3].record_stream(other)
    del live[3]
    del live[:]  # its neighbours, free at once
    again = [torch.empty(2048 * k, device=dev.device()).fill_(2) for k in (8, 6, 4, 2, 1)]
    dev.assert_equal(y, torch.ones(2048))
    assert all(z[-1].item() == 2 for z in again)


def _lose_when_freed(dev: Device, live: list[torch.Tensor], other: torch.Stream) -> None:
    dev.fault.device_lost(0)
    try:
        del live[4]
    finally:
        dev.fault.reset()


def _lose_while_in_use(dev: Device, live: list[torch.Tensor], other: torch.Stream) -> None:
    with other:
        dev.delay(LATE_MS)
    del live[4]
    dev.fault.device_lost(0)
    try:
        with suppress(RuntimeError):  # a lost device may refuse
            _bytes(dev, 512)
    finally:
        dev.fault.reset()


#: How the fifth of some blocks is freed, and the device is lost meanwhile.
_LOSSES: dict[str, Callable[[Device, list[torch.Tensor], torch.Stream], None]] = {
    "recording": _lose_when_freed,
    "waiting": _lose_while_in_use,
}


@check(
    "memory/record_stream_fails",
    "MEM-036",
    cases=_LOSSES,
    needs=("addresses", "fault_injection", "record_stream", "streams", "delay"),
)
def blocks_in_unknown_use_are_not_reused(dev: Device, case: str) -> None:
    """A block whose use by another stream cannot be tracked is handed out to nobody."""
    with _on_first_device(dev):
        before = _allocated() if dev.has("memory_stats") else 0
        other = dev.stream()
        live = [_bytes(dev, 512) for _ in range(9)]
        address = live[4].data_ptr()
        live[4].record_stream(other)
        _LOSSES[case](dev, live, other)
        del live[:]  # its neighbours, free at once
        again = [_bytes(dev, size) for size in (512, 1024, 4096) for _ in range(20)]
        for x in again:
            end = x.data_ptr() + x.numel()
            assert not x.data_ptr() <= address < end, "it was handed out while a stream may use it"
        if dev.has("memory_stats"):
            del x, again
            assert _allocated() == before


@check(
    "memory/record_stream_recovers",
    "MEM-032",
    needs=("fault_injection", "record_stream", "streams", "memory_stats", "empty_cache"),
)
def blocks_in_unknown_use_return_once_the_device_is_back(dev: Device) -> None:
    """A block whose use could not be tracked returns to the driver when the device works again."""
    with _on_first_device(dev):
        before = _reserved()
        block = _bytes(dev, LARGE)
        block.record_stream(dev.stream())
        dev.fault.device_lost(0)
        try:
            del block
        finally:
            dev.fault.reset()
        _settle(dev)
        assert _reserved() <= before, f"{_reserved() - before} bytes are lost for good"


@check(
    "memory/record_stream_returns", "MEM-032", needs=("record_stream", "streams", "memory_stats")
)
def recorded_blocks_return_at_last(dev: Device) -> None:
    """Blocks that were recorded on another stream come back once that stream is done."""
    _recorded_blocks_return(dev, 0)


@check(
    "memory/record_stream_returns_elsewhere",
    "MEM-032",
    needs=("record_stream", "streams", "memory_stats", "multi_device"),
)
def recorded_blocks_of_another_device_return(dev: Device) -> None:
    """Blocks of device 1 come back as well when they are freed while device 0 is current."""
    _recorded_blocks_return(dev, 1)


def _recorded_blocks_return(dev: Device, index: int) -> None:
    with _on_first_device(dev):
        other = dev.stream(index)
        before = _allocated(index)
        live = [_bytes(dev, MIB, index) for _ in range(20)]
        with other:
            for x in live:
                x.fill_(1)
                x.record_stream(other)
        del live, x
        dev.synchronize()
        assert _allocated(index) == before
        reserved = _reserved(index)
        live = [_bytes(dev, MIB, index) for _ in range(10)]
        assert _reserved(index) <= reserved + 2 * MIB, (
            f"{len(live)} blocks were not served from cache"
        )


#: name -> (the other stream, whether the block is freed while its own stream is current).
_POOLS: dict[str, tuple[Callable[[Device], torch.Stream], bool]] = {
    "other_stream": (lambda dev: dev.stream(), True),
    "default_stream": (lambda dev: dev.current_stream(), True),
    "freed_outside": (lambda dev: dev.current_stream(), False),
}


@check("memory/pools", "MEM-033", cases=_POOLS, needs=("streams", "delay"))
def memory_freed_on_a_stream_stays_with_it(dev: Device, case: str) -> None:
    """Memory freed while its stream is busy is not handed to work of another stream."""
    make_other, freed_inside = _POOLS[case]
    count = 3 * MIB  # large enough for a segment of its own
    with _on_first_device(dev):  # no other free block is there to be handed out
        owner, other = dev.stream(), make_other(dev)
        y = torch.zeros(count, device=dev.device())
        dev.synchronize()
        with owner:
            live = [torch.ones(count, device=dev.device())]
            dev.delay(LATE_MS)
            y.copy_(live[0])
            if freed_inside:
                live.clear()
        live.clear()  # if not before, then while another stream is current
        with other:
            again = [torch.empty(count, device=dev.device()).fill_(2) for _ in range(4)]
        dev.synchronize()
        assert y.min().item() == y.max().item() == 1, "it was overwritten before it was read"
        assert all(z[0].item() == 2 for z in again)
        del y, again


def _empty_while_own_stream_is_busy(dev: Device, x: list[torch.Tensor], y: torch.Tensor) -> None:
    dev.delay(LATE_MS)
    y.copy_(x[0])
    x.clear()


def _empty_while_a_user_is_busy(dev: Device, x: list[torch.Tensor], y: torch.Tensor) -> None:
    dev.require("record_stream")
    with dev.stream(y.device.index) as user:
        dev.delay(LATE_MS)
        y.copy_(x[0])
    x[0].record_stream(user)
    x.clear()


#: How the one block of a list is freed while it is yet to be copied.
_FREED_EARLY: dict[str, Callable[[Device, list[torch.Tensor], torch.Tensor], None]] = {
    "own_stream": _empty_while_own_stream_is_busy,
    "recorded_stream": _empty_while_a_user_is_busy,
}


def _emptied_memory_is_not_reused_early(dev: Device, case: str, index: int) -> None:
    count = 3 * MIB  # elements of a segment of their own
    where = dev.device(index)
    with _on_first_device(dev):
        owner, other = dev.stream(index), dev.stream(index)
        y = torch.zeros(count, device=where)
        dev.synchronize()
        with owner:
            live = [torch.ones(count, device=where)]
            owner.synchronize()
            _FREED_EARLY[case](dev, live, y)
        torch.accelerator.empty_cache()
        with other:
            again = [torch.empty(count, device=where).fill_(2) for _ in range(4)]
        dev.synchronize()
        assert bool((y.cpu() == 1).all()), "it was overwritten before it was read"
        assert all(z[-1].item() == 2 for z in again)
        del y, again


_EMPTIED = ("streams", "delay", "empty_cache")


@check("memory/empty_cache_reuse", "MEM-033", cases=_FREED_EARLY, needs=_EMPTIED)
def emptied_memory_waits_for_queued_work(dev: Device, case: str) -> None:
    """Memory with queued work is not handed to another stream by way of empty_cache."""
    _emptied_memory_is_not_reused_early(dev, case, 0)


@check(
    "memory/empty_cache_reuse_elsewhere",
    "MEM-033",
    cases=_FREED_EARLY,
    needs=(*_EMPTIED, "multi_device"),
)
def emptied_memory_of_another_device_waits(dev: Device, case: str) -> None:
    """The same for memory of the last device while the first one is current."""
    _emptied_memory_is_not_reused_early(dev, case, dev.count - 1)


@check("memory/pools:last_device", "MEM-033", needs=("streams", "delay", "multi_device"))
def memory_freed_on_a_stream_of_another_device_stays_with_it(dev: Device) -> None:
    """Memory freed while its stream of the last device is busy goes to no other stream there."""
    count, where = 3 * MIB, dev.device(dev.count - 1)
    with _on_first_device(dev):
        owner, other = dev.stream(where.index), dev.stream(where.index)
        y = torch.zeros(count, device=where)
        dev.synchronize()
        with owner:
            x = torch.ones(count, device=where)
            dev.delay(LATE_MS)
            y.copy_(x)
            del x
        with other:
            again = [torch.empty(count, device=where).fill_(2) for _ in range(4)]
        dev.synchronize()
        assert bool((y.cpu() == 1).all()), "it was overwritten before it was read"
        assert all(z[0].item() == 2 for z in again)
        del y, again


@check("memory/outlives_stream", "MEM-034", needs=("streams",))
def tensor_outlives_its_stream(dev: Device) -> None:
    """A tensor stays valid, and is returned when freed, after the stream it came from is gone."""
    with _on_first_device(dev):
        before = _allocated() if dev.has("memory_stats") else 0
        stream = dev.stream()
        with stream:
            x = torch.arange(100.0, device=dev.device())
        stream.synchronize()
        del stream
        dev.assert_equal(x, torch.arange(100.0))
        y = x.clone()
        del x
        dev.assert_equal(y, torch.arange(100.0))
        del y
        if dev.has("memory_stats"):
            assert _allocated() == before, "its memory was not returned"


# ---- host access -----------------------------------------------------------------------------

_TOUCHES: dict[str, Callable[[int], object]] = {
    "read": lambda address: ctypes.string_at(address, 1),
    "write": lambda address: ctypes.memset(address, 0, 1),
}


@check("memory/protected", "MEM-035", cases=_TOUCHES, needs=("memory_protected", "fork"))
def host_access_to_device_memory_faults(dev: Device, case: str) -> None:
    """A host that dereferences device memory dies by a signal instead of reading something."""
    x = torch.ones(64, device=dev.device())
    dev.synchronize()
    address = x.data_ptr()

    def touch() -> str:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _TOUCHES[case](address)
        return "survived"

    status, value = dev.fork(touch)
    assert value != "survived", "device memory is plain host memory"
    fatal = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT}
    assert status in fatal, f"exit status {status}: {value}"
    dev.assert_equal(x, torch.ones(64))


# ---- pinned host memory ----------------------------------------------------------------------

_PINNED: dict[str, Callable[[], torch.Tensor]] = {
    "pin_memory": lambda: torch.ones(100).pin_memory(),
    "view": lambda: torch.ones(300).pin_memory()[100:200],
    "large": lambda: torch.ones(MIB).pin_memory()[:100],
}


@check("memory/pinned", "MEM-040", cases=_PINNED, needs=("pinned_memory",))
def pinned_memory_says_so(dev: Device, case: str) -> None:
    """Pinned tensors are on the CPU, say is_pinned(), and hold their values."""
    _says_that_it_is_pinned(dev, _PINNED[case])


_MADE_PINNED: dict[str, Callable[[], torch.Tensor]] = {
    "empty": lambda: torch.empty(100, pin_memory=True).fill_(1),
    "like": lambda: torch.ones_like(torch.empty(100), pin_memory=True),
}


@check("memory/made_pinned", "MEM-040", cases=_MADE_PINNED, needs=("pinned_memory",))
def factories_make_pinned_memory(dev: Device, case: str) -> None:
    """Tensors made with pin_memory=True are pinned, too."""
    dev.require_factories_that_pin()
    _says_that_it_is_pinned(dev, _MADE_PINNED[case])


def _says_that_it_is_pinned(dev: Device, make: Callable[[], torch.Tensor]) -> None:
    torch.empty(1, device=dev.device())
    x = make()
    assert x.device.type == "cpu"
    assert x.is_pinned(), "is_pinned() is False after pinning"
    assert torch.equal(x, torch.ones(100))


@check("memory/pinned:storage", "MEM-040", needs=("pinned_memory",))
def pinned_memory_can_be_reshaped(dev: Device) -> None:
    """A pinned tensor can be transposed and reshaped, which copies it into ordinary memory."""
    torch.empty(1, device=dev.device())
    x = torch.ones(100).pin_memory().view(10, 10).t().reshape(100)
    assert x.device.type == "cpu"
    assert torch.equal(x, torch.ones(100))


_NOT_PINNED: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "ordinary": lambda d: torch.ones(4),
    "device": lambda d: torch.ones(4, device=d),
    "copy_of_pinned": lambda d: torch.ones(4).pin_memory().clone(),
}


@check("memory/not_pinned", "MEM-041", cases=_NOT_PINNED, needs=("pinned_memory",))
def ordinary_memory_is_not_pinned(dev: Device, case: str) -> None:
    """Only what was pinned is pinned."""
    torch.empty(1, device=dev.device())
    assert not _NOT_PINNED[case](dev.device()).is_pinned()


@check("memory/not_pinned:pin_device_tensor", "MEM-047", needs=("pinned_memory",))
def device_tensors_cannot_be_pinned(dev: Device) -> None:
    """Pinning a device tensor raises RuntimeError."""
    assert isinstance(raised(torch.ones(4, device=dev.device()).pin_memory), RuntimeError)


@check("memory/not_pinned:empty", "MEM-041", needs=("pinned_memory",))
def empty_tensors_can_be_pinned(dev: Device) -> None:
    """Pinning a tensor without elements works."""
    torch.empty(1, device=dev.device())
    assert torch.empty(0).pin_memory().numel() == 0


@check("memory/pinned_again", "MEM-046", needs=("pinned_memory",))
def pinning_twice_is_free(dev: Device) -> None:
    """Pinning a pinned tensor gives the tensor itself."""
    torch.empty(1, device=dev.device())
    x = torch.ones(4).pin_memory()
    assert x.pin_memory() is x


#: name -> whether the copy does not block.
_TO_DEVICE = {"to_device": False, "non_blocking_to_device": True}
_TO_HOST = {"to_host": False, "non_blocking_to_host": True}


@check("memory/pinned_copy", "MEM-042", cases=_TO_DEVICE, needs=("pinned_memory",))
def pinned_memory_is_copied_to_the_device(dev: Device, case: str) -> None:
    """Copies from pinned memory, blocking and not, move the right values."""
    values = torch.arange(1000.0)
    x = values.pin_memory().to(dev.device(), non_blocking=_TO_DEVICE[case])
    dev.assert_equal(x, values)


@check("memory/pinned_copy", "MEM-042", cases=_TO_HOST, needs=("pinned_memory",))
def pinned_memory_is_copied_from_the_device(dev: Device, case: str) -> None:
    """Copies to pinned memory, blocking and not, move the right values."""
    values, host = torch.arange(1000.0), torch.zeros(1000).pin_memory()
    host.copy_(values.to(dev.device()), non_blocking=_TO_HOST[case])
    dev.synchronize()
    assert torch.equal(host, values)


@check("memory/pinned_copy:slice", "MEM-042", needs=("pinned_memory",))
def a_slice_of_pinned_memory_is_written(dev: Device) -> None:
    """A copy to a part of pinned memory changes that part, and nothing else."""
    values, host = torch.arange(1000.0), torch.zeros(1000).pin_memory()
    host[10:20].copy_(values.to(dev.device())[10:20], non_blocking=True)
    dev.synchronize()
    assert torch.equal(host[10:20], values[10:20])
    assert host[:10].sum() == 0 and host[20:].sum() == 0


#: name -> (a copy of pinned memory from or to the device, how many elements of the device change).
_PINNED_COPIES: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], object], int]] = {
    "source": (lambda host, x: x.copy_(host, non_blocking=True), 4096),
    "destination": (lambda host, x: host.copy_(x, non_blocking=True), 0),
    "source_slice": (lambda host, x: x[:2048].copy_(host[2048:], non_blocking=True), 2048),
    "destination_slice": (lambda host, x: host[2048:].copy_(x[2048:], non_blocking=True), 0),
}
_REUSE = ("pinned_memory", "async_copy", "delay")


def _is_not_reused_early(dev: Device, copied: str) -> None:
    copy, changed = _PINNED_COPIES[copied]
    on_device = torch.full((4096,), 3.0, device=dev.device())
    dev.synchronize()

    def look() -> list[torch.Tensor]:
        host = torch.ones(4096).pin_memory()
        copy(host, on_device)
        del host
        again = [torch.empty(4096).pin_memory() for _ in range(4)]
        for block in again:
            block.fill_(7)  # by the host, at once
        return again

    again = while_held(dev, look)
    dev.synchronize()
    for block in again:
        assert torch.equal(block, torch.full((4096,), 7.0)), "a late copy wrote into a new block"
    expected = torch.full((4096,), 3.0)
    expected[:changed] = 1
    dev.assert_equal(on_device, expected)


@check("memory/pinned_reuse", "MEM-043", cases=_PINNED_COPIES, needs=_REUSE)
def pinned_blocks_are_not_reused_early(dev: Device, case: str) -> None:
    """A pinned block freed while a copy is queued is not handed out before the copy ran."""
    _is_not_reused_early(dev, case)


#: name -> what is copied on a stream of its own.
_SIDE_COPIES = {"source_side": "source", "destination_side": "destination"}


@check("memory/pinned_reuse", "MEM-043", cases=_SIDE_COPIES, needs=_REUSE)
def pinned_blocks_of_another_stream_are_not_reused_early(dev: Device, case: str) -> None:
    """A pinned block freed while another stream has a copy queued is not handed out before."""
    dev.require("streams")
    with dev.stream():
        _is_not_reused_early(dev, _SIDE_COPIES[case])


def _empty_host_cache(dev: Device) -> None:
    """Let a pinned block go to the cache, and empty it."""
    if not hasattr(torch.accelerator, "empty_host_cache"):
        dev.unsupported("this torch has no torch.accelerator.empty_host_cache")
    torch.empty(1, device=dev.device())
    torch.ones(MIB).pin_memory()
    dev.synchronize()
    torch.accelerator.empty_host_cache()


@check("memory/host_cache:live_blocks_stay", "MEM-044", needs=("pinned_memory",))
def empty_host_cache_keeps_live_blocks(dev: Device) -> None:
    """empty_host_cache keeps a live pinned block, and what it holds."""
    torch.empty(1, device=dev.device())
    x = torch.arange(100.0).pin_memory()
    _empty_host_cache(dev)
    assert x.is_pinned() and torch.equal(x, torch.arange(100.0))


@check("memory/host_cache:reused", "MEM-044", needs=("pinned_memory",))
def memory_can_be_pinned_after_empty_host_cache(dev: Device) -> None:
    """Pinning works as before after empty_host_cache."""
    _empty_host_cache(dev)
    assert torch.equal(torch.ones(MIB).pin_memory(), torch.ones(MIB))


# ---- settings --------------------------------------------------------------------------------

_SETTINGS = {
    "max_split_size": "max_split_size_mb:32",
    "garbage_collection": "garbage_collection_threshold:0.8",
    "several": "max_split_size_mb:64,garbage_collection_threshold:0.6",
}


@contextmanager
def _settings(dev: Device, text: str) -> Iterator[None]:
    """The allocator has these settings inside."""
    if not hasattr(torch._C, "_accelerator_getAllocatorSettings"):
        dev.unsupported("torch before 2.12 does not tell its settings: they could not be put back")
    former = torch._C._accelerator_getAllocatorSettings()
    try:
        torch._C._accelerator_setAllocatorSettings(text)
        yield
    finally:
        torch._C._accelerator_setAllocatorSettings(former)


@check("memory/settings", "MEM-045", cases=_SETTINGS, needs=("allocator_settings",))
def allocator_takes_the_standard_settings(dev: Device, case: str) -> None:
    """The standard allocator settings are accepted at run time and allocation works under them."""
    with _settings(dev, _SETTINGS[case]):
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
    with _on_first_device(dev), _settings(dev, f"roundup_power2_divisions:{divisions}"):
        before = _allocated()
        x = _bytes(dev, request << 10)
        grown = (_allocated() - before) >> 10
        assert grown == block, f"a block of {grown} KiB for {x.numel() >> 10} KiB"


#: A size in a memory summary, such as `12 MiB` or `1.5 GB`.
_SIZE = re.compile(r"(?<![\w.])(\d+)(?:\.(\d+))?\s*([KMGT]?)i?B\b")


@check("memory/summary", "MEM-065", needs=("memory_stats",))
def the_summary_has_the_figures_of_the_statistics(dev: Device) -> None:
    """memory_summary shows the allocated bytes, with their unit, as memory_stats has them."""
    if not hasattr(dev.module, "memory_summary"):
        dev.unsupported("the device module has no memory_summary")
    with _on_first_device(dev):
        for count in (1, 3 * LARGE + 5 * MIB):
            x = _bytes(dev, count)
            wanted = [_statistics(0)[f"allocated_bytes.all.{name}"] for name in ("current", "peak")]
            lines = dev.module.memory_summary(0).splitlines()
            row = next((line for line in lines if "allocated memory" in line.lower()), None)
            if row is None:
                dev.unsupported("the summary has no row of allocated memory")
            sizes = _SIZE.findall(row)
            assert len(sizes) >= 2, f"sizes without units: {row}"
            for (whole, part, prefix), value in zip(sizes, wanted, strict=False):
                unit = 1024 ** " KMGT".index(prefix or " ")
                shown = float(f"{whole}.{part or 0}") * unit
                coarse = unit / 10 ** len(part)
                assert abs(shown - value) <= coarse, f"{value} bytes are shown as {row}"
            del x


@check("memory/collected", "MEM-059", needs=("allocator_settings", *_LIMITED, "memory_stats"))
def unused_memory_is_returned_beyond_the_threshold(dev: Device) -> None:
    """With a third of the limit in unused blocks, beyond the threshold, a new one replaces some."""
    with _limited(dev, 0) as total, _settings(dev, "garbage_collection_threshold:0.25"):
        before = _reserved()
        share = int(total * _SHARE)
        unused = [_bytes(dev, share * percent // 100) for percent in (14, 19)]
        del unused
        dev.synchronize()
        cached = _reserved() - before
        taken = _bytes(dev, share * 30 // 100)  # in none of the two
        held = _reserved() - before
    assert held < cached + taken.nbytes, f"{held} bytes are held, {cached} were before, unused"


@check("memory/max_split_size:statistic", "MEM-049", needs=("allocator_settings", "memory_stats"))
def the_largest_size_to_be_split_is_a_statistic(dev: Device) -> None:
    """memory_stats says which largest size to be split was set last."""
    if "max_split_size" not in _statistics(0):
        dev.unsupported("memory_stats does not say the largest size to be split")
    for megabytes in (32, 64):
        with _settings(dev, f"max_split_size_mb:{megabytes}"):
            assert _statistics(0)["max_split_size"] == megabytes * MIB


@check(
    "memory/max_split_size:kept_whole",
    "MEM-064",
    needs=("allocator_settings", "memory_stats", "empty_cache", "addresses"),
)
def blocks_beyond_the_largest_size_are_kept_whole(dev: Device) -> None:
    """An unused block beyond the largest size to be split is whole for a request of its size."""
    with _on_first_device(dev), _settings(dev, "max_split_size_mb:32"):
        x = _bytes(dev, 2 * LARGE)
        address = x.data_ptr()
        del x
        small = _bytes(dev, LARGE // 2)
        assert not address <= small.data_ptr() < address + 2 * LARGE, "the block was split"
        assert _bytes(dev, 2 * LARGE).data_ptr() == address, "the block was not used again"


@check(
    "memory/oom_flush:oversize",
    "MEM-023",
    needs=("allocator_settings", *_LIMITED, "memory_stats", "threads"),
)
def blocks_beyond_the_largest_size_are_returned_before_giving_up(dev: Device) -> None:
    """A request that fits once a smaller unused block is returned succeeds beside other threads."""
    ended = threading.Event()

    def others(size: int) -> None:
        while not ended.is_set():
            live = [_bytes(dev, size + k * MIB) for k in range(3)]  # of the pool of large blocks
            assert len({x.data_ptr() for x in live}) == 3
            del live[::2]

    with _limited(dev, 0) as total, _settings(dev, "max_split_size_mb:20"):
        share = int(total * _SHARE)

        def replace() -> None:
            try:
                for percent in (90, 60) * 200:
                    x = _bytes(dev, share * percent // 100)
                    x[-1:].fill_(percent)
                    assert x[-1].item() == percent
                    del x
            finally:
                ended.set()

        works: list[Callable[[], None]] = [replace, *(partial(others, k * MIB) for k in (2, 5))]
        in_threads(works)


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


@contextmanager
def _history(dev: Device, **options: Any) -> Iterator[Callable[[], dict[str, Any]]]:
    """Allocations are recorded inside; gives what takes a snapshot."""
    memory = torch.get_device_module(dev.type).memory
    memory._record_memory_history(stacks="python", **options)
    try:
        yield memory._snapshot
    finally:
        memory._record_memory_history(None)


def _segments(snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    """The segments of the first device."""
    return [segment for segment in snapshot["segments"] if segment["device"] == 0]


def _in_use(snapshot: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The blocks of tensors on the first device, by address."""
    found = {}
    for segment in _segments(snapshot):
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                found[block.get("address", address)] = block
            address += block["size"]
    return found


@check("memory/history:replayed", "MEM-052", needs=("memory_history",))
def replaying_the_history_gives_the_blocks_in_use(dev: Device) -> None:
    """Allocations minus frees are the blocks that were taken since recording began."""
    with _on_first_device(dev), _history(dev) as snapshot:
        before = _in_use(snapshot())
        kept = [_bytes(dev, 1000 * (index + 1)) for index in range(24)]
        del kept[::3]
        kept.append(_bytes(dev, LARGE))
        found = snapshot()
    live: dict[int, int] = {}
    for entry in found["device_traces"][0]:
        if entry["action"] == "alloc":
            assert entry["addr"] not in live, f"{entry['addr']:#x} is allocated twice"
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            live.pop(entry["addr"], None)
    blocks = {a: block["size"] for a, block in _in_use(found).items() if a not in before}
    live = {address: size for address, size in live.items() if address not in before}
    assert live == blocks, f"{len(live)} blocks by the history, {len(blocks)} in the segments"
    assert len(blocks) == len(kept), f"{len(blocks)} blocks for {len(kept)} tensors"


@check("memory/history:stacks", "MEM-053", needs=("memory_history",))
def the_history_names_the_line_that_allocated(dev: Device) -> None:
    """The innermost frame of ours, of an allocation and of its block, is the one that allocated."""
    with _on_first_device(dev), _history(dev) as snapshot:
        kept = _bytes(dev, 5000)
        found = snapshot()
    # Not by data_ptr(), which need not be the address that the history has.
    entries = [
        entry
        for entry in found["device_traces"][0]
        if entry["action"] == "alloc" and entry["size"] >= kept.nbytes
    ]
    assert len(entries) == 1, f"{len(entries)} allocations of one tensor"
    for what in (entries[0], _in_use(found)[entries[0]["addr"]]):
        # A backend may have functions of its own in between.
        ours = [frame for frame in what["frames"] if frame["filename"] == __file__]
        names = [frame["name"] for frame in what["frames"]]
        assert [frame["name"] for frame in ours[:1]] == ["_bytes"], f"the stack is {names[:4]}"


@check("memory/history:totals", "MEM-054", needs=("memory_history", "memory_stats"))
def a_snapshot_adds_up_to_the_counters(dev: Device) -> None:
    """Segments, and the blocks in use within them, have as many bytes as the counters report."""
    with _on_first_device(dev):
        snapshot = torch.get_device_module(dev.type).memory._snapshot
        before = _in_use(snapshot())
        kept = [_bytes(dev, 1000 * (index + 1)) for index in range(24)]
        kept.append(_bytes(dev, LARGE))
        del kept[::3]
        dev.synchronize()
        found = snapshot()
        reserved, allocated = _reserved(), _allocated()
    segments = _segments(found)
    total = sum(segment["total_size"] for segment in segments)
    assert total == reserved, f"segments of {total} bytes, {reserved} reserved"
    in_use = sum(segment["allocated_size"] for segment in segments)
    assert in_use == allocated, f"segments with {in_use} bytes in use, {allocated} allocated"
    for segment in segments:
        blocks = segment["blocks"]
        assert sum(block["size"] for block in blocks) == segment["total_size"], segment
        taken = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
        assert taken == segment["allocated_size"] <= segment["active_size"], segment
    asked = [b["requested_size"] for a, b in _in_use(found).items() if a not in before]
    assert sorted(asked) == sorted(x.nbytes for x in kept), f"requested_size of the new: {asked}"


@check("memory/history:newest", "MEM-055", needs=("memory_history",))
def a_short_history_has_the_newest_entries(dev: Device) -> None:
    """Of more entries than are kept the last are there, in order and with the time of the day."""
    with _on_first_device(dev), _history(dev, max_entries=8) as snapshot:
        kept = [_bytes(dev, 1000 * (index + 1)) for index in range(30)]
        entries = snapshot()["device_traces"][0]
        now = time.time() * 1e6
    assert len(entries) == 8, f"{len(entries)} entries where 8 are kept"
    times = [entry["time_us"] for entry in entries]
    assert times == sorted(times), f"the entries are not in order: {times}"
    assert 0 <= now - times[-1] < 60e6, f"the last entry is of {times[-1]}, now it is {now:.0f}"
    sizes = [entry["size"] for entry in entries if entry["action"] == "alloc"]
    assert sizes == sorted(sizes), f"the entries are not in order: sizes {sizes}"
    assert sizes and sizes[-1] >= kept[-1].nbytes, f"the last allocation is missing: {sizes}"


@check("memory/history:out_of_memory", "MEM-056", needs=("memory_history", *_LIMITED))
def a_failed_allocation_is_in_the_history(dev: Device) -> None:
    """Running out of memory is an entry `oom`, with what was asked for and what was free."""
    with _on_first_device(dev), _history(dev) as snapshot:
        total = torch.accelerator.get_memory_info(0)[1]
        _exhaust(dev, 0)
        entries = snapshot()["device_traces"][0]
    failed = [entry for entry in entries if entry["action"] == "oom"]
    assert len(failed) == 1, f"{len(failed)} entries oom: {[e['action'] for e in entries]}"
    assert failed[0]["size"] >= total + MIB, failed[0]
    assert 0 < failed[0]["device_free"] <= total, failed[0]


@check("memory/history:ended", "MEM-057", needs=("memory_history",))
def recording_ends(dev: Device) -> None:
    """After recording neither the history nor the stacks of blocks grow."""
    with _on_first_device(dev):
        with _history(dev) as snapshot:
            kept = [_bytes(dev, 5000)]
        before = snapshot()
        kept.append(_bytes(dev, 6000))
        found = snapshot()
        del kept
    length = len(before["device_traces"][0])
    assert len(found["device_traces"][0]) == length, "an allocation is in the history all the same"
    known = _in_use(before)
    frames = [b["frames"] for a, b in _in_use(found).items() if a not in known]
    assert frames == [[]], f"the block of a later allocation has the stack {frames}"


@check("memory/history:segments", "MEM-058", needs=("memory_history", "empty_cache"))
def the_history_has_what_the_driver_gave(dev: Device) -> None:
    """Segments that were taken and returned since recording began give the segments there are."""
    with _on_first_device(dev), _history(dev) as snapshot:
        live = {s["address"]: s["total_size"] for s in _segments(snapshot())}
        kept = _bytes(dev, LARGE)
        gone = _bytes(dev, 3 * LARGE)
        del gone
        _settle(dev)
        found = snapshot()
    taken = returned = 0
    for entry in found["device_traces"][0]:
        if entry["action"] == "segment_map":
            dev.unsupported("segments of this allocator grow")
        if entry["action"] == "segment_alloc":
            live[entry["addr"]] = entry["size"]
            taken += entry["size"]
        elif entry["action"] == "segment_free":
            returned += live.pop(entry["addr"])
    assert live == {s["address"]: s["total_size"] for s in _segments(found)}
    assert taken >= kept.nbytes + 3 * LARGE, f"segments of {taken} bytes were taken"
    assert returned >= 3 * LARGE, f"segments of {returned} bytes were returned"


def _freed(dev: Device) -> None:
    block = _bytes(dev, 7000)
    del block


#: The argument `context` -> whether blocks, allocations and frees have stacks by it. Whether a free
#: has that of its allocation where it has none of its own is left to the backend.
_CONTEXTS: dict[str, tuple[str | None, bool, bool, bool | None]] = {
    "none": (None, False, False, False),
    "state": ("state", True, False, False),
    "alloc": ("alloc", True, True, None),
    "all": ("all", True, True, True),
}


@check("memory/history_contexts", "MEM-060", cases=_CONTEXTS, needs=("memory_history",))
def the_history_has_the_stacks_that_were_asked_for(dev: Device, case: str) -> None:
    """Blocks, entries of allocations and entries of frees have a stack if `context` says so."""
    context, of_block, of_alloc, of_free = _CONTEXTS[case]
    with _on_first_device(dev), _history(dev, context=context) as snapshot:
        before = _in_use(snapshot())
        kept = _bytes(dev, 5000)
        _freed(dev)
        found = snapshot()
        del kept
    blocks = [block for address, block in _in_use(found).items() if address not in before]
    assert [bool(block["frames"]) for block in blocks] == [of_block], "the stack of the block"
    for action, expected in (("alloc", of_alloc), ("free_requested", of_free)):
        entries = [e for e in found["device_traces"][0] if e["action"] == action]
        assert entries, f"no entry {action}"
        if expected is not None:
            has = [bool(entry["frames"]) for entry in entries]
            assert all(one is expected for one in has), f"entries {action} have stacks: {has}"


@check("memory/history:stack_of_a_free", "MEM-060", needs=("memory_history",))
def the_history_names_the_line_that_freed(dev: Device) -> None:
    """The innermost frame of ours, of a free, is the function that dropped the tensor."""
    with _on_first_device(dev), _history(dev) as snapshot:
        _freed(dev)
        entries = snapshot()["device_traces"][0]
    freed = [entry for entry in entries if entry["action"] == "free_requested"]
    assert len(freed) == 1, f"{len(freed)} entries free_requested of one tensor"
    ours = [frame["name"] for frame in freed[0]["frames"] if frame["filename"] == __file__]
    assert ours[:1] == ["_freed"], f"the stack is {ours[:4]}"


@check("memory/history:streams", "MEM-061", needs=("memory_history", "streams"))
def the_history_names_the_stream_of_the_memory(dev: Device) -> None:
    """Entries and blocks of a side stream name one stream, those of the default stream another."""
    with _on_first_device(dev), _history(dev) as snapshot:
        kept = [_bytes(dev, 5000)]
        with dev.stream():
            kept.append(_bytes(dev, 6000))
        found = snapshot()
        entries = [e for e in found["device_traces"][0] if e["action"] == "alloc"]
        del kept
    assert len(entries) == 2, f"{len(entries)} allocations of two tensors"
    assert entries[0]["stream"] != entries[1]["stream"], f"both are of {entries[0]['stream']}"
    for entry in entries:
        within = [
            s for s in _segments(found) if 0 <= entry["addr"] - s["address"] < s["total_size"]
        ]
        streams = [segment["stream"] for segment in within]
        assert streams == [entry["stream"]], f"{entry['stream']}, but its segment has {streams}"


@check("memory/history:shortest", "MEM-055", cases=("0", "1"), needs=("memory_history",))
def the_shortest_history_has_an_entry_at_most(dev: Device, case: str) -> None:
    """A history of no entry, or of one, has one at most, and allocations go on."""
    with _on_first_device(dev), _history(dev, max_entries=int(case)) as snapshot:
        kept = [_bytes(dev, 1000 * (index + 1)) for index in range(10)]
        entries = snapshot()["device_traces"][0]
        del kept
    assert len(entries) <= 1, f"{len(entries)} entries"


@check("memory/history:threads", "MEM-062", needs=("memory_history", "threads", "streams"))
def the_history_has_the_allocations_of_all_threads(dev: Device) -> None:
    """With four threads that allocate at once, on streams of their own, no entry is lost."""
    rounds, width = 20, 100
    inputs = [torch.zeros(700, device=dev.device(0)) for _ in range(width)]
    dev.synchronize()

    def work() -> None:
        with dev.stream(0):
            for _ in range(rounds):
                # One call for many allocations, in which no thread waits for the interpreter.
                torch._foreach_add(inputs, 1)

    with _on_first_device(dev), _history(dev, context=None) as snapshot:
        in_threads([work] * 4)
        entries = snapshot()["device_traces"][0]
    for action in ("alloc", "free_completed"):
        count = sum(entry["action"] == action for entry in entries)
        assert count >= 4 * rounds * width, f"{count} entries {action} of {4 * rounds * width}"


# ---- statistics of pinned memory -------------------------------------------------------------

_HOST_COUNTS = ("allocations", "allocated_bytes", "active_requests", "active_bytes")
_HOST_TIMES = ("host_alloc_time", "host_free_time")


def _host_stats(dev: Device) -> dict[str, int]:
    module = torch.get_device_module(dev.type)
    if not hasattr(module, "host_memory_stats"):
        dev.unsupported(f"{module.__name__} has no host_memory_stats")
    stats: dict[str, int] = module.host_memory_stats()
    return stats


@check("memory/host_statistics:keys", "MEM-063", needs=("pinned_memory",))
def statistics_of_pinned_memory_have_the_documented_keys(dev: Device) -> None:
    """host_memory_stats has torch.cuda's keys, and none of its values is negative."""
    torch.empty(1, device=dev.device())
    stats = _host_stats(dev)
    wanted = {f"{n}.{m}" for n in _HOST_COUNTS for m in ("current", "peak", "allocated", "freed")}
    wanted |= {f"{n}.{m}" for n in _HOST_TIMES for m in ("total", "max", "min", "count", "avg")}
    wanted |= {"num_host_alloc", "num_host_free"}
    assert wanted <= stats.keys(), f"missing: {sorted(wanted - stats.keys())}"
    assert all(stats[key] >= 0 for key in wanted), stats


@check("memory/host_statistics:counts", "MEM-063", needs=("pinned_memory",))
def statistics_of_pinned_memory_count_blocks(dev: Device) -> None:
    """A block that the cache does not have is a call of the driver, is counted and is returned."""
    torch.empty(1, device=dev.device())
    _empty_host_cache(dev)
    before = _host_stats(dev)
    size = 3 * LARGE
    kept = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    now = _host_stats(dev)
    del kept
    _empty_host_cache(dev)
    after = _host_stats(dev)

    def grown(key: str, since: dict[str, int], until: dict[str, int]) -> int:
        return until[key] - since[key]

    for key in ("num_host_alloc", "allocations.current", "active_requests.current"):
        assert grown(key, before, now) == 1, f"{key} grows by {grown(key, before, now)} for a block"
    for key in ("allocated_bytes.current", "active_bytes.current"):
        assert size <= grown(key, before, now) <= 2 * size, f"{key}: {grown(key, before, now)}"
    for key in ("active_requests.current", "active_bytes.current", "allocations.current"):
        assert after[key] == before[key], f"{key} is {after[key]}, {before[key]} before the block"
    assert grown("num_host_free", now, after) >= 1, "the block was not returned to the driver"
    for name, since, until in (("host_alloc_time", before, now), ("host_free_time", now, after)):
        assert grown(f"{name}.count", since, until) >= 1, f"{name} does not count the call"
        # PyTorch's own minimum leaves out what took less than a microsecond.
        mean, most, total = (until[f"{name}.{key}"] for key in ("avg", "max", "total"))
        assert mean <= most <= total, f"{name}: mean {mean}, max {most}, total {total}"
