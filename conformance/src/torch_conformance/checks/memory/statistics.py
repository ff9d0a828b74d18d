# SPDX-License-Identifier: BSD-3-Clause
"""Each statistic counts the blocks that come and go, in their pool and on their device alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import torch

from torch_conformance.authoring.api import Device, check, while_held
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    allocate,
    on_first_device,
    settle,
    statistics,
)


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
    before = statistics(index)
    x = allocate(dev, size, index)
    during = statistics(index)
    del x
    settle(dev)
    after = statistics(index)
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
    with on_first_device(dev):
        if f"{case}.all.current" not in statistics(0):
            dev.unsupported(f"memory_stats has no {case}")
        for index in {0, dev.count - 1}:
            allocate(dev, 1, index)
            settle(dev)
            for pool in pools:
                others = {i: statistics(i) for i in range(dev.count) if i != index}
                _counts_a_block(dev, case, pool, index)
                assert others == {i: statistics(i) for i in others}, "of another device"


#: Counters of calls to the driver, and what a block that comes and goes adds.
_CALLS = {"num_device_alloc": "allocated", "num_device_free": "freed"}


@check("memory/statistic_calls", "MEM-049", cases=_CALLS, needs=("memory_stats", "empty_cache"))
def calls_of_the_driver_are_counted(dev: Device, case: str) -> None:
    """num_device_alloc and num_device_free count the segments that came and went."""
    with on_first_device(dev):
        before = statistics(0)
        if case not in before:
            dev.unsupported(f"memory_stats has no {case}")
        for _ in range(3):
            allocate(dev, LARGE)
            torch.accelerator.empty_cache()
        after = statistics(0)
        segments = f"segment.all.{_CALLS[case]}"
        assert after[case] - before[case] == after[segments] - before[segments] == 3


@check("memory/statistic_balance", "MEM-049", needs=("memory_stats", "empty_cache"))
def reserved_memory_is_active_or_split(dev: Device) -> None:
    """After empty_cache, reserved memory is in use or belongs to segments that are in use."""
    with on_first_device(dev):
        live = [allocate(dev, size) for size in (1000, 200_000, 3 * MIB, LARGE, 700, 5 * MIB)]
        del live[::2]
        torch.accelerator.empty_cache()
        now = statistics(0)
        for pool in ("all", "small_pool", "large_pool"):
            reserved, active, split = (
                now[f"{name}.{pool}.current"]
                for name in ("reserved_bytes", "active_bytes", "inactive_split_bytes")
            )
            assert reserved == active + split, f"{pool}: {reserved} is not {active} + {split}"
            assert bool(split) == bool(now[f"inactive_split.{pool}.current"]), pool


def _work_of_blocks(dev: Device, index: int) -> Iterator[dict[str, int]]:
    """The statistics of a device while blocks of both pools come, are split, and go."""
    yield statistics(index)
    live = [allocate(dev, size, index) for size in (1000, 200_000, LARGE, 700, 3 * MIB)]
    yield statistics(index)
    del live[::2]
    part = allocate(dev, LARGE // 4, index)
    yield statistics(index)
    del live[:]
    yield statistics(index)
    del part
    settle(dev)
    yield statistics(index)


_POOLS_OF_ALL = ("small_pool", "large_pool")


@check("memory/statistic_sums", "MEM-049", needs=("memory_stats", "empty_cache"))
def each_statistic_is_the_sum_of_its_pools(dev: Device) -> None:
    """Of every statistic, what is current, allocated and freed is the sum over both pools."""
    with on_first_device(dev):
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
    with on_first_device(dev):
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
    with on_first_device(dev):
        for index in {0, dev.count - 1}:
            allocate(dev, 1, index)
            settle(dev)
            first, *_, last = _work_of_blocks(dev, index)
            current = {key for key in first if key.endswith(".current")}
            left = {key: last[key] - first[key] for key in current if last[key] != first[key]}
            assert not left, f"of device {index}: {left}"


@check(
    "memory/statistic_pending",
    "MEM-049",
    needs=("memory_stats", "record_stream", "streams", "delay"),
)
def memory_in_use_by_another_stream_is_active(dev: Device) -> None:
    """A freed block is no longer allocated, but active until a stream that uses it is done."""
    names = ("allocation", "allocated_bytes", "active", "active_bytes")

    def current() -> list[int]:
        now = statistics(0)
        return [now[f"{name}.all.current"] for name in names]

    with on_first_device(dev):
        before = current()
        other = dev.stream()

        def look() -> list[int]:
            x = allocate(dev, MIB)
            x.record_stream(other)
            del x
            return current()

        with other:
            dev.delay(1)  # so that the stream has work, whatever stream is held below
        seen = _while_stream_is_held(dev, other, look)
        settle(dev)
        allocate(dev, 1)
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
