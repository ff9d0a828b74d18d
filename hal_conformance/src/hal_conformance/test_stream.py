# SPDX-License-Identifier: BSD-3-Clause
"""Streams: order, waiting, priorities, host functions, their death."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_void_p

import pytest

from hal_conformance import abi
from hal_conformance.abi import EventFlags, MemcpyKind, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver

SIZE = 4096
QUEUED = 250  # pieces of work that every queue holds
BRIEFLY = 0.03  # long enough for a call that does not wait to come back


def wait_until(condition: object, seconds: float = 10.0) -> bool:
    """Poll a condition; False if it never came true."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.001)
    return bool(condition())


@covers("HAL-080")
def test_streams_are_distinct_and_work(hal: Driver) -> None:
    streams = [hal.stream(device) for device in range(hal.count()) for _ in range(8)]
    assert len(set(streams)) == len(streams)
    for stream in streams:
        hal.synchronize(stream)
        assert hal.query(stream) == Status.OK


@covers("HAL-080", needs=("memory",))
def test_every_priority_gives_a_working_stream(hal: Driver) -> None:
    least, greatest = hal.priority_range()
    inside = range(greatest, least + 1)
    outside = (-(2**31), greatest - 1, least + 1, 2**31 - 1)
    block = hal.malloc(SIZE)
    for priority in (*inside, *outside):
        stream = hal.stream(priority=priority)
        hal.memset(block, 5, SIZE, stream)
        assert hal.read(block, SIZE, stream) == b"\x05" * SIZE


@covers("HAL-081")
def test_query_tells_pending_from_done(hal: Driver) -> None:
    stream = hal.stream()
    assert hal.query(stream) == Status.OK
    with hal.held(stream):
        assert hal.query(stream) == Status.NOT_READY
        time.sleep(BRIEFLY)
        assert hal.query(stream) == Status.NOT_READY
    hal.synchronize(stream)
    assert hal.query(stream) == Status.OK


@covers("HAL-081")
def test_query_becomes_ok_without_a_synchronisation(hal: Driver) -> None:
    stream = hal.stream()
    flag = hal.flag(stream)
    assert wait_until(lambda: hal.query(stream) == Status.OK)
    assert flag.times() == 1


@covers("HAL-082")
def test_synchronize_waits_for_everything_queued(hal: Driver) -> None:
    stream = hal.stream()
    with ThreadPoolExecutor(1) as pool:
        with hal.held(stream):
            flag = hal.flag(stream)
            waiting = pool.submit(hal.api.stream_synchronize, stream)
            time.sleep(BRIEFLY)
            assert not waiting.done(), "stream_synchronize returned while work was held"
        assert waiting.result() == Status.OK
        assert flag.times() == 1


@covers("HAL-083")
def test_memsets_and_copies_run_in_order(hal: Driver) -> None:
    """Each step reads what the one before wrote; one swapped pair shows in the end."""
    stream = hal.stream()
    blocks = [hal.malloc(SIZE) for _ in range(8)]
    for step in range(100):
        hal.memset(blocks[0], step, SIZE, stream)
        for left, right in itertools.pairwise(blocks):
            hal.copy(right, left, SIZE, MemcpyKind.DEVICE_TO_DEVICE, stream)
    hal.memset(blocks[0], 0xFF, SIZE, stream)
    assert hal.read(blocks[-1], SIZE, stream) == bytes([99]) * SIZE
    assert hal.read(blocks[0], SIZE, stream) == b"\xff" * SIZE


@covers("HAL-083", needs=("host_func",))
def test_a_copy_waits_for_held_work_that_comes_before_it(hal: Driver) -> None:
    """A copy that does not wait is done before the work that it depends on may begin."""
    stream, source, target = hal.stream(), hal.malloc(SIZE), hal.malloc(SIZE)
    hal.memset(source, 1, SIZE, stream)
    with hal.held(stream):
        hal.memset(source, 2, SIZE, stream)
        hal.copy(target, source, SIZE, MemcpyKind.DEVICE_TO_DEVICE, stream)
        time.sleep(BRIEFLY)
    assert hal.read(target, SIZE, stream) == b"\x02" * SIZE


@covers("HAL-083", needs=("host_func",))
def test_the_last_of_many_writes_wins(hal: Driver) -> None:
    """All of them are queued behind a held stream, so nothing but the order decides."""
    stream, block = hal.stream(), hal.malloc(SIZE)
    for last in (200, 201):
        with hal.held(stream):
            for value in range(last + 1):
                hal.memset(block, value, SIZE, stream)
        assert hal.read(block, SIZE, stream) == bytes([last]) * SIZE


@covers("HAL-083", needs=("host_func", "kernel_delay"))
def test_a_slow_piece_of_work_is_not_overtaken(hal: Driver) -> None:
    stream = hal.stream()
    hal.delay(stream, 250)
    flag = hal.flag(stream)
    assert flag.times() == 0
    hal.synchronize(stream)
    assert flag.times() == 1


@covers("HAL-084")
def test_a_stream_ignores_work_pending_on_another(hal: Driver) -> None:
    held, idle = hal.stream(), hal.stream()
    with hal.held(held):
        assert hal.query(idle) == Status.OK
        hal.synchronize(idle)
        assert hal.query(held) == Status.NOT_READY


@covers("HAL-085")
def test_a_stream_makes_progress_beside_a_held_one(hal: Driver) -> None:
    held, free = hal.stream(), hal.stream()
    block = hal.malloc(SIZE)
    with hal.held(held):
        hal.memset(block, 9, SIZE, free)
        assert wait_until(lambda: hal.query(free) == Status.OK, 5), "both streams stand still"


@covers("HAL-085")
def test_many_held_streams_leave_another_running(hal: Driver) -> None:
    held = [hal.stream() for _ in range(16)]
    gates = [hal.held(stream) for stream in held]
    for gate in gates:
        gate.__enter__()
    free, block = hal.stream(), hal.malloc(SIZE)
    hal.memset(block, 9, SIZE, free)
    progressed = wait_until(lambda: hal.query(free) == Status.OK, 5)
    for gate in gates:
        gate.__exit__(None, None, None)
    assert progressed, "16 held streams stop a 17th"


@covers("HAL-086")
def test_work_after_wait_event_waits_for_the_recorded_work(hal: Driver) -> None:
    producer, consumer, event = hal.stream(), hal.stream(), hal.event()
    with hal.held(producer):
        hal.record(event, producer)
        hal.wait(consumer, event)
        flag = hal.flag(consumer)
        time.sleep(BRIEFLY)
        assert flag.times() == 0, "the consumer did not wait"
        assert hal.query(consumer) == Status.NOT_READY
    hal.synchronize(consumer)
    assert flag.times() == 1


@covers("HAL-086")
def test_work_before_wait_event_does_not_wait(hal: Driver) -> None:
    """Observed by an event: a host function might wait for the one that holds the producer."""
    producer, consumer = hal.stream(), hal.stream()
    event, before = hal.event(), hal.event()
    with hal.held(producer):
        hal.record(before, consumer)
        hal.record(event, producer)
        hal.wait(consumer, event)
        assert wait_until(lambda: hal.event_query(before) == Status.OK)


@covers("HAL-086")
def test_a_wait_is_for_the_record_at_the_time_of_the_call(hal: Driver) -> None:
    first, second, consumer = hal.stream(), hal.stream(), hal.stream()
    event = hal.event()
    hal.record(event, first)
    hal.wait(consumer, event)
    with hal.held(second):
        hal.record(event, second)
        hal.synchronize(consumer)


@covers("HAL-086")
def test_several_streams_wait_for_one_event(hal: Driver) -> None:
    producer, event = hal.stream(), hal.event()
    consumers = [hal.stream() for _ in range(8)]
    with hal.held(producer):
        hal.record(event, producer)
        flags = []
        for consumer in consumers:
            hal.wait(consumer, event)
            flags.append(hal.flag(consumer))
        time.sleep(BRIEFLY)
        assert [flag.times() for flag in flags] == [0] * 8
    hal.ok(hal.api.device_synchronize(0))
    assert [flag.times() for flag in flags] == [1] * 8


@covers("HAL-086")
def test_a_stream_may_wait_for_its_own_event(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event()
    hal.record(event, stream)
    hal.wait(stream, event)
    flag = hal.flag(stream)
    hal.synchronize(stream)
    assert flag.times() == 1


@covers("HAL-086", needs=("memory",))
def test_a_chain_of_streams_hands_data_on(hal: Driver) -> None:
    streams = [hal.stream() for _ in range(6)]
    blocks = [hal.malloc(SIZE) for _ in range(6)]
    for round_ in range(20):
        with hal.held(streams[0]):
            hal.memset(blocks[0], round_, SIZE, streams[0])
            for index in range(1, 6):
                event = hal.event()
                hal.record(event, streams[index - 1])
                hal.wait(streams[index], event)
                hal.ok(hal.api.event_destroy(event))
                hal.copy(
                    blocks[index],
                    blocks[index - 1],
                    SIZE,
                    MemcpyKind.DEVICE_TO_DEVICE,
                    streams[index],
                )
        assert hal.read(blocks[5], SIZE, streams[5]) == bytes([round_]) * SIZE


@covers("HAL-087")
@pytest.mark.parametrize("producer_device", [0, 1])
def test_an_event_of_another_device_holds_a_stream(hal: Driver, producer_device: int) -> None:
    producer = hal.stream(producer_device)
    consumer = hal.stream(1 - producer_device)
    event = hal.event(device=producer_device)
    with hal.held(producer):
        hal.record(event, producer)
        hal.wait(consumer, event)
        flag = hal.flag(consumer)
        time.sleep(BRIEFLY)
        assert flag.times() == 0
    hal.synchronize(consumer)
    assert flag.times() == 1


@covers("HAL-088")
def test_an_unrecorded_event_holds_nothing_up(hal: Driver) -> None:
    other, stream, event = hal.stream(), hal.stream(), hal.event()
    hal.wait(stream, event)
    flag = hal.flag(stream)
    with hal.held(other):
        hal.record(event, other)
        hal.synchronize(stream)
    assert flag.times() == 1


@covers("HAL-089")
def test_host_functions_run_once_in_order_elsewhere(hal: Driver) -> None:
    ran: list[tuple[int, int]] = []
    callback = abi.HostFunc(lambda data: ran.append((data or 0, threading.get_native_id())))
    hal.keep(callback)
    stream = hal.stream()
    for number in range(1, 201):
        hal.ok(hal.api.stream_host_func(stream, callback, number))
    hal.synchronize(stream)
    assert [number for number, _ in ran] == list(range(1, 201))
    here = threading.get_native_id()
    assert here not in {thread for _, thread in ran}, "host functions run on the calling thread"


@covers("HAL-089")
def test_later_work_waits_for_a_host_functions_return(hal: Driver) -> None:
    ran = []

    def slow(_: int | None) -> None:
        time.sleep(BRIEFLY)
        ran.append("slow")

    slow_callback = hal.keep(abi.HostFunc(slow))
    quick_callback = hal.keep(abi.HostFunc(lambda _: ran.append("quick")))
    stream = hal.stream()
    hal.ok(hal.api.stream_host_func(stream, slow_callback, None))
    hal.ok(hal.api.stream_host_func(stream, quick_callback, None))
    hal.synchronize(stream)
    assert ran == ["slow", "quick"]


@covers("HAL-089", needs=("memory", "pinned_memory"))
def test_a_host_function_sees_the_work_before_it(hal: Driver) -> None:
    stream, block, target = hal.stream(), hal.malloc(1), hal.host_malloc(1)
    seen = []
    look = hal.keep(abi.HostFunc(lambda data: seen.append(byte_at(data or 0))))
    for value in range(50):
        hal.memset(block, value, 1, stream)
        hal.copy(target, block, 1, MemcpyKind.DEVICE_TO_HOST, stream)
        hal.ok(hal.api.stream_host_func(stream, look, target))
    hal.synchronize(stream)
    assert seen == list(range(50))


def byte_at(address: int) -> int:
    return int(ctypes.c_ubyte.from_address(address).value)


@covers("HAL-089", needs=("validation",))
def test_a_null_host_function_is_refused(hal: Driver) -> None:
    status = hal.api.stream_host_func(hal.stream(), abi.HostFunc(), None)
    assert status == Status.INVALID_ARGUMENT


@covers("HAL-090")
def test_the_native_handle_is_stable(hal: Driver) -> None:
    handles = []
    for stream in (hal.stream(), hal.stream()):
        for _ in range(2):
            out = c_void_p()
            hal.ok(hal.api.stream_native_handle(stream, byref(out)))
            handles.append(out.value)
    first, second = handles[0], handles[2]
    assert None not in handles
    assert handles == [first, first, second, second]
    assert first != second


@covers("HAL-096")
def test_a_stream_over_a_native_one_shares_its_order(hal: Driver) -> None:
    stream = hal.stream()
    over = hal.from_native(hal.native(stream))
    assert over != stream
    with hal.held(stream):
        flag = hal.flag(over)
        time.sleep(BRIEFLY)
        assert flag.times() == 0, "the two streams are not one"
        assert hal.query(over) == Status.NOT_READY
    hal.synchronize(over)
    assert flag.times() == 1
    assert hal.native(over) == hal.native(stream)


@covers("HAL-096")
def test_destroying_a_stream_over_a_native_one_leaves_the_native_one(hal: Driver) -> None:
    stream = hal.stream()
    for _ in range(3):
        over = hal.from_native(hal.native(stream))
        hal.flag(over)
        hal.ok(hal.api.stream_destroy(over))
    flag = hal.flag(stream)
    hal.synchronize(stream)
    assert flag.times() == 1


@covers("HAL-096", needs=("events",))
def test_a_stream_over_a_native_one_takes_part_in_events(hal: Driver) -> None:
    stream, consumer, event = hal.stream(), hal.stream(), hal.event()
    over = hal.from_native(hal.native(stream))
    with hal.held(stream):
        hal.record(event, over)
        hal.wait(consumer, event)
        flag = hal.flag(consumer)
        time.sleep(BRIEFLY)
        assert flag.times() == 0
    hal.synchronize(consumer)
    assert flag.times() == 1


@covers("HAL-096", needs=("validation",))
def test_a_stream_over_nothing_is_refused(hal: Driver) -> None:
    out = c_void_p(0x5A5A)
    assert hal.api.stream_from_native(0, None, byref(out)) == Status.INVALID_ARGUMENT
    index = hal.count()
    native = hal.native(hal.stream())
    assert hal.api.stream_from_native(index, native, byref(out)) == Status.INVALID_DEVICE
    assert out.value == 0x5A5A


@covers("HAL-097")
def test_a_native_stream_of_another_device_is_refused(hal: Driver) -> None:
    out = c_void_p(0x5A5A)
    for device in (0, 1):
        native = hal.native(hal.stream(device))
        status = hal.api.stream_from_native(1 - device, native, byref(out))
        assert status == Status.INVALID_ARGUMENT
        hal.from_native(native, device)
    assert out.value == 0x5A5A


@covers("HAL-091")
def test_destroying_null_does_nothing(hal: Driver) -> None:
    hal.ok(hal.api.stream_destroy(None))


@covers("HAL-091")
def test_work_of_a_destroyed_stream_still_runs(hal: Driver) -> None:
    stream = hal.stream()
    with ThreadPoolExecutor(1) as pool:  # stream_destroy may wait
        with hal.held(stream):
            flags = [hal.flag(stream) for _ in range(10)]
            ending = pool.submit(hal.api.stream_destroy, stream)
            time.sleep(BRIEFLY)
        assert ending.result() == Status.OK
    hal.ok(hal.api.device_synchronize(0))
    assert [flag.times() for flag in flags] == [1] * 10


@covers("HAL-091", needs=("events",))
def test_an_event_outlives_the_stream_it_was_recorded_on(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event()
    with ThreadPoolExecutor(1) as pool:
        with hal.held(stream):
            flag = hal.flag(stream)
            hal.record(event, stream)
            ending = pool.submit(hal.api.stream_destroy, stream)
            time.sleep(BRIEFLY)
            assert hal.event_query(event) == Status.NOT_READY
        assert ending.result() == Status.OK
    hal.ok(hal.api.event_synchronize(event))
    assert flag.times() == 1


@covers("HAL-092")
def test_submitting_does_not_wait_for_queued_work(hal: Driver) -> None:
    """Everything here runs while the stream is held; an entry that waits hangs the test."""
    stream, other, event = hal.stream(), hal.stream(), hal.event()
    block, target = hal.malloc(SIZE), hal.malloc(SIZE)
    with hal.held(stream):
        for _ in range(QUEUED // 5):
            hal.memset(block, 1, SIZE, stream)
            hal.copy(target, block, SIZE, MemcpyKind.DEVICE_TO_DEVICE, stream)
            hal.record(event, stream)
            hal.wait(other, event)
            hal.flag(stream)
        hal.ok(hal.api.event_destroy(hal.event(EventFlags.TIMING)))
        hal.malloc(SIZE)
        hal.attributes(block)
        hal.memory_info()
        hal.stream()
        assert hal.query(stream) == Status.NOT_READY
    hal.ok(hal.api.device_synchronize(0))


@covers("HAL-092", needs=("kernel_delay",))
def test_launching_does_not_wait_for_queued_work(hal: Driver) -> None:
    stream = hal.stream()
    with hal.held(stream):
        for _ in range(QUEUED):
            hal.delay(stream, 0)
        assert hal.query(stream) == Status.NOT_READY
    hal.synchronize(stream)


class Footprint:
    """Threads, file descriptors and resident memory of this process."""

    def __init__(self) -> None:
        self.threads = len(os.listdir("/proc/self/task"))
        self.descriptors = len(os.listdir("/proc/self/fd"))
        with open("/proc/self/statm") as statm:
            self.resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def assert_not_above(self, before: Footprint, slack: int) -> None:
        assert self.descriptors <= before.descriptors
        assert self.threads <= before.threads
        grown = self.resident - before.resident
        assert grown <= slack, f"resident memory grew by {grown} bytes"


def _settled(before: Footprint) -> Footprint:
    """The footprint once threads that are on their way out have left."""
    wait_until(lambda: Footprint().threads <= before.threads, 5)
    return Footprint()


@covers("HAL-093", patience=6)
def test_unused_streams_leak_nothing(hal: Driver) -> None:
    def rounds(count: int) -> None:
        for _ in range(count):
            streams = [hal.stream() for _ in range(500)]
            for stream in streams:
                hal.ok(hal.api.stream_destroy(stream))

    rounds(2)
    before = Footprint()
    rounds(10)
    _settled(before).assert_not_above(before, slack=2 << 20)


@covers("HAL-093", needs=("memory",), patience=6)
def test_used_streams_leak_nothing(hal: Driver) -> None:
    block = hal.malloc(SIZE)

    def rounds(count: int) -> None:
        for _ in range(count):
            streams = [hal.stream() for _ in range(32)]
            for stream in streams:
                hal.memset(block, 1, SIZE, stream)
            for stream in streams:
                hal.ok(hal.api.stream_destroy(stream))
            hal.ok(hal.api.device_synchronize(0))

    rounds(5)
    before = Footprint()
    rounds(800)
    _settled(before).assert_not_above(before, slack=2 << 20)


@covers("HAL-093")
def test_thousands_of_streams_live_at_once(hal: Driver) -> None:
    streams = [hal.stream() for _ in range(2000)]
    assert len(set(streams)) == 2000
    for stream in (streams[0], streams[999], streams[-1]):
        hal.synchronize(stream)
    for stream in streams:
        hal.ok(hal.api.stream_destroy(stream))


NULL_STREAM = {
    "stream_query": (None,),
    "stream_synchronize": (None,),
    "stream_wait_event": (None, None),
    "stream_native_handle": (None, c_void_p()),
}


@covers("HAL-094", needs=("validation",))
@pytest.mark.parametrize("entry", NULL_STREAM)
def test_a_null_stream_is_refused(hal: Driver, entry: str) -> None:
    arguments = [byref(a) if isinstance(a, c_void_p) else a for a in NULL_STREAM[entry]]
    assert getattr(hal.api, entry)(*arguments) == Status.INVALID_ARGUMENT


@covers("HAL-094", needs=("memory", "validation"))
def test_work_on_a_null_stream_is_refused(hal: Driver) -> None:
    block, other = hal.malloc(SIZE), hal.malloc(SIZE)
    kind = MemcpyKind.DEVICE_TO_DEVICE
    assert hal.api.memset_async(block, 0, 1, None) == Status.INVALID_ARGUMENT
    assert hal.api.memcpy_async(block, other, 1, kind, None) == Status.INVALID_ARGUMENT


@covers("HAL-094", needs=("events", "validation"))
def test_events_and_null_handles_are_refused(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event()
    answers = [
        hal.api.event_record(event, None),
        hal.api.event_record(None, stream),
        hal.api.event_query(None),
        hal.api.event_synchronize(None),
        hal.api.stream_wait_event(stream, None),
        hal.api.stream_wait_event(None, event),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * len(answers)


@covers("HAL-094", needs=("host_func", "validation"))
def test_a_host_function_on_a_null_stream_is_refused(hal: Driver) -> None:
    callback = hal.keep(abi.HostFunc(lambda _: None))
    assert hal.api.stream_host_func(None, callback, None) == Status.INVALID_ARGUMENT


@covers("HAL-095", needs=("validation",))
def test_a_destroyed_stream_is_refused(hal: Driver) -> None:
    stream, out = hal.stream(), c_void_p()
    hal.ok(hal.api.stream_destroy(stream))
    answers = [
        hal.api.stream_query(stream),
        hal.api.stream_synchronize(stream),
        hal.api.stream_native_handle(stream, byref(out)),
        hal.api.stream_destroy(stream),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * len(answers)


@covers("HAL-095", needs=("events", "validation"))
def test_a_destroyed_event_is_refused(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event()
    hal.ok(hal.api.event_destroy(event))
    answers = [
        hal.api.event_query(event),
        hal.api.event_synchronize(event),
        hal.api.event_record(event, stream),
        hal.api.stream_wait_event(stream, event),
        hal.api.event_destroy(event),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * len(answers)
