# SPDX-License-Identifier: BSD-3-Clause
"""The allocator keeps to its share of a device, and returns unused memory before it gives up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check, in_threads, raised
from torch_conformance.checks.memory._blocks import (
    LARGE,
    LIMITED,
    MIB,
    allocate,
    free_bytes,
    on_first_device,
    reserved_bytes,
    settings,
    statistics,
)

#: Shares of a device's memory: what the allocator may take, what it refuses and what it gives then.
_SHARE, _MORE, _LESS = 0.5, 0.7, 0.3


@contextmanager
def _limited(dev: Device, index: int) -> Iterator[int]:
    """The allocator of a device may take a half of its memory, whose total is yielded."""
    limit = dev.module.set_per_process_memory_fraction
    with on_first_device(dev):
        total = torch.accelerator.get_memory_info(index)[1]
        if free_bytes(index) < total * 0.8 or reserved_bytes(index) > total * 0.05:
            dev.unsupported("needs a device whose memory is mostly free")
        limit(_SHARE, index)
        try:
            yield total
        finally:
            limit(1.0, index)


@check("memory/fraction", "MEM-050", cases=("first", "last"), needs=(*LIMITED, "memory_stats"))
def a_limited_device_gives_its_share_only(dev: Device, case: str) -> None:
    """With a limit of a half, seven tenths raise torch.OutOfMemoryError and three do not."""
    index = {"first": 0, "last": dev.count - 1}[case]
    with _limited(dev, index) as total:
        error = raised(lambda: allocate(dev, int(total * _MORE), index))
        assert isinstance(error, torch.OutOfMemoryError), f"{type(error).__name__}: {error}"
        allocate(dev, int(total * _LESS), index)
        allocate(dev, int(total * (_LESS + 0.1)), index)  # what is cached does not count against it
    allocate(dev, int(total * _MORE), index)  # without the limit


@check("memory/fraction:answered", "MEM-050", needs=LIMITED)
def a_limit_can_be_asked_for(dev: Device) -> None:
    """get_per_process_memory_fraction gives what was set, of each device."""
    module = dev.module
    shares = [0.5 + index / 16 for index in range(dev.count)]
    try:
        for index, share in enumerate(shares):
            module.set_per_process_memory_fraction(share, index)
        found = [module.get_per_process_memory_fraction(index) for index in range(dev.count)]
    finally:
        for index in range(dev.count):
            module.set_per_process_memory_fraction(1.0, index)
    assert found == shares, f"{found} of {shares}"


@check("memory/fraction:other_device", "MEM-050", needs=(*LIMITED, "memory_stats", "multi_device"))
def a_limit_concerns_one_device(dev: Device) -> None:
    """The limit of one device does not limit another one."""
    for limited, other in ((0, dev.count - 1), (dev.count - 1, 0)):
        with _limited(dev, limited) as total:
            assert allocate(dev, int(total * _MORE), other).numel() > total * _SHARE


def _more_than_half_fits(dev: Device, free: int) -> None:
    """Seven tenths of the memory that was free can be allocated and written to."""
    y = allocate(dev, free * 7 // 10)
    y[-1].fill_(3)
    assert y[-1].item() == 3


@check("memory/oom_flush:other_size", "MEM-023", needs=(*LIMITED, "memory_stats"))
def cached_memory_is_flushed_before_giving_up(dev: Device) -> None:
    """A request that fits once the cache is emptied succeeds by itself."""
    with on_first_device(dev):
        free = free_bytes()
        allocate(dev, free * 6 // 10)
        _more_than_half_fits(dev, free)  # neither in the cached block nor beside it


@check("memory/oom_flush:other_stream", "MEM-023", needs=(*LIMITED, "memory_stats"))
def memory_cached_for_a_stream_is_flushed_before_giving_up(dev: Device) -> None:
    """A request that fits once the cache of another stream is emptied succeeds by itself."""
    dev.require("streams")
    with on_first_device(dev):
        free = free_bytes()
        with dev.stream(0):
            x = allocate(dev, free * 6 // 10)
        del x
        _more_than_half_fits(dev, free)


@check(
    "memory/oom_waits",
    "MEM-023",
    needs=("memory_limit", "memory_info", "record_stream", "streams", "delay"),
)
def memory_in_use_is_waited_for_before_giving_up(dev: Device) -> None:
    """A request that fits once another stream is done with freed memory succeeds by itself."""
    with on_first_device(dev):
        free = free_bytes()
        x = allocate(dev, free * 6 // 10)
        with dev.stream(0) as other:
            dev.delay(LATE_MS)
            x[:1].fill_(1)
        x.record_stream(other)
        del x
        y = allocate(dev, free * 7 // 10)
        y[-1].fill_(3)
        assert y[-1].item() == 3


@check(
    "memory/oom_retry:driver_refuses_once",
    "MEM-023",
    needs=("fault_injection", "memory_stats", "empty_cache"),
)
def allocation_is_tried_again_after_a_flush(dev: Device) -> None:
    """When the driver refuses once, the allocator flushes, tries again, counts it and succeeds."""
    with on_first_device(dev):
        allocate(dev, MIB)  # goes to the cache, so that there is something to flush
        before = torch.accelerator.memory_stats(0)
        dev.fault.out_of_memory_at(1)
        try:
            x = allocate(dev, LARGE).fill_(8)
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
        return [statistics(i).get("num_alloc_retries", 0) for i in range(dev.count)]

    with on_first_device(dev):
        allocate(dev, MIB, index)
        before = retries()
        dev.fault.out_of_memory_at(1)
        try:
            x = allocate(dev, LARGE, index).fill_(8)
        finally:
            dev.fault.reset()
        assert x[-1].item() == 8
        assert retries() == [*before[:-1], before[-1] + 1]


def _returned_for_a_new_block(dev: Device, threshold: float) -> tuple[int, str]:
    """Bytes of a third of the limit, unused, that are not held any more with a new block.

    Also the bytes themselves, for messages.
    """
    with _limited(dev, 0) as total, settings(dev, f"garbage_collection_threshold:{threshold}"):
        before = reserved_bytes()
        share = int(total * _SHARE)
        unused = [allocate(dev, share * percent // 100) for percent in (14, 19)]
        del unused
        dev.synchronize()
        cached = reserved_bytes() - before
        taken = allocate(dev, share * 30 // 100)  # in none of the two
        held = reserved_bytes() - before
    said = f"{held} bytes are held, {cached} were before, unused"
    return cached + taken.nbytes - held, said


@check("memory/collected", "MEM-059", needs=("allocator_settings", *LIMITED, "memory_stats"))
def unused_memory_is_returned_beyond_the_threshold(dev: Device) -> None:
    """With a third of the limit in unused blocks, beyond the threshold, a new one replaces some."""
    returned, said = _returned_for_a_new_block(dev, 0.25)
    assert returned > 0, said


@check("memory/collected:below", "MEM-059", needs=("allocator_settings", *LIMITED, "memory_stats"))
def unused_memory_is_kept_below_the_threshold(dev: Device) -> None:
    """With a third of the limit in unused blocks, far from the threshold, all of it stays."""
    returned, said = _returned_for_a_new_block(dev, 0.9)
    assert returned <= 0, said


@check("memory/collected:in_use", "MEM-059", needs=("allocator_settings", *LIMITED, "memory_stats"))
def returning_unused_memory_spares_what_is_in_use(dev: Device) -> None:
    """Beyond the threshold, memory that tensors share with unused blocks stays theirs."""
    with _limited(dev, 0) as total, settings(dev, "garbage_collection_threshold:0.25"):
        share = int(total * _SHARE)
        whole = allocate(dev, share * 28 // 100)
        del whole
        # Parts of what has just become unused, if the allocator divides it.
        parts = [allocate(dev, share * 6 // 100).fill_(number) for number in range(4)]
        del parts[::2]
        for percent in (20, 24, 28):
            allocate(dev, share * percent // 100).fill_(9)
            dev.synchronize()
        first, second = ((int(x[0]), int(x[-1])) for x in parts)
        held, live = reserved_bytes(), sum(x.nbytes for x in parts)
    assert (first, second) == ((1, 1), (3, 3)), f"values of tensors have changed: {first}, {second}"
    assert held >= live, f"{held} bytes are held, tensors have {live}"


#: Where memory takes long to get, fewer rounds than elsewhere are enough.
_LONGEST_S = 10.0


@check(
    "memory/oom_flush:oversize",
    "MEM-023",
    needs=("allocator_settings", *LIMITED, "memory_stats", "threads"),
)
def blocks_beyond_the_largest_size_are_returned_before_giving_up(dev: Device) -> None:
    """A request that fits once a smaller unused block is returned succeeds beside other threads."""
    ended = threading.Event()

    def others(size: int) -> None:
        while not ended.is_set():
            live = [allocate(dev, size + k * MIB) for k in range(3)]  # of the pool of large blocks
            assert len({x.data_ptr() for x in live}) == 3
            del live[::2]

    with _limited(dev, 0) as total, settings(dev, "max_split_size_mb:20"):
        share = int(total * _SHARE)

        def replace() -> None:
            last = time.monotonic() + _LONGEST_S
            try:
                for percent in (90, 60) * 200:
                    if time.monotonic() > last:
                        break
                    x = allocate(dev, share * percent // 100)
                    x[-1:].fill_(percent)
                    assert x[-1].item() == percent
                    del x
            finally:
                ended.set()

        works: list[Callable[[], None]] = [replace, *(partial(others, k * MIB) for k in (2, 5))]
        in_threads(works)


#: The large unused blocks, the request, and which of these blocks go, in hundredths of the limit.
_IN_THE_WAY = {
    "one": ((90,), 60, (90,)),
    "two": ((45, 45), 60, (45, 45)),
    "smallest": ((60, 30), 25, (30,)),  # either would do
}


@check(
    "memory/oom_flush_keeps",
    "MEM-074",
    cases=_IN_THE_WAY,
    needs=("allocator_settings", *LIMITED, "memory_stats"),
)
def what_need_not_be_returned_stays_in_the_cache(dev: Device, case: str) -> None:
    """A request that large unused blocks stand in the way of returns these and no others."""
    large, requested, due = _IN_THE_WAY[case]
    with _limited(dev, 0) as total, settings(dev, "max_split_size_mb:20"):
        share = int(total * _SHARE)
        sizes = (MIB, 25 * MIB, *(share * percent // 100 for percent in large))
        unused = [allocate(dev, size) for size in sizes]
        del unused
        dev.synchronize()
        before = statistics(0)
        x = allocate(dev, share * requested // 100)
        x[-1:].fill_(7)
        assert x[-1].item() == 7
        after = statistics(0)
    returned, freed = (
        after[name] - before[name] for name in ("segment.all.freed", "reserved_bytes.all.freed")
    )
    assert returned == len(due), f"{returned} segments returned, where {len(due)} suffice"
    enough = sum(share * percent // 100 for percent in due)
    assert freed < enough + 5 * MIB, f"{freed} bytes returned, where {enough} suffice"
