# SPDX-License-Identifier: BSD-3-Clause
"""Pinned host memory: what is pinned, its copies, its cache, and its statistics."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, raised, resident_bytes, while_held
from torch_conformance.checks.memory._blocks import LARGE, MIB

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


@check("memory/host_cache:returned", "MEM-044", needs=("pinned_memory",))
def empty_host_cache_returns_memory_to_the_system(dev: Device) -> None:
    """What was pinned and is not used any more leaves the process with empty_host_cache."""

    def pin_and_return() -> int:
        for _ in range(8):
            torch.ones(4 * MIB).pin_memory()
            _empty_host_cache(dev)
        return resident_bytes()

    pin_and_return()
    before = pin_and_return()
    grown = pin_and_return() - before
    assert grown < 64 * MIB, f"{grown >> 20} MiB of what was pinned and given up stay"


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
