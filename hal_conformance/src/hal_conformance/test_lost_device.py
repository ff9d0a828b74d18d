# SPDX-License-Identifier: BSD-3-Clause
"""A device that is lost, which the fault extension simulates: what it answers, what it drops."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_float, c_int32, c_void_p

import pytest

from hal_conformance import abi, kernels
from hal_conformance.abi import EventFlags, MemcpyKind, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver, Flag
from hal_conformance.test_graph import capturing
from hal_conformance.test_ipc import export
from hal_conformance.test_memory import _assert_usable as assert_usable
from hal_conformance.test_stream import BRIEFLY, wait_until

SIZE = 4096
#: Longer than any test waits.
FOR_EVER_MS = 600_000


class Objects:
    """What calls need, made while the device is there."""

    def __init__(self, hal: Driver, device: int) -> None:
        self.hal, self.device = hal, device
        self.block, self.other = hal.malloc(SIZE, device), hal.malloc(SIZE, device)
        self.host = hal.keep(ctypes.create_string_buffer(SIZE))
        self.stream = hal.stream(device)
        self.start, self.end = (hal.event(EventFlags.TIMING, device) for _ in range(2))
        hal.record(self.start, self.stream)
        hal.record(self.end, self.stream)
        hal.synchronize(self.stream)
        self.flag: Flag = hal.keep(Flag())

    def copy(self, target: int, source: int, kind: MemcpyKind) -> int:
        return int(self.hal.api.memcpy_async(target, source, SIZE, kind, self.stream))


#: Every entry of the table that uses a device.
CALLS: dict[str, Callable[[Objects], int]] = {
    "device_synchronize": lambda of: of.hal.api.device_synchronize(of.device),
    "event_create": lambda of: of.hal.api.event_create(of.device, 0, byref(c_void_p())),
    "event_elapsed_ms": lambda of: of.hal.api.event_elapsed_ms(of.start, of.end, byref(c_float())),
    "event_query": lambda of: of.hal.api.event_query(of.end),
    "event_record": lambda of: of.hal.api.event_record(of.start, of.stream),
    "event_synchronize": lambda of: of.hal.api.event_synchronize(of.end),
    "malloc": lambda of: of.hal.api.malloc(of.device, SIZE, byref(c_void_p())),
    "memcpy_async:from_host": lambda of: of.copy(
        of.block, ctypes.addressof(of.host), MemcpyKind.HOST_TO_DEVICE
    ),
    "memcpy_async:to_host": lambda of: of.copy(
        ctypes.addressof(of.host), of.block, MemcpyKind.DEVICE_TO_HOST
    ),
    "memcpy_async:within": lambda of: of.copy(of.other, of.block, MemcpyKind.DEVICE_TO_DEVICE),
    "memset_async": lambda of: of.hal.api.memset_async(of.block, 1, SIZE, of.stream),
    "stream_create": lambda of: of.hal.api.stream_create(of.device, 0, byref(c_void_p())),
    "stream_query": lambda of: of.hal.api.stream_query(of.stream),
    "stream_synchronize": lambda of: of.hal.api.stream_synchronize(of.stream),
    "stream_wait_event": lambda of: of.hal.api.stream_wait_event(of.stream, of.end),
}


def _lose(hal: Driver, device: int) -> None:
    hal.ok(hal.fault().device_lost(device))


def _assert_says_lost(objects: Objects, call: Callable[[Objects], int]) -> None:
    """It is lost however often it is asked, and what was made before works after a reset."""
    hal = objects.hal
    hal.ok(call(objects))
    hal.synchronize(objects.stream)
    _lose(hal, objects.device)
    answers = [Status(call(objects)) for _ in range(2)]
    hal.ok(hal.fault().reset())
    assert answers == [Status.DEVICE_LOST] * 2
    hal.ok(call(objects))
    hal.synchronize(objects.stream)


@covers("HAL-134", needs=("events", "event_timing"))
@pytest.mark.parametrize("entry", CALLS)
def test_a_lost_device_says_so_until_it_is_reset(hal: Driver, entry: str) -> None:
    _assert_says_lost(Objects(hal, 0), CALLS[entry])
    assert_usable(hal)


@covers("HAL-134", needs=("events", "event_timing", "multi_device"))
@pytest.mark.parametrize("entry", CALLS)
def test_a_lost_second_device_says_so(hal: Driver, entry: str) -> None:
    other = Objects(hal, 0)
    objects = Objects(hal, 1)
    _assert_says_lost(objects, CALLS[entry])
    _lose(hal, 1)
    hal.ok(CALLS[entry](other))
    hal.ok(hal.fault().reset())


@covers("HAL-134", needs=("events", "event_timing", "host_func"))
def test_host_functions_of_a_lost_device_are_refused(hal: Driver) -> None:
    def call(of: Objects) -> int:
        return int(hal.api.stream_host_func(of.stream, of.flag.function, of.flag.address))

    objects = Objects(hal, 0)
    _assert_says_lost(objects, call)
    assert objects.flag.times() == 2


@covers("HAL-134", needs=("events", "event_timing", "kernels", "kernel_delay"))
def test_launches_on_a_lost_device_are_refused(hal: Driver) -> None:
    args = kernels.delay(0)
    _assert_says_lost(Objects(hal, 0), lambda of: hal.try_launch("delay", args, of.stream)[0])


@covers("HAL-134", needs=("events", "event_timing", "external_streams"))
def test_a_lost_device_gives_no_native_streams(hal: Driver) -> None:
    objects = Objects(hal, 0)
    native = hal.native(objects.stream)
    out = c_void_p()
    _assert_says_lost(objects, lambda _: hal.api.stream_native_handle(objects.stream, byref(out)))
    _assert_says_lost(objects, lambda of: hal.api.stream_from_native(0, native, byref(out)))


@covers("HAL-134", needs=("events", "event_timing", "graph"))
def test_a_lost_device_runs_no_graph(hal: Driver) -> None:
    objects, graph = Objects(hal, 0), hal.graph()
    with capturing(hal, objects.stream) as capture:
        hal.memset(objects.block, 7, SIZE, objects.stream)
    _assert_says_lost(objects, lambda of: graph.launch(capture.handle, of.stream))
    _lose(hal, 0)
    assert graph.capture_begin(objects.stream) == Status.DEVICE_LOST
    hal.ok(graph.destroy(capture.handle))
    hal.ok(hal.fault().reset())
    assert hal.read(objects.block, SIZE, objects.stream) == b"\7" * SIZE


@covers("HAL-134", needs=("graph",))
def test_a_capture_ends_when_its_device_is_lost(hal: Driver) -> None:
    stream, block, out = hal.stream(), hal.malloc(SIZE), c_void_p(0x5A5A)
    hal.ok(hal.graph().capture_begin(stream))
    hal.memset(block, 7, SIZE, stream)
    _lose(hal, 0)
    assert hal.api.memset_async(block, 8, SIZE, stream) == Status.DEVICE_LOST
    assert hal.graph().capture_end(stream, byref(out)) == Status.DEVICE_LOST
    assert out.value == 0x5A5A
    hal.ok(hal.fault().reset())
    is_capturing = c_int32(1)
    hal.ok(hal.graph().is_capturing(stream, byref(is_capturing)))
    assert is_capturing.value == 0
    assert_usable(hal)


@covers("HAL-134", needs=("events", "event_timing", "ipc"))
def test_a_lost_device_shares_no_memory(hal: Driver) -> None:
    objects, ipc = Objects(hal, 0), hal.ipc()
    handle = export(hal, objects.block)
    _lose(hal, 0)
    answers = [
        ipc.export_memory(objects.block, byref(abi.IpcMemoryHandle())),
        ipc.open_memory(0, byref(handle), byref(c_void_p())),
    ]
    assert answers == [Status.DEVICE_LOST] * 2
    hal.ok(hal.fault().reset())
    assert bytes(export(hal, objects.block)) == bytes(handle)


@covers("HAL-134", needs=("events", "event_timing"))
def test_what_a_lost_device_had_can_be_released(hal: Driver) -> None:
    objects = Objects(hal, 0)
    _lose(hal, 0)
    hal.ok(hal.api.free(objects.block))
    hal.ok(hal.api.event_destroy(objects.start))
    hal.ok(hal.api.stream_destroy(objects.stream))
    hal.ok(hal.fault().reset())
    assert_usable(hal)


@covers("HAL-134")
def test_a_lost_device_is_still_there(hal: Driver) -> None:
    """What is known of it without asking it stays known."""
    block = hal.malloc(SIZE)
    before = hal.count(), bytes(hal.properties()), bytes(hal.attributes(block))
    _lose(hal, 0)
    assert (hal.count(), bytes(hal.properties()), bytes(hal.attributes(block))) == before
    hal.ok(hal.fault().reset())


@covers("HAL-134", needs=("kernels", "kernel_delay"))
def test_a_waiting_call_comes_back_when_the_device_is_lost(hal: Driver) -> None:
    stream = hal.stream()
    with ThreadPoolExecutor(1) as pool:
        for _ in range(100):
            hal.delay(stream, FOR_EVER_MS)
        waiting = pool.submit(hal.api.stream_synchronize, stream)
        time.sleep(BRIEFLY)
        _lose(hal, 0)
        assert waiting.result(timeout=5) == Status.DEVICE_LOST
    hal.ok(hal.fault().reset())


@covers("HAL-134", needs=("events", "kernels", "kernel_delay"))
@pytest.mark.parametrize("by", ["stream", "event", "device"])
def test_calls_that_wait_for_another_stream_come_back_when_the_device_is_lost(
    hal: Driver, by: str
) -> None:
    busy, stream, event, last = hal.stream(), hal.stream(), hal.event(), hal.event()
    call, argument = {
        "stream": (hal.api.stream_synchronize, stream),
        "event": (hal.api.event_synchronize, last),
        "device": (hal.api.device_synchronize, 0),
    }[by]
    with ThreadPoolExecutor(1) as pool:
        hal.delay(busy, FOR_EVER_MS)
        hal.record(event, busy)
        hal.wait(stream, event)
        hal.record(last, stream)
        waiting = pool.submit(call, argument)
        time.sleep(BRIEFLY)
        assert not waiting.done()
        _lose(hal, 0)
        assert waiting.result(timeout=5) == Status.DEVICE_LOST
    hal.ok(hal.fault().reset())
    assert_usable(hal)


@covers("HAL-134", needs=("host_func",))
def test_pending_work_of_a_lost_device_is_dropped(hal: Driver) -> None:
    """Work that is queued when the device is lost does not run, also after the reset."""
    stream, block = hal.stream(), hal.malloc(SIZE)
    hal.memset(block, 1, SIZE, stream)
    hal.synchronize(stream)
    with ThreadPoolExecutor(1) as pool:
        with hal.held(stream):
            hal.memset(block, 2, SIZE, stream)
            dropped = hal.flag(stream)
            waiting = pool.submit(hal.api.stream_synchronize, stream)
            time.sleep(BRIEFLY)
            _lose(hal, 0)
        assert waiting.result(timeout=5) == Status.DEVICE_LOST
    hal.ok(hal.fault().reset())
    assert hal.read(block, SIZE, stream) == b"\1" * SIZE
    assert dropped.times() == 0


@covers("HAL-134", needs=("host_func", "events"))
def test_work_that_waits_for_another_stream_of_a_lost_device_is_dropped(hal: Driver) -> None:
    held, stream, event = hal.stream(), hal.stream(), hal.event()
    block = hal.malloc(SIZE)
    hal.memset(block, 1, SIZE, stream)
    hal.synchronize(stream)
    with hal.held(held):
        hal.record(event, held)
        hal.wait(stream, event)
        hal.memset(block, 2, SIZE, stream)
        dropped = hal.flag(stream)
        _lose(hal, 0)
    assert hal.api.stream_synchronize(held) == Status.DEVICE_LOST
    hal.ok(hal.fault().reset())
    assert hal.read(block, SIZE, stream) == b"\1" * SIZE
    assert dropped.times() == 0


@covers("HAL-134")
def test_losing_a_device_that_is_not_there_is_refused(hal: Driver) -> None:
    for index in (-1, hal.count()):
        assert hal.fault().device_lost(index) == Status.INVALID_DEVICE


@covers("HAL-135")
def test_other_devices_survive_the_loss_of_one(hal: Driver) -> None:
    lost_stream = hal.stream(device=1)
    _lose(hal, 1)
    assert_usable(hal)
    assert hal.api.stream_synchronize(lost_stream) == Status.DEVICE_LOST
    out = c_int32()
    hal.ok(hal.api.device_count(byref(out)))
    hal.ok(hal.fault().reset())


@covers("HAL-135", needs=("kernels", "kernel_delay"))
def test_work_of_other_devices_ends_in_its_time_when_one_is_lost(hal: Driver) -> None:
    lost, streams = hal.stream(device=1), [hal.stream() for _ in range(3)]
    begun = time.monotonic()
    for stream, milliseconds in zip(streams, (300, 900, 600), strict=True):
        hal.delay(stream, milliseconds)
    hal.launch("delay", kernels.delay(FOR_EVER_MS), lost, device=1)
    time.sleep(BRIEFLY)
    _lose(hal, 1)
    assert hal.api.stream_synchronize(lost) == Status.DEVICE_LOST
    assert hal.query(streams[0]) == Status.NOT_READY or time.monotonic() - begun >= 0.3
    for stream, seconds in zip((streams[0], streams[2], streams[1]), (0.3, 0.6, 0.9), strict=True):
        hal.synchronize(stream)
        assert time.monotonic() - begun >= seconds * 0.99
    assert time.monotonic() - begun < 5
    hal.ok(hal.fault().reset())


@covers("HAL-135", needs=("events", "host_func"))
def test_streams_of_other_devices_do_not_wait_for_a_lost_one_for_ever(hal: Driver) -> None:
    lost, stream, event = hal.stream(device=1), hal.stream(), hal.event(device=1)
    with hal.held(lost):
        hal.record(event, lost)
        hal.wait(stream, event)
        flag = hal.flag(stream)
        _lose(hal, 1)
    hal.synchronize(stream)
    assert flag.times() == 1
    hal.ok(hal.fault().reset())


@covers("HAL-135", needs=("peer",))
def test_memory_of_a_lost_device_cannot_be_copied(hal: Driver) -> None:
    """On a stream of another device, which is as usable as before."""
    here, there, stream = hal.malloc(SIZE), hal.malloc(SIZE, 1), hal.stream()
    kind = MemcpyKind.DEVICE_TO_DEVICE
    _lose(hal, 1)
    answers = [
        hal.api.memcpy_async(here, there, SIZE, kind, stream),
        hal.api.memcpy_async(there, here, SIZE, kind, stream),
        hal.api.memset_async(there, 1, SIZE, stream),
    ]
    assert answers == [Status.DEVICE_LOST] * 3
    hal.synchronize(stream)
    assert_usable(hal)
    hal.ok(hal.fault().reset())


@covers("HAL-135")
def test_each_of_two_lost_devices_is_lost(hal: Driver) -> None:
    for device in (0, 1):
        _lose(hal, device)
    answers = [hal.api.device_synchronize(device) for device in (0, 1)]
    assert answers == [Status.DEVICE_LOST] * 2
    hal.ok(hal.fault().reset())
    answers = [hal.api.device_synchronize(device) for device in (0, 1)]
    assert answers == [Status.OK] * 2
    assert wait_until(lambda: hal.query(hal.stream(1)) == Status.OK)
