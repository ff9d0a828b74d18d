# SPDX-License-Identifier: BSD-3-Clause
"""Threads that use the device at the same time get the results that one alone gets."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from torch_conformance.authoring.api import (
    LATE_MS,
    Device,
    check,
    in_thread,
    in_threads,
)
from torch_conformance.checks._leaks import assert_nothing_left

THREADS = 8
N = 2000


def _allocate(dev: Device, seed: int) -> None:
    live = []
    for step in range(40):
        size = 1 + (seed * 7919 + step * 104729) % 5000
        value = float(seed * 100 + step)
        live.append((torch.full((size,), value, device=dev.device()), value))
        if len(live) > 5:
            x, wanted = live.pop(step % 5)
            dev.assert_equal(x, torch.full((x.numel(),), wanted))


def _compute(dev: Device, seed: int) -> None:
    x = torch.full((N,), float(seed), device=dev.device())
    for _ in range(20):
        x = x * 2 - seed
    dev.assert_equal(x, torch.full((N,), float(seed)))


def _copy(dev: Device, seed: int) -> None:
    values = torch.arange(float(N)) + seed
    for _ in range(20):
        dev.assert_equal(values.to(dev.device()).clone(), values)


def _train(dev: Device, seed: int) -> None:
    for _ in range(5):
        w = torch.full((64,), float(seed), device=dev.device(), requires_grad=True)
        (w * w).sum().backward()
        assert w.grad is not None
        dev.assert_equal(w.grad, torch.full((64,), 2.0 * seed))


_WORK: dict[str, Callable[[Device, int], None]] = {
    "allocate": _allocate,
    "compute": _compute,
    "copy": _copy,
    "backward": _train,
}


@check("thread/concurrent", "THREAD-001", cases=tuple(_WORK), needs=("threads",))
def threads_work_side_by_side(dev: Device, case: str) -> None:
    """Eight threads that allocate, compute, copy or run backward at once all get their results."""
    in_threads([partial(_WORK[case], dev, seed) for seed in range(1, THREADS + 1)])


@check("thread/mixed", "THREAD-001", needs=("threads",))
def threads_do_different_work_side_by_side(dev: Device) -> None:
    """Threads that do different work at once do not disturb each other."""
    works = [*_WORK.values()] * 2
    in_threads([partial(work, dev, seed) for seed, work in enumerate(works, start=1)])


@check("thread/own_device", "THREAD-002", needs=("threads", "multi_device"))
def threads_work_on_their_own_device(dev: Device) -> None:
    """Each thread computes on the device it made current."""

    def worker(seed: int) -> None:
        index = seed % dev.count
        with torch.accelerator.device_index(index):
            for step in range(20):
                x = torch.full((N,), float(seed), device=dev.type)
                assert x.device == dev.device(index)
                dev.assert_equal(x + step, torch.full((N,), float(seed + step)))

    in_threads([partial(worker, seed) for seed in range(THREADS)])


def _queue(dev: Device, stream: torch.Stream, seed: int) -> None:
    with stream:
        for step in range(30):
            x = torch.empty(N, device=dev.type).fill_(seed)
            x.fill_(seed + step)
            y = torch.empty_like(x).copy_(x)
            stream.synchronize()
            dev.assert_equal(y, torch.full((N,), float(seed + step)))


@check("thread/own_stream:own", "THREAD-003", needs=("threads", "streams"))
def threads_work_on_streams_of_their_own(dev: Device) -> None:
    """Threads that queue work on a stream each all get their results."""

    def worker(seed: int) -> None:
        _queue(dev, dev.stream(), seed)

    in_threads([partial(worker, seed) for seed in range(THREADS)])


@check("thread/own_stream:large", "THREAD-003", needs=("threads", "streams"))
def threads_queue_large_work_on_streams_of_their_own(dev: Device) -> None:
    """Work that fills a device, on several streams of each device at once, gives its results."""
    many = 300_000

    def worker(seed: int) -> None:
        with torch.accelerator.device_index(seed % dev.count), dev.stream(seed % dev.count):
            x = torch.arange(many, device=dev.type)
            sums = [((x + step) * seed).sum() for step in range(25)]
            expected = [seed * (many * (many - 1) // 2 + many * step) for step in range(25)]
            assert torch.stack(sums).tolist() == expected

    in_threads([partial(worker, seed) for seed in range(1, 5)])


@check("thread/own_stream:shared", "THREAD-003", needs=("threads", "streams"))
def threads_work_on_one_stream(dev: Device) -> None:
    """Threads that queue work on one and the same stream all get their results."""
    stream = dev.stream()
    in_threads([partial(_queue, dev, stream, seed) for seed in range(THREADS)])


class _Handoff(NamedTuple):
    """How a tensor passes from one thread to another."""

    waits_first: bool = False  # the producer waits for its work; otherwise the consumer does
    frees: bool = False  # the consumer drops the tensor before its work is done


_HANDOFFS = {
    "tensor": _Handoff(waits_first=True),
    "event": _Handoff(),
    "freed_there": _Handoff(frees=True),
}


@check(
    "thread/handoff",
    "THREAD-004",
    cases=_HANDOFFS,
    needs=("threads", "streams", "events", "delay"),
)
def work_is_handed_from_thread_to_thread(dev: Device, case: str) -> None:
    """A tensor made in one thread is used, waited for and freed in another."""
    handoff = _HANDOFFS[case]
    box: queue.Queue[tuple[torch.Tensor, torch.Event]] = queue.Queue()

    def produce() -> None:
        with dev.stream(0) as stream:
            for value in range(5):
                x = torch.full((N,), -1.0, device=dev.device(0))
                if value == 0:
                    stream.synchronize()  # a stream that does not wait must find the -1
                    dev.delay(LATE_MS)
                x.fill_(value)
                if handoff.waits_first:
                    stream.synchronize()
                box.put((x, stream.record_event()))

    def consume() -> None:
        with dev.stream(0) as stream:
            for value in range(5):
                x, event = box.get(timeout=30)
                if not handoff.waits_first:
                    stream.wait_event(event)
                    if dev.has("record_stream"):
                        x.record_stream(stream)
                y = torch.empty_like(x).copy_(x)
                if handoff.frees:
                    del x
                stream.synchronize()
                dev.assert_equal(y, torch.full((N,), float(value)))

    in_threads([produce, consume])


_STREAMS = {"one_stream": 1, "own_streams": 3}


@check(
    "thread/empty_cache",
    "THREAD-001",
    cases=_STREAMS,
    needs=("threads", "streams", "empty_cache"),
)
def the_cache_is_emptied_beside_other_threads(dev: Device, case: str) -> None:
    """Threads that allocate and free while another one empties the cache get their results."""
    ended = threading.Event()
    streams = [dev.stream(0) for _ in range(_STREAMS[case])]

    def use(seed: int) -> None:
        try:
            with streams[seed % len(streams)]:
                for step in range(30):
                    size = 1 + (seed * 7919 + step * 104729) % (1 << 20)
                    live = [torch.full((size >> k,), seed + k, device=dev.type) for k in range(3)]
                    for k, x in enumerate(live):
                        assert x[-1:].item() == seed + k if x.numel() else True
        finally:
            ended.set()

    def empty() -> None:
        while not ended.is_set():
            torch.accelerator.empty_cache()

    works: list[Callable[[], None]] = [*(partial(use, seed) for seed in range(1, 4)), empty]
    with torch.accelerator.device_index(0):
        in_threads(works)


@check("thread/free_elsewhere", "THREAD-005", needs=("threads", "memory_stats"))
def memory_freed_by_another_thread_comes_back(dev: Device) -> None:
    """Blocks allocated in one thread and freed in another are returned in full."""
    with torch.accelerator.device_index(0):
        torch.empty(1, device=dev.device(0))
        before = torch.accelerator.memory_allocated(0)
        for _ in range(10):
            box = in_thread(lambda: [torch.ones(N, device=dev.device(0)) for _ in range(10)])
            in_thread(box.clear)
        assert torch.accelerator.memory_allocated(0) == before


@check("thread/leak", "THREAD-006", needs=("threads",))
def threads_that_used_the_device_leave_nothing(dev: Device) -> None:
    """Hundreds of threads that used the device and ended leave no thread and no descriptor."""

    def batch(count: int) -> None:
        for _ in range(count):
            in_thread(lambda: torch.ones(8, device=dev.device()).sum().item())

    assert_nothing_left(batch, 20, 200, slack=2)


@check("thread/leak_memory", "THREAD-006", needs=("threads", "memory_stats"))
def threads_that_used_the_device_leave_no_memory(dev: Device) -> None:
    """What threads allocated on the device is free when they have ended."""
    eye = torch.eye(8, device=dev.device(0))

    def batch(count: int) -> None:
        for _ in range(count):
            in_thread(lambda: torch.ones(8, 8, device=dev.device(0)).mm(eye).sum().item())

    batch(2)
    before = torch.accelerator.memory_allocated(0)
    batch(20)
    after = torch.accelerator.memory_allocated(0)
    assert after <= before, f"{after - before} bytes are left of 20 threads"
