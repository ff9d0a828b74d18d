# SPDX-License-Identifier: BSD-3-Clause
"""Many threads in the driver at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from hal_conformance.abi import MemcpyKind
from hal_conformance.covers import covers
from hal_conformance.driver import Driver

SIZE = 4096
THREADS = 8
ROUNDS = 50


def at_once(work: Callable[[int], None]) -> None:
    """Run work(0..THREADS-1) on as many threads, all released together."""
    start = threading.Barrier(THREADS, timeout=10)

    def run(number: int) -> None:
        start.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run, range(THREADS)))


@covers("HAL-140")
def test_threads_with_their_own_streams_do_not_disturb_each_other(hal: Driver) -> None:
    def work(number: int) -> None:
        device = number % hal.count()
        stream = hal.stream(device)
        blocks = hal.malloc(SIZE, device), hal.malloc(SIZE, device)
        for round_ in range(ROUNDS):
            value = (31 * number + round_) % 256
            hal.memset(blocks[0], value, SIZE, stream)
            hal.copy(blocks[1], blocks[0], SIZE, MemcpyKind.DEVICE_TO_DEVICE, stream)
            assert hal.read(blocks[1], SIZE, stream) == bytes([value]) * SIZE

    at_once(work)


@covers("HAL-140")
def test_threads_share_a_stream(hal: Driver) -> None:
    stream = hal.stream()

    def work(number: int) -> None:
        block = hal.malloc(SIZE)
        for round_ in range(ROUNDS):
            value = (31 * number + round_) % 256
            hal.memset(block, value, SIZE, stream)
            assert hal.read(block, SIZE, stream) == bytes([value]) * SIZE

    at_once(work)


@covers("HAL-140", needs=("events",))
def test_threads_share_events(hal: Driver) -> None:
    """Records, queries, waits and synchronisations of the same events race harmlessly."""
    events = [hal.event() for _ in range(4)]
    streams = [hal.stream() for _ in range(4)]

    def work(number: int) -> None:
        for round_ in range(ROUNDS):
            event = events[(number + round_) % 4]
            hal.record(event, streams[round_ % 4])
            hal.wait(streams[number % 4], event)
            hal.event_query(event)
            hal.ok(hal.api.event_synchronize(event))

    at_once(work)
    hal.ok(hal.api.device_synchronize(0))


@covers("HAL-140")
def test_threads_create_and_destroy_streams(hal: Driver) -> None:
    block = hal.malloc(SIZE)

    def work(_: int) -> None:
        for _ in range(20):
            stream = hal.stream()
            hal.memset(block, 1, SIZE, stream)
            hal.synchronize(stream)
            hal.ok(hal.api.stream_destroy(stream))

    at_once(work)


@covers("HAL-141")
def test_threads_allocate_and_free_at_once(hal: Driver) -> None:
    lock = threading.Lock()
    live: dict[int, int] = {}

    def work(number: int) -> None:
        for round_ in range(ROUNDS):
            size = 1 + (number * 7919 + round_ * 104729) % 20000
            block = hal.malloc(size)
            with lock:
                clash = [a for a, s in live.items() if a < block + size and block < a + s]
                assert not clash, "two live blocks overlap"
                live[block] = size
            if round_ % 3:
                with lock:
                    del live[block]
                hal.free(block)

    at_once(work)


@covers("HAL-141", needs=("pinned_memory",))
def test_threads_pin_and_release_at_once(hal: Driver) -> None:
    def work(number: int) -> None:
        for round_ in range(10 * ROUNDS):
            size = 64 * (1 + (number + round_) % 8)
            pinned = hal.host_malloc(size)
            found = hal.attributes(pinned + size - 1)
            assert (found.base, found.size) == (pinned, size)
            hal.ok(hal.api.host_free(pinned))

    at_once(work)
