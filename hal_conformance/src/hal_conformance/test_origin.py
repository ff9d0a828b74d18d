# SPDX-License-Identifier: BSD-3-Clause
"""The extension "origin": which work failed late."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_uint64, c_void_p

from hal_conformance import abi
from hal_conformance.abi import Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver


def failed(hal: Driver) -> int:
    out = c_uint64(12345)
    hal.ok(hal.origin().failed(byref(out)))
    return out.value


def fail_the_second_of_three(hal: Driver, stream: int, first: int) -> None:
    """Queue three launches with numbers from `first` on; the second fails when it runs."""
    hal.ok(hal.fault().kernel_error_at(2))
    for number in range(first, first + 3):
        hal.ok(hal.origin().set(number))
        hal.delay(stream, 0)
    hal.ok(hal.origin().set(0))


@covers("HAL-170")
def test_the_origin_table_is_whole(hal: Driver) -> None:
    origin = hal.origin()
    assert origin.version >= abi.ORIGIN_VERSION
    assert origin.struct_size >= ctypes.sizeof(abi.OriginApi)
    assert [name for name in abi.ORIGIN_ENTRIES if not getattr(origin, name)] == []
    assert origin.failed(None) == Status.INVALID_ARGUMENT


@covers("HAL-170")
def test_a_late_error_has_the_number_of_the_work_that_failed(hal: Driver) -> None:
    stream = hal.stream()
    fail_the_second_of_three(hal, stream, 70)
    assert hal.api.stream_synchronize(stream) == Status.INTERNAL
    message = hal.api.last_error_message()
    assert failed(hal) == failed(hal) == 71
    assert hal.api.last_error_message() == message


@covers("HAL-170")
def test_each_stream_reports_its_own_number(hal: Driver) -> None:
    streams = [hal.stream() for _ in range(3)]
    for index, stream in enumerate(streams):
        fail_the_second_of_three(hal, stream, 10 * index + 10)
    for index in (2, 0, 1):
        assert hal.api.stream_synchronize(streams[index]) == Status.INTERNAL
        assert failed(hal) == 10 * index + 11


@covers("HAL-170")
def test_work_without_a_number_has_none(hal: Driver) -> None:
    stream = hal.stream()
    fail_the_second_of_three(hal, stream, 70)
    assert hal.api.stream_synchronize(stream) == Status.INTERNAL
    hal.ok(hal.fault().kernel_error_at(1))
    hal.delay(stream, 0)
    assert hal.api.stream_synchronize(stream) == Status.INTERNAL
    assert failed(hal) == 0


@covers("HAL-170")
def test_numbers_and_errors_belong_to_threads(hal: Driver) -> None:
    stream, other = hal.stream(), hal.stream()
    hal.ok(hal.origin().set(5))
    thread = threading.Thread(target=fail_the_second_of_three, args=(hal, stream, 70))
    thread.start()
    thread.join()
    hal.ok(hal.fault().kernel_error_at(1))
    hal.delay(other, 0)
    hal.ok(hal.origin().set(0))
    assert hal.api.stream_synchronize(other) == Status.INTERNAL
    assert failed(hal) == 5
    assert hal.api.stream_synchronize(stream) == Status.INTERNAL
    assert failed(hal) == 71


@covers("HAL-171")
def test_captured_work_keeps_its_number(hal: Driver) -> None:
    stream, graph = hal.stream(), c_void_p()
    hal.ok(hal.graph().capture_begin(stream))
    for number in (40, 41):
        hal.ok(hal.origin().set(number))
        hal.delay(stream, 0)
    hal.ok(hal.graph().capture_end(stream, byref(graph)))
    hal.ok(hal.graph().instantiate(graph))
    hal.ok(hal.origin().set(99))
    for _ in range(2):
        hal.ok(hal.fault().kernel_error_at(2))
        hal.ok(hal.graph().launch(graph, stream))
        assert hal.api.stream_synchronize(stream) == Status.INTERNAL
        assert failed(hal) == 41
    hal.ok(hal.origin().set(0))
    hal.ok(hal.graph().destroy(graph))
