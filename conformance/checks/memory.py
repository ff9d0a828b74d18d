# SPDX-License-Identifier: BSD-3-Clause
"""Device memory, its allocator and statistics, pinned host memory, and running out of memory."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import re
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from typing import Any

import torch

from conformance.check import check
from conformance.device import Device
from conformance.observe import LATE_MS, in_thread, raised, while_held, words

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


@check("memory/alignment", "MEM-001", cases=tuple(_SIZES), needs=("accelerator",))
def blocks_are_aligned(dev: Device, case: str) -> None:
    """Every block begins at a multiple of 16 bytes, the largest element there is."""
    live = [_bytes(dev, _SIZES[case]) for _ in range(9)]
    assert all(x.data_ptr() % 16 == 0 for x in live), [hex(x.data_ptr()) for x in live]


@check("memory/alignment_vector", "MEM-002", cases=tuple(_SIZES), needs=("accelerator",))
def blocks_are_aligned_for_vectors(dev: Device, case: str) -> None:
    """Every block begins at a multiple of 64 bytes."""
    live = [_bytes(dev, _SIZES[case]) for _ in range(9)]
    assert all(x.data_ptr() % 64 == 0 for x in live), [hex(x.data_ptr()) for x in live]


@check(
    "memory/no_overlap",
    "MEM-003",
    cases=("addresses", "contents", "after_reuse"),
    needs=("accelerator",),
)
def live_blocks_do_not_overlap(dev: Device, case: str) -> None:
    """Live blocks never share a byte, also after others were freed and their memory reused."""
    sizes = [1 + (k * k * 37) % 5000 for k in range(96)] + [LARGE, LARGE, MIB, 3 * MIB + 5]
    live = [_bytes(dev, size) for size in sizes]
    if case == "after_reuse":
        for k in range(0, len(live), 2):
            live[k] = _bytes(dev, 1)
        for k in range(0, len(live), 2):
            live[k] = _bytes(dev, sizes[-1 - k] // 2 + 1)
    if case == "addresses":
        spans = sorted((x.data_ptr(), x.data_ptr() + x.numel()) for x in live)
        for (_, end), (begin, _) in pairwise(spans):
            assert end <= begin, f"a block ends at {end:#x}, the next begins at {begin:#x}"
        return
    for k, x in enumerate(live):
        x.fill_(k)
    for k, x in enumerate(live):
        dev.assert_equal(x, torch.full_like(x, k, device="cpu"))


@check(
    "memory/zero_size",
    "MEM-004",
    cases=("shape", "copy", "operator", "statistics", "resize"),
    needs=("accelerator",),
)
def empty_tensors_need_no_memory(dev: Device, case: str) -> None:
    """A tensor without elements can be made, copied, computed with and grown."""
    x = torch.empty(0, 3, device=dev.device())
    if case == "shape":
        assert x.numel() == 0 and x.shape == (0, 3) and x.untyped_storage().nbytes() == 0
    elif case == "copy":
        assert x.cpu().shape == (0, 3)
        assert torch.empty(0).to(dev.device()).numel() == 0
    elif case == "operator":
        assert (x + 1).shape == (0, 3)
        assert x.sum().item() == 0.0
    elif case == "statistics":
        dev.require("memory_stats")
        before = _allocated()
        kept = [torch.empty(0, device=dev.device(0)) for _ in range(10)]
        assert _allocated() == before, f"{len(kept)} empty tensors count as allocated memory"
    else:
        x.resize_(2, 3).fill_(4)
        dev.assert_equal(x, torch.full((2, 3), 4.0))


_KEEPERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "slice": lambda x: x[100:200],
    "reshape": lambda x: x.view(-1, 2),
    "storage": lambda x: x.untyped_storage(),
    "detach": lambda x: x.detach(),
}


@check("memory/kept_alive", "MEM-005", cases=tuple(_KEEPERS), needs=("memory_stats",))
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


@check(
    "memory/resize",
    "MEM-006",
    cases=("storage_grows", "storage_shrinks", "tensor_grows", "tensor_shrinks", "repeatedly"),
)
def resizing_keeps_the_contents(dev: Device, case: str) -> None:
    """Growing or shrinking a storage keeps the bytes that stay."""
    if case.startswith("storage"):
        dev.require("storage_resize")
    x = torch.arange(64, dtype=torch.uint8, device=dev.device())
    storage = x.untyped_storage()
    if case == "storage_grows":
        storage.resize_(4096)
        assert storage.nbytes() == 4096
        dev.assert_equal(x, torch.arange(64, dtype=torch.uint8))
    elif case == "storage_shrinks":
        storage.resize_(16)
        assert storage.nbytes() == 16
        head = torch.empty(0, dtype=torch.uint8, device=x.device).set_(storage)
        dev.assert_equal(head, torch.arange(16, dtype=torch.uint8))
    elif case == "tensor_grows":
        x.resize_(1000)
        assert x.shape == (1000,)
        dev.assert_equal(x[:64], torch.arange(64, dtype=torch.uint8))
    elif case == "tensor_shrinks":
        x.resize_(8)
        dev.assert_equal(x, torch.arange(8, dtype=torch.uint8))
    else:
        for step in range(1, 20):
            x.resize_(64 * step)
        dev.assert_equal(x[:64], torch.arange(64, dtype=torch.uint8))


@check("memory/resize_late", "MEM-006", cases=("tensor_grows", "storage_shrinks"), needs=("delay",))
def resizing_waits_for_the_contents(dev: Device, case: str) -> None:
    """What is queued for a tensor before it is resized is among the contents that stay."""
    x = torch.zeros(4096, device=dev.device())
    dev.synchronize()
    dev.delay(LATE_MS)
    x.fill_(3)
    if case == "tensor_grows":
        x.resize_(9000)
    else:
        x.untyped_storage().resize_(1024 * x.element_size())
        x = torch.empty(0, device=dev.device()).set_(x.untyped_storage())
    dev.assert_equal(x[:1024], torch.full((1024,), 3.0))


@check(
    "memory/storage_release", "MEM-007", cases=("released", "usable_again"), needs=("memory_stats",)
)
def storage_of_size_zero_releases_its_memory(dev: Device, case: str) -> None:
    """storage.resize_(0) gives the memory back while the tensor lives; it can be filled again."""
    with _on_first_device(dev):
        before = _allocated()
        x = _bytes(dev, LARGE)
        x.untyped_storage().resize_(0)
        assert _allocated() == before, "the memory is still allocated"
        if case == "usable_again":
            x.untyped_storage().resize_(LARGE)
            x.fill_(5)
            assert x[LARGE - 1].item() == 5


# ---- statistics ------------------------------------------------------------------------------


@check(
    "memory/allocated",
    "MEM-010",
    cases=("rises", "returns", "sums", "temporaries", "garbage_cycle"),
    needs=("memory_stats",),
)
def allocated_memory_is_exact(dev: Device, case: str) -> None:
    """memory_allocated counts what is live: it rises by each block and returns to its start."""
    if case == "garbage_cycle":
        gc.collect()  # so that only this check's garbage is left to be collected
    with _on_first_device(dev):
        before = _allocated()
        if case == "rises":
            x = _bytes(dev, LARGE)
            grown = _allocated() - before
            assert LARGE <= grown <= LARGE + 4 * MIB, f"{x.numel()} bytes counted as {grown}"
        elif case == "returns":
            x = _bytes(dev, LARGE)
            del x
        elif case == "sums":
            live = []
            for k in range(1, 8):
                live.append(_bytes(dev, k * MIB))
                assert _allocated() - before >= sum(x.numel() for x in live)
            while live:
                last = _allocated()
                live.pop()
                assert _allocated() < last
        elif case == "temporaries":
            x = torch.ones(1000, device=dev.device())
            y = ((x * 2 + 1) / 3).sum()
            del x, y
        else:
            cycle: dict[str, Any] = {"x": _bytes(dev, LARGE)}
            cycle["me"] = cycle
            del cycle
            gc.collect()
        if case != "rises":
            assert _allocated() == before, f"{_allocated() - before} bytes stay allocated"


@check(
    "memory/counters",
    "MEM-011",
    cases=("keys", "integers", "count_of_blocks", "difference", "history", "bounds"),
    needs=("memory_stats",),
)
def statistics_are_consistent(dev: Device, case: str) -> None:
    """memory_stats has the documented keys, and they agree with each other."""
    with _on_first_device(dev):
        before = torch.accelerator.memory_stats(0)
        live = [_bytes(dev, 1000) for _ in range(5)]
        now = torch.accelerator.memory_stats(0)
        if case == "keys":
            core = ("allocation", "allocated_bytes", "active_bytes", "reserved_bytes", "segment")
            wanted = {
                f"{name}.all.{metric}"
                for name in core
                for metric in ("current", "peak", "allocated", "freed")
            }
            wanted |= {"num_alloc_retries", "num_ooms"}
            assert wanted <= set(now), f"missing: {sorted(wanted - set(now))}"
        elif case == "integers":
            counters = {k: v for k, v in now.items() if "." in k or k.startswith("num_")}
            wrong = {k: v for k, v in counters.items() if not isinstance(v, int) or v < 0}
            assert counters and not wrong, wrong
        elif case == "count_of_blocks":
            assert now["allocation.all.current"] - before["allocation.all.current"] == len(live)
            del live
            after = torch.accelerator.memory_stats(0)
            assert after["allocation.all.current"] == before["allocation.all.current"]
        elif case == "difference":
            for name in ("allocation", "allocated_bytes", "reserved_bytes"):
                current = now[f"{name}.all.allocated"] - now[f"{name}.all.freed"]
                assert now[f"{name}.all.current"] == current, name
        elif case == "history":
            del live
            after = torch.accelerator.memory_stats(0)
            assert after["allocation.all.allocated"] == before["allocation.all.allocated"] + 5
            assert after["allocation.all.freed"] == before["allocation.all.freed"] + 5
        else:
            allocated, reserved = (now[f"{n}_bytes.all.current"] for n in ("allocated", "reserved"))
            assert 5000 <= allocated <= reserved
            assert now["allocated_bytes.all.peak"] >= allocated
            assert now["reserved_bytes.all.peak"] >= reserved


@check(
    "memory/parity",
    "MEM-012",
    cases=("allocated", "reserved", "max_allocated", "max_reserved", "stats"),
    needs=("memory_stats",),
)
def both_modules_report_the_same(dev: Device, case: str) -> None:
    """torch.<type> and torch.accelerator report the same numbers for every device."""
    kept = [_bytes(dev, 3000 * (index + 1), index) for index in range(dev.count)]
    for index in range(len(kept)):
        if case == "stats":
            ours, theirs = dev.module.memory_stats(index), torch.accelerator.memory_stats(index)
            assert dict(ours) == dict(theirs)
            continue
        name = case.replace("max_", "max_memory_") if case.startswith("max_") else f"memory_{case}"
        assert getattr(dev.module, name)(index) == getattr(torch.accelerator, name)(index)


@check(
    "memory/peak",
    "MEM-013",
    cases=("follows", "stays", "reset", "reset_in_use", "reset_elsewhere", "reserved"),
    needs=("memory_stats",),
)
def peaks_are_remembered_until_reset(dev: Device, case: str) -> None:
    """The peak follows the highest use, stays there after the memory is freed, and can be reset."""
    with _on_first_device(dev):
        torch.accelerator.reset_peak_memory_stats(0)
        start = _allocated()
        assert torch.accelerator.max_memory_allocated(0) == start
        x = _bytes(dev, LARGE)
        peak = torch.accelerator.max_memory_allocated(0)
        assert peak == _allocated() >= start + LARGE
        if case == "reserved":
            assert torch.accelerator.max_memory_reserved(0) >= _reserved() >= LARGE
        elif case == "reset_in_use":
            del x
            x = _bytes(dev, MIB)
            torch.accelerator.reset_peak_memory_stats(0)
            assert torch.accelerator.max_memory_allocated(0) == _allocated() > start
        del x
        if case == "stays":
            y = _bytes(dev, LARGE // 2)
            assert torch.accelerator.max_memory_allocated(0) == peak, f"lost with {y.numel()}"
        elif case == "reset_elsewhere":
            dev.require("multi_device")
            _bytes(dev, LARGE, index=1)
            torch.accelerator.reset_peak_memory_stats(1)
            assert torch.accelerator.max_memory_allocated(1) == _allocated(1)
            assert torch.accelerator.max_memory_allocated(0) == peak, "reset with device 1"
        elif case == "reset":
            torch.accelerator.reset_peak_memory_stats(0)
            assert torch.accelerator.max_memory_allocated(0) == start
        elif case == "reserved":
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


@check(
    "memory/right_device",
    "MEM-015",
    cases=("by_argument", "by_context", "by_stream", "to", "like", "resize", "memory_info", "peak"),
    needs=("multi_device", "memory_stats"),
)
def memory_is_booked_on_the_device_it_is_on(dev: Device, case: str) -> None:
    """A block on device 1 is taken from and booked on device 1, and not on device 0."""
    with _on_first_device(dev):
        _bytes(dev, 1, index=1)
        before = _allocated(0), _allocated(1)
        info = (_free(0), _free(1)) if dev.has("memory_info") else (0, 0)
        torch.accelerator.reset_peak_memory_stats(0)
        if case == "by_context":
            with torch.accelerator.device_index(1):
                x = torch.empty(LARGE, dtype=torch.uint8, device=dev.type)
        elif case == "by_stream":
            dev.require("streams")
            with dev.stream(1):
                x = torch.empty(LARGE, dtype=torch.uint8, device=dev.type)
        elif case == "to":
            x = torch.ones(LARGE, dtype=torch.uint8).to(dev.device(1))
        elif case == "like":
            x = torch.empty_like(torch.ones(LARGE, dtype=torch.uint8), device=dev.device(1))
        elif case == "resize":
            x = _bytes(dev, 1, index=1).resize_(LARGE)
        else:
            x = _bytes(dev, LARGE, index=1)
        assert x.device == dev.device(1)
        assert _allocated(0) == before[0], "booked on device 0"
        assert _allocated(1) - before[1] >= LARGE, "not booked on device 1"
        if case == "peak":
            assert torch.accelerator.max_memory_allocated(0) == before[0]
        if case == "memory_info":
            dev.require("memory_info")
            assert info[0] == _free(0), "the memory was taken from device 0"
            assert _falls(dev, info[1], index=1), "the memory was not taken from device 1"


def _falls(dev: Device, free: int, index: int = 0) -> bool:
    """Whether free memory falls below `free` when much is allocated.

    A cache that cannot be emptied may serve some of it: what it gives is held until it has no more.
    """
    held: list[torch.Tensor] = []
    while free - _free(index) < LARGE and len(held) < CACHED:
        held.append(_bytes(dev, LARGE, index=index))
    return free - _free(index) >= LARGE


@check(
    "memory/info",
    "MEM-016",
    cases=("bounds", "parity", "falls", "total_is_constant"),
    needs=("memory_info",),
)
def free_and_total_memory_are_true(dev: Device, case: str) -> None:
    """get_memory_info gives free and total bytes, and free falls with use."""
    with _on_first_device(dev):
        free, total = torch.accelerator.get_memory_info(0)
        if case == "bounds":
            for index in range(dev.count):
                left, whole = torch.accelerator.get_memory_info(index)
                assert 0 <= left <= whole and whole > 0
        elif case == "parity":
            assert dev.module.mem_get_info(0)[1] == total
        else:
            assert _falls(dev, free), f"{LARGE} bytes were taken from nowhere"
            assert torch.accelerator.get_memory_info(0)[1] == total


# ---- the cache -------------------------------------------------------------------------------


@check(
    "memory/empty_cache",
    "MEM-017",
    cases=(
        "reserved_falls",
        "many_sizes",
        "every_device",
        "free_rises",
        "live_blocks_stay",
        "idempotent",
        "pending_work",
    ),
    needs=("empty_cache", "memory_stats"),
)
def empty_cache_returns_unused_memory(dev: Device, case: str) -> None:
    """empty_cache gives unused memory back to the driver and touches nothing that is live."""
    with _on_first_device(dev):
        kept = torch.arange(1000.0, device=dev.device())
        start = _free() if dev.has("memory_info") else 0
        if case == "many_sizes":
            reserved = _reserved()
            blocks = [_bytes(dev, 1 + k * k * 997) for k in range(64)]
            del blocks[::2]
            del blocks
            torch.accelerator.empty_cache()
            assert _reserved() == reserved, f"{_reserved() - reserved} bytes stay reserved"
            return
        if case == "every_device":
            dev.require("multi_device")
            reserved = _reserved(1)
            _bytes(dev, LARGE, index=1)
            torch.accelerator.empty_cache()
            assert _reserved(1) <= reserved, "the cache of a device that is not current stayed"
            return
        x = _bytes(dev, LARGE)
        assert _reserved() >= LARGE
        if case == "pending_work":
            dev.require("delay")
            dev.delay(LATE_MS)
            x.fill_(7)
            y = x.to(torch.int16)
            del x
            torch.accelerator.empty_cache()
            assert y[0].item() == 7 and y[-1].item() == 7, "memory was unmapped under queued work"
            return
        del x
        torch.accelerator.empty_cache()
        if case == "reserved_falls":
            assert _reserved() < LARGE
        elif case == "free_rises":
            dev.require("memory_info")
            assert _free() >= start, f"{start - _free()} bytes never came back to the driver"
        elif case == "idempotent":
            reserved = _reserved()
            torch.accelerator.empty_cache()
            dev.module.empty_cache()
            assert _reserved() == reserved
        dev.assert_equal(kept, torch.arange(1000.0))


@check(
    "memory/cache",
    "MEM-018",
    cases=("same_size", "sum_of_small", "thousand_times"),
    needs=("memory_stats",),
)
def freed_memory_is_used_again(dev: Device, case: str) -> None:
    """Freed memory serves the next request of the size: steady use reserves a steady amount."""
    with _on_first_device(dev):
        if case == "same_size":
            x = _bytes(dev, LARGE)
            reserved = _reserved()
            for _ in range(20):
                del x
                x = _bytes(dev, LARGE)
            assert _reserved() == reserved
        elif case == "sum_of_small":
            small = [_bytes(dev, 2000) for _ in range(200)]
            reserved = _reserved()
            for k in range(0, 200, 2):
                small[k] = _bytes(dev, 1)
            for k in range(0, 200, 2):
                small[k] = _bytes(dev, 2000)
            assert _reserved() <= reserved + 8 * MIB, "small blocks are not reused"
        else:

            def step() -> None:
                a = torch.ones(100, 50, device=dev.device())
                ((a * 2).t() + 1).contiguous()

            step()
            before = _allocated(), _reserved()
            for _ in range(1000):
                step()
            dev.synchronize()
            assert (_allocated(), _reserved()) == before, "a thousand equal steps leak memory"


@check(
    "memory/after_exception",
    "MEM-019",
    cases=("operator", "backward", "allocation"),
    needs=("memory_stats",),
)
def exceptions_leak_no_memory(dev: Device, case: str) -> None:
    """Memory held by a failed operation is returned once its exception is gone."""
    with _on_first_device(dev):
        before = _allocated()

        def fail() -> None:
            x = torch.ones(1000, device=dev.device(), requires_grad=True)
            if case == "operator":
                (x * 2) + torch.ones(999, device=dev.device())
            elif case == "backward":
                (x * 2).backward()  # not a scalar
            else:
                x.new_empty(1 << 46, dtype=torch.uint8)

        for _ in range(5):
            raised(fail)
        assert _allocated() == before, f"{_allocated() - before} bytes stay allocated"


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


@check(
    "memory/oom",
    "MEM-020",
    cases=("type", "runtime_error", "usable_after", "nothing_leaked", "repeatedly", "in_thread"),
    needs=("memory_limit", "memory_info"),
)
def running_out_raises_out_of_memory(dev: Device, case: str) -> None:
    """More than the device has raises torch.OutOfMemoryError and leaves the device usable."""
    with _on_first_device(dev):
        before = _allocated() if dev.has("memory_stats") else 0
        error = raised(lambda: _too_much(dev))
        assert isinstance(error, torch.OutOfMemoryError), f"{type(error).__name__}: {error}"
        if case == "runtime_error":
            assert isinstance(error, RuntimeError)
        elif case == "usable_after":
            dev.assert_equal(torch.ones(9, device=dev.device()) + 1, torch.full((9,), 2.0))
        elif case == "nothing_leaked":
            dev.require("memory_stats")
            assert _allocated() == before
        elif case == "repeatedly":
            for _ in range(5):
                assert isinstance(raised(lambda: _too_much(dev)), torch.OutOfMemoryError)
        elif case == "in_thread":
            other = raised(lambda: in_thread(lambda: _too_much(dev)))
            assert isinstance(other, torch.OutOfMemoryError)


@check(
    "memory/oom_message",
    "MEM-021",
    cases=("out_of_memory", "size", "device"),
    needs=("memory_limit", "memory_info"),
)
def out_of_memory_says_what_happened(dev: Device, case: str) -> None:
    """The message says out of memory, how much was asked for, and of which device."""
    with _on_first_device(dev):
        # Not to be taken for any other number of the message.
        asked = 3 * torch.accelerator.get_memory_info(0)[1]
        message = str(raised(lambda: _bytes(dev, asked)))
        if case == "out_of_memory":
            assert "out of memory" in message.lower(), message
        elif case == "size":
            assert any(abs(size / asked - 1) < 0.12 for size in _sizes(message)), message
        else:
            assert "0" in words(message), message


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


@check(
    "memory/oom_flush",
    "MEM-023",
    cases=("other_size", "other_stream"),
    needs=("memory_limit", "memory_info", "memory_stats"),
)
def cached_memory_is_flushed_before_giving_up(dev: Device, case: str) -> None:
    """A request that fits once the cache is emptied succeeds by itself."""
    with _on_first_device(dev):
        free = _free()
        if case == "other_stream":
            dev.require("streams")
            with dev.stream(0):
                x = _bytes(dev, free * 6 // 10)
        else:
            x = _bytes(dev, free * 6 // 10)
        del x
        y = _bytes(dev, free * 7 // 10)  # neither fits the cached block nor beside it
        y[-1].fill_(3)
        assert y[-1].item() == 3


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
    "memory/oom_retry",
    "MEM-023",
    cases=("driver_refuses_once",),
    needs=("fault_injection", "memory_stats", "empty_cache"),
)
def allocation_is_tried_again_after_a_flush(dev: Device, case: str) -> None:
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


_IMPOSSIBLE: dict[str, Callable[[Device], Any]] = {
    "empty": lambda dev: torch.empty(1 << 46, dtype=torch.uint8, device=dev.device()),
    "zeros": lambda dev: torch.zeros(1 << 44, device=dev.device()),
    "resize": lambda dev: torch.empty(1, dtype=torch.uint8, device=dev.device()).resize_(1 << 46),
    "storage": lambda dev: torch.UntypedStorage(1 << 46, device=dev.device()),
    "overflow": lambda dev: torch.empty(1 << 62, 1 << 62, device=dev.device()),
    "just_below_overflow": lambda dev: torch.empty((1 << 61) - 1, device=dev.device()),
}


@check("memory/impossible", "MEM-024", cases=tuple(_IMPOSSIBLE), needs=("accelerator",))
def impossible_sizes_are_refused(dev: Device, case: str) -> None:
    """64 TiB and sizes that overflow raise RuntimeError at once; nothing is promised or wrapped."""
    if case == "storage":
        dev.require("storage_allocation")
    error = raised(lambda: _IMPOSSIBLE[case](dev))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    dev.assert_equal(torch.ones(2, device=dev.device()), torch.ones(2))


# ---- stream-ordered reuse --------------------------------------------------------------------


@check(
    "memory/reuse",
    "MEM-030",
    cases=("free_then_fill", "temporary_chain", "freed_by_thread"),
    needs=("delay",),
)
def memory_is_reused_in_stream_order(dev: Device, case: str) -> None:
    """A block freed while work on it is queued is not overwritten before that work ran."""
    y = torch.zeros(4096, device=dev.device())
    x = torch.ones(4096, device=dev.device())
    dev.synchronize()
    dev.delay(LATE_MS)
    if case == "temporary_chain":
        for _ in range(10):
            x = x.clone()
        y.copy_(x)
    else:
        y.copy_(x)
    if case == "freed_by_thread":
        box = [x]
        del x
        in_thread(box.clear)
    else:
        del x
    again = [torch.empty(4096, device=dev.device()).fill_(2) for _ in range(4)]
    dev.assert_equal(y, torch.ones(4096))
    for z in again:
        dev.assert_equal(z, torch.full((4096,), 2.0))


@check(
    "memory/record_stream",
    "MEM-031",
    cases=(
        "small",
        "large",
        "two_streams",
        "two_streams_last_late",
        "twice_the_same",
        "before_use",
        "view",
    ),
    needs=("record_stream", "streams", "delay"),
)
def record_stream_defers_reuse(dev: Device, case: str) -> None:
    """A block recorded on another stream is not reused before that stream is done."""
    count = 4 * MIB if case == "large" else 2048
    x = torch.ones(count, device=dev.device())
    # Of two streams one is late and the other is not.
    late = {"two_streams": (True, False), "two_streams_last_late": (False, True)}.get(case, (True,))
    users = [dev.stream() for _ in late]
    ys = [torch.zeros(count, device=dev.device()) for _ in users]
    dev.synchronize()
    for stream, y, is_late in zip(users, ys, late, strict=True):
        if case == "before_use":  # what counts is the work queued when the block is freed
            x.record_stream(stream)
        with stream:
            if is_late:
                dev.delay(LATE_MS)
            y.copy_(x)
        if not is_late:
            stream.synchronize()
        if case == "view":
            x[count // 2 :].record_stream(stream)
        elif case != "before_use":
            x.record_stream(stream)
        if case == "twice_the_same":
            x.record_stream(stream)
    del x
    again = [torch.empty(count, device=dev.device()).fill_(2) for _ in range(4)]
    for y in ys:
        dev.assert_equal(y, torch.ones(count))
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


@check(
    "memory/record_stream_fails",
    "MEM-036",
    cases=("recording", "waiting"),
    needs=("fault_injection", "record_stream", "streams", "delay"),
)
def blocks_in_unknown_use_are_not_reused(dev: Device, case: str) -> None:
    """A block whose use by another stream cannot be tracked is handed out to nobody."""
    with _on_first_device(dev):
        before = _allocated() if dev.has("memory_stats") else 0
        other = dev.stream()
        live = [_bytes(dev, 512) for _ in range(9)]
        address = live[4].data_ptr()
        live[4].record_stream(other)
        if case == "waiting":
            with other:
                dev.delay(LATE_MS)
            del live[4]
        dev.fault.device_lost(0)
        try:
            if case == "recording":
                del live[4]
            else:
                with suppress(RuntimeError):  # a lost device may refuse
                    _bytes(dev, 512)
        finally:
            dev.fault.reset()
        del live[:]  # its neighbours, free at once
        again = [_bytes(dev, size) for size in (512, 1024, 4096) for _ in range(20)]
        for x in again:
            end = x.data_ptr() + x.numel()
            assert not x.data_ptr() <= address < end, "it was handed out while a stream may use it"
        if dev.has("memory_stats"):
            del x, again
            assert _allocated() == before


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


@check(
    "memory/pools",
    "MEM-033",
    cases=("other_stream", "default_stream", "freed_outside"),
    needs=("streams", "delay"),
)
def memory_freed_on_a_stream_stays_with_it(dev: Device, case: str) -> None:
    """Memory freed while its stream is busy is not handed to work of another stream."""
    count = 3 * MIB  # large enough for a segment of its own
    with _on_first_device(dev):  # no other free block is there to be handed out
        owner = dev.stream()
        other = dev.stream() if case == "other_stream" else dev.current_stream()
        y = torch.zeros(count, device=dev.device())
        dev.synchronize()
        with owner:
            x = torch.ones(count, device=dev.device())
            dev.delay(LATE_MS)
            y.copy_(x)
            if case != "freed_outside":
                del x
        if case == "freed_outside":
            del x  # while another stream is current
        with other:
            again = [torch.empty(count, device=dev.device()).fill_(2) for _ in range(4)]
        dev.synchronize()
        assert y.min().item() == y.max().item() == 1, "it was overwritten before it was read"
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


@check("memory/protected", "MEM-035", cases=tuple(_TOUCHES), needs=("memory_protected", "fork"))
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
    "factory": lambda: torch.empty(100, pin_memory=True).fill_(1),
    "like": lambda: torch.ones_like(torch.empty(100), pin_memory=True),
    "view": lambda: torch.ones(300).pin_memory()[100:200],
    "storage": lambda: torch.ones(100).pin_memory().view(10, 10).t().reshape(100),
    "large": lambda: torch.ones(MIB).pin_memory()[:100],
}


@check("memory/pinned", "MEM-040", cases=tuple(_PINNED), needs=("pinned_memory",))
def pinned_memory_says_so(dev: Device, case: str) -> None:
    """Pinned tensors are on the CPU, say is_pinned(), and hold their values."""
    torch.empty(1, device=dev.device())
    x = _PINNED[case]()
    assert x.device.type == "cpu"
    if case != "storage":  # a transposed reshape copies into ordinary memory
        assert x.is_pinned(), "is_pinned() is False after pinning"
    assert torch.equal(x, torch.ones(100))


@check(
    "memory/not_pinned",
    "MEM-041",
    cases=("ordinary", "device", "copy_of_pinned", "pin_device_tensor", "empty"),
    needs=("pinned_memory",),
)
def ordinary_memory_is_not_pinned(dev: Device, case: str) -> None:
    """Only what was pinned is pinned; device tensors cannot be."""
    on_device = torch.ones(4, device=dev.device())
    if case == "ordinary":
        assert not torch.ones(4).is_pinned()
    elif case == "device":
        assert not on_device.is_pinned()
    elif case == "copy_of_pinned":
        assert not torch.ones(4).pin_memory().clone().is_pinned()
    elif case == "pin_device_tensor":
        assert isinstance(raised(on_device.pin_memory), RuntimeError)
    else:
        assert torch.empty(0).pin_memory().numel() == 0


@check("memory/pinned_again", "MEM-041", needs=("pinned_memory",))
def pinning_twice_is_free(dev: Device) -> None:
    """Pinning a pinned tensor gives the tensor itself."""
    torch.empty(1, device=dev.device())
    x = torch.ones(4).pin_memory()
    assert x.pin_memory() is x


@check(
    "memory/pinned_copy",
    "MEM-042",
    cases=("to_device", "to_host", "non_blocking_to_device", "non_blocking_to_host", "slice"),
    needs=("pinned_memory",),
)
def pinned_memory_copies_right(dev: Device, case: str) -> None:
    """Copies from and to pinned memory, blocking and not, move the right values."""
    values = torch.arange(1000.0)
    if case in ("to_device", "non_blocking_to_device"):
        x = values.pin_memory().to(dev.device(), non_blocking=case.startswith("non_blocking"))
        dev.assert_equal(x, values)
    elif case in ("to_host", "non_blocking_to_host"):
        host = torch.zeros(1000).pin_memory()
        host.copy_(values.to(dev.device()), non_blocking=case.startswith("non_blocking"))
        dev.synchronize()
        assert torch.equal(host, values)
    else:
        host = torch.zeros(1000).pin_memory()
        host[10:20].copy_(values.to(dev.device())[10:20], non_blocking=True)
        dev.synchronize()
        assert torch.equal(host[10:20], values[10:20])
        assert host[:10].sum() == 0 and host[20:].sum() == 0


@check(
    "memory/pinned_reuse",
    "MEM-043",
    cases=(
        "source",
        "destination",
        "source_slice",
        "destination_slice",
        "source_side",
        "destination_side",
    ),
    needs=("pinned_memory", "async_copy", "delay"),
)
def pinned_blocks_are_not_reused_early(dev: Device, case: str) -> None:
    """A pinned block freed while a copy is queued is not handed out before the copy ran."""
    copied, _, where = case.partition("_")
    if where == "side":
        dev.require("streams")
    on_device = torch.full((4096,), 3.0, device=dev.device())
    dev.synchronize()

    def look() -> list[torch.Tensor]:
        host = torch.ones(4096).pin_memory()
        if case == "destination_slice":
            host[2048:].copy_(on_device[2048:], non_blocking=True)
        elif copied == "destination":
            host.copy_(on_device, non_blocking=True)
        elif case != "source_slice":
            on_device.copy_(host, non_blocking=True)
        else:
            on_device[:2048].copy_(host[2048:], non_blocking=True)
        del host
        again = [torch.empty(4096, pin_memory=True) for _ in range(4)]
        for block in again:
            block.fill_(7)  # by the host, at once
        return again

    with dev.stream() if where == "side" else nullcontext():
        again = while_held(dev, look)
    dev.synchronize()
    for block in again:
        assert torch.equal(block, torch.full((4096,), 7.0)), "a late copy wrote into a new block"
    if case in ("source", "source_side"):
        dev.assert_equal(on_device, torch.ones(4096))
    elif case == "source_slice":
        dev.assert_equal(on_device[:2048], torch.ones(2048))


@check(
    "memory/host_cache", "MEM-044", cases=("live_blocks_stay", "reused"), needs=("pinned_memory",)
)
def host_cache_can_be_emptied(dev: Device, case: str) -> None:
    """empty_host_cache keeps live pinned blocks, and pinning works as before after it."""
    if not hasattr(torch.accelerator, "empty_host_cache"):
        dev.unsupported("this torch has no torch.accelerator.empty_host_cache")
    torch.empty(1, device=dev.device())
    x = torch.arange(100.0).pin_memory()
    torch.ones(MIB).pin_memory()
    dev.synchronize()
    torch.accelerator.empty_host_cache()
    if case == "live_blocks_stay":
        assert x.is_pinned() and torch.equal(x, torch.arange(100.0))
    else:
        assert torch.equal(torch.ones(MIB).pin_memory(), torch.ones(MIB))


# ---- settings --------------------------------------------------------------------------------

_SETTINGS = {
    "max_split_size": "max_split_size_mb:32",
    "garbage_collection": "garbage_collection_threshold:0.8",
    "several": "max_split_size_mb:64,garbage_collection_threshold:0.6",
}


@check("memory/settings", "MEM-045", cases=tuple(_SETTINGS), needs=("allocator_settings",))
def allocator_takes_the_standard_settings(dev: Device, case: str) -> None:
    """The standard allocator settings are accepted at run time and allocation works under them."""
    if not hasattr(torch._C, "_accelerator_getAllocatorSettings"):
        dev.unsupported("torch before 2.12 does not tell its settings: they could not be put back")
    former = torch._C._accelerator_getAllocatorSettings()
    try:
        torch._C._accelerator_setAllocatorSettings(_SETTINGS[case])
        blocks = [torch.full((k * 1000,), float(k), device=dev.device()) for k in range(1, 20)]
        for k, block in enumerate(blocks, start=1):
            assert block[-1].item() == k
        for k in (1, 3, 1):
            large = torch.full((k * 8 * MIB,), float(k), device=dev.device())
            assert large[-1].item() == k
    finally:
        torch._C._accelerator_setAllocatorSettings(former)


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
    assert done.returncode == 0 and "done" in done.stdout, done.stderr[-2000:]
