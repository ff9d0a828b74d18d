# SPDX-License-Identifier: BSD-3-Clause
"""Freed memory is reused in the order of its stream, and not by other streams before that."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check, in_thread
from torch_conformance.checks.memory._blocks import MIB, allocated_bytes, on_first_device


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
    with on_first_device(dev):  # no other free block is there to be handed out
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
    with on_first_device(dev):
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
    with on_first_device(dev):
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
    with on_first_device(dev):
        before = allocated_bytes() if dev.has("memory_stats") else 0
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
            assert allocated_bytes() == before, "its memory was not returned"
