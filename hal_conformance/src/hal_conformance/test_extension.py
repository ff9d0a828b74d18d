# SPDX-License-Identifier: BSD-3-Clause
"""Extensions, and through the fault extension the way of asynchronous errors."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from ctypes import byref, c_void_p

import pytest

from hal_conformance import abi
from hal_conformance.abi import MemcpyKind, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver
from hal_conformance.test_memory import _assert_usable as assert_usable
from hal_conformance.test_stream import wait_until

SIZE = 4096
NO_FAULT = {"device": 0}


@covers("HAL-130")
@pytest.mark.parametrize("name", [b"", b"no_such_extension", b"FAULT"])
def test_an_unknown_extension_is_unsupported(hal: Driver, name: bytes) -> None:
    out = c_void_p(0x5A5A)
    assert hal.api.get_extension(name, 1, byref(out)) == Status.UNSUPPORTED
    assert out.value == 0x5A5A


@covers("HAL-130")
def test_a_newer_version_of_an_extension_is_unsupported(hal: Driver) -> None:
    out = c_void_p(0x5A5A)
    status = hal.api.get_extension(abi.FAULT_EXTENSION, 0xFFFFFFFF, byref(out))
    assert (status, out.value) == (Status.UNSUPPORTED, 0x5A5A)


@covers(
    "HAL-130",
    needs=(
        "device",
        "validation",
    ),
)
def test_a_null_extension_name_is_refused(hal: Driver) -> None:
    assert hal.api.get_extension(None, 1, byref(c_void_p())) == Status.INVALID_ARGUMENT


@covers("HAL-130", needs=("fault",))
def test_the_fault_table_is_whole(hal: Driver) -> None:
    fault = hal.fault()
    assert fault.version >= abi.FAULT_VERSION
    assert fault.struct_size >= ctypes.sizeof(abi.FaultApi)
    assert [name for name in abi.FAULT_ENTRIES if not getattr(fault, name)] == []


def _malloc_status(hal: Driver) -> Status:
    return Status(hal.api.malloc(0, SIZE, byref(c_void_p())))


@covers("HAL-131")
@pytest.mark.parametrize("nth", [1, 3])
def test_the_nth_allocation_fails_once(hal: Driver, nth: int) -> None:
    hal.ok(hal.fault().out_of_memory_at(nth))
    statuses = [_malloc_status(hal) for _ in range(5)]
    expected = [Status.OK] * 5
    expected[nth - 1] = Status.OUT_OF_MEMORY
    assert statuses == expected


@covers("HAL-131")
@pytest.mark.parametrize("clear", ["zero", "reset"])
def test_a_planted_failure_can_be_cleared(hal: Driver, clear: str) -> None:
    fault = hal.fault()
    hal.ok(fault.out_of_memory_at(1))
    hal.ok(fault.out_of_memory_at(0) if clear == "zero" else fault.reset())
    assert _malloc_status(hal) == Status.OK


def _plant_kernel_error(hal: Driver, stream: int) -> None:
    """Queue a launch that is accepted and fails when it runs."""
    hal.ok(hal.fault().kernel_error_at(1))
    hal.delay(stream, 0)


@covers("HAL-132")
@pytest.mark.parametrize("clear", ["zero", "reset"])
def test_a_planted_kernel_error_can_be_cleared(hal: Driver, clear: str) -> None:
    fault, stream = hal.fault(), hal.stream()
    hal.ok(fault.kernel_error_at(2))
    hal.ok(fault.kernel_error_at(0) if clear == "zero" else fault.reset())
    for _ in range(3):
        hal.delay(stream, 0)
    hal.synchronize(stream)


def _until_reported(call: Callable[[], int]) -> int:
    """The first answer of a query that is not NOT_READY."""
    answers = []

    def ready() -> bool:
        answers.append(call())
        return answers[-1] != Status.NOT_READY

    assert wait_until(ready)
    return answers[-1]


@covers("HAL-132")
@pytest.mark.parametrize("by", ["stream_synchronize", "device_synchronize", "stream_query"])
def test_an_asynchronous_error_is_reported_once_by_name(hal: Driver, by: str) -> None:
    stream = hal.stream()
    _plant_kernel_error(hal, stream)
    argument = 0 if by == "device_synchronize" else stream
    call = getattr(hal.api, by)
    assert _until_reported(lambda: call(argument)) == Status.INTERNAL
    assert "delay" in hal.message()
    hal.ok(hal.api.stream_synchronize(stream))
    hal.ok(hal.api.device_synchronize(0))
    assert_usable(hal)


@covers("HAL-132", needs=("events",))
@pytest.mark.parametrize("by", ["event_synchronize", "event_query"])
def test_an_asynchronous_error_is_reported_by_an_event(hal: Driver, by: str) -> None:
    stream, event = hal.stream(), hal.event()
    _plant_kernel_error(hal, stream)
    hal.record(event, stream)
    call = getattr(hal.api, by)
    assert _until_reported(lambda: call(event)) == Status.INTERNAL
    assert "delay" in hal.message()
    hal.synchronize(stream)


@covers("HAL-132", needs=("events",))
@pytest.mark.parametrize("by", ["event_synchronize", "event_query"])
def test_an_event_before_an_asynchronous_error_does_not_report_it(hal: Driver, by: str) -> None:
    stream, other = hal.stream(), hal.stream()
    before, after = hal.event(), hal.event()
    hal.delay(stream, 0)
    hal.record(before, stream)
    _plant_kernel_error(hal, stream)
    hal.record(after, stream)
    hal.ok(hal.api.stream_wait_event(other, after))
    hal.synchronize(other)  # the work has failed, and nobody has reported it
    hal.ok(getattr(hal.api, by)(before))
    assert hal.api.stream_synchronize(stream) == Status.INTERNAL
    hal.synchronize(stream)


@covers("HAL-132")
def test_a_stream_does_not_report_anothers_error(hal: Driver) -> None:
    bad, good = hal.stream(), hal.stream()
    _plant_kernel_error(hal, bad)
    hal.delay(good, 1)
    hal.synchronize(good)
    assert hal.api.stream_synchronize(bad) == Status.INTERNAL


@covers("HAL-132", needs=("multi_device",))
def test_a_device_does_not_report_anothers_error(hal: Driver) -> None:
    stream = hal.stream(device=1)
    _plant_kernel_error(hal, stream)
    hal.ok(hal.api.device_synchronize(0))
    assert hal.api.device_synchronize(1) == Status.INTERNAL


@covers("HAL-132")
def test_only_the_nth_launch_fails(hal: Driver) -> None:
    stream, statuses = hal.stream(), []
    hal.ok(hal.fault().kernel_error_at(3))
    for _ in range(5):
        hal.delay(stream, 0)
        statuses.append(hal.api.stream_synchronize(stream))
    assert statuses == [0, 0, Status.INTERNAL, 0, 0]


@covers("HAL-132", needs=("events",))
def test_only_launches_count(hal: Driver) -> None:
    stream, event, memory = hal.stream(), hal.event(), hal.malloc(64)
    hal.ok(hal.fault().kernel_error_at(1))
    hal.write(memory, bytes(64), stream)
    hal.memset(memory, 1, 64, stream)
    hal.record(event, stream)
    hal.wait(stream, event)
    assert hal.read(memory, 64, stream) == b"\x01" * 64
    hal.delay(stream, 0)
    assert hal.api.stream_synchronize(stream) == Status.INTERNAL


@covers("HAL-132", needs=("multi_device",))
def test_device_synchronize_reports_the_error_of_any_stream(hal: Driver) -> None:
    streams = [hal.stream() for _ in range(4)]
    hal.delay(streams[0], 1)
    _plant_kernel_error(hal, streams[2])
    assert hal.api.device_synchronize(0) == Status.INTERNAL
    hal.ok(hal.api.device_synchronize(0))


@covers("HAL-133")
def test_a_host_function_is_skipped_after_an_error(hal: Driver) -> None:
    stream = hal.stream()
    with hal.held(stream):
        _plant_kernel_error(hal, stream)
        skipped = hal.flag(stream)
    assert hal.api.stream_synchronize(stream) == Status.INTERNAL
    after = hal.flag(stream)
    hal.synchronize(stream)
    assert (skipped.times(), after.times()) == (0, 1)


@covers("HAL-136")
def test_latency_slows_every_piece_of_work(hal: Driver) -> None:
    block, other, stream = hal.malloc(SIZE), hal.malloc(SIZE), hal.stream()

    def work() -> float:
        started = time.monotonic()
        hal.memset(block, 1, SIZE, stream)
        hal.copy(other, block, SIZE, MemcpyKind.DEVICE_TO_DEVICE, stream)
        hal.synchronize(stream)
        return time.monotonic() - started

    hal.ok(hal.fault().latency_ns(40_000_000))
    assert work() >= 0.079
    hal.ok(hal.fault().latency_ns(0))
    assert min(work() for _ in range(3)) < 0.079
