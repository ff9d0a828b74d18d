# SPDX-License-Identifier: BSD-3-Clause
"""record_stream keeps a freed block from reuse until the other stream is done with it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    allocate,
    allocated_bytes,
    on_first_device,
    reserved_bytes,
    settle,
)

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


@check("memory/record_stream_empty", "MEM-031", needs=("record_stream", "streams"))
def tensors_without_elements_may_be_recorded(dev: Device) -> None:
    """record_stream() of a tensor that has no memory does nothing, and its stream goes on."""
    user = dev.stream()
    torch.empty(0, device=dev.device()).record_stream(user)
    with user:
        x = torch.ones(8, device=dev.device()) + 1
    user.synchronize()
    dev.assert_equal(x, torch.full((8,), 2.0))


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
            allocate(dev, 512)
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
    with on_first_device(dev):
        before = allocated_bytes() if dev.has("memory_stats") else 0
        other = dev.stream()
        live = [allocate(dev, 512) for _ in range(9)]
        address = live[4].data_ptr()
        live[4].record_stream(other)
        _LOSSES[case](dev, live, other)
        del live[:]  # its neighbours, free at once
        again = [allocate(dev, size) for size in (512, 1024, 4096) for _ in range(20)]
        for x in again:
            end = x.data_ptr() + x.numel()
            assert not x.data_ptr() <= address < end, "it was handed out while a stream may use it"
        if dev.has("memory_stats"):
            del x, again
            assert allocated_bytes() == before


@check(
    "memory/record_stream_recovers",
    "MEM-032",
    needs=("fault_injection", "record_stream", "streams", "memory_stats", "empty_cache"),
)
def blocks_in_unknown_use_return_once_the_device_is_back(dev: Device) -> None:
    """A block whose use could not be tracked returns to the driver when the device works again."""
    with on_first_device(dev):
        before = reserved_bytes()
        block = allocate(dev, LARGE)
        block.record_stream(dev.stream())
        dev.fault.device_lost(0)
        try:
            del block
        finally:
            dev.fault.reset()
        settle(dev)
        assert reserved_bytes() <= before, f"{reserved_bytes() - before} bytes are lost for good"


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


@check(
    "memory/record_stream_returns:alone",
    "MEM-032",
    needs=("record_stream", "streams", "memory_stats"),
)
def one_recorded_block_is_used_again(dev: Device) -> None:
    """The only block that was recorded on another stream serves the next request."""
    with on_first_device(dev):
        other = dev.stream()
        for _ in range(4):
            x = allocate(dev, LARGE)
            x.record_stream(other)
            held = reserved_bytes()
            del x
            other.synchronize()
            again = allocate(dev, LARGE)
            assert reserved_bytes() <= held, f"{reserved_bytes() - held} bytes more are held"
            del again


def _recorded_blocks_return(dev: Device, index: int) -> None:
    with on_first_device(dev):
        other = dev.stream(index)
        before = allocated_bytes(index)
        live = [allocate(dev, MIB, index) for _ in range(20)]
        with other:
            for x in live:
                x.fill_(1)
                x.record_stream(other)
        del live, x
        dev.synchronize()
        assert allocated_bytes(index) == before
        reserved = reserved_bytes(index)
        live = [allocate(dev, MIB, index) for _ in range(10)]
        assert reserved_bytes(index) <= reserved + 2 * MIB, (
            f"{len(live)} blocks were not served from cache"
        )
