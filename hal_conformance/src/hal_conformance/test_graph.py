# SPDX-License-Identifier: BSD-3-Clause
"""The extension "graph": capturing work from streams and launching it again and again."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int32, c_void_p

import pytest

from hal_conformance import abi, kernels
from hal_conformance.abi import MemcpyKind, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver, Flag

SIZE = 4096
D2D = MemcpyKind.DEVICE_TO_DEVICE


class Capture:
    """A graph under construction; `handle` is there when the block that captures has ended."""

    handle: int


@contextmanager
def capturing(hal: Driver, stream: int) -> Iterator[Capture]:
    """Capture what the block queues on `stream`, and instantiate it."""
    capture, graph, out = Capture(), hal.graph(), c_void_p()
    hal.ok(graph.capture_begin(stream))
    yield capture
    hal.ok(graph.capture_end(stream, byref(out)))
    assert out.value, "capture_end returned OK and NULL"
    capture.handle = out.value
    hal.ok(graph.instantiate(capture.handle))


def is_capturing(hal: Driver, stream: int) -> bool:
    out = c_int32()
    hal.ok(hal.graph().is_capturing(stream, byref(out)))
    return bool(out.value)


def launch(hal: Driver, capture: Capture, stream: int) -> None:
    hal.ok(hal.graph().launch(capture.handle, stream))


@covers("HAL-150")
def test_the_graph_table_is_whole(hal: Driver) -> None:
    graph = hal.graph()
    assert graph.version >= abi.GRAPH_VERSION
    assert graph.struct_size >= ctypes.sizeof(abi.GraphApi)
    assert [name for name in abi.GRAPH_ENTRIES if not getattr(graph, name)] == []


@covers("HAL-150")
def test_captured_work_runs_at_each_launch_only(hal: Driver) -> None:
    stream, block, other = hal.stream(), hal.malloc(SIZE), hal.malloc(SIZE)
    hal.memset(block, 1, SIZE, stream)
    hal.memset(other, 1, SIZE, stream)
    assert not is_capturing(hal, stream)
    with capturing(hal, stream) as capture:
        assert is_capturing(hal, stream)
        hal.memset(block, 7, SIZE, stream)
        hal.copy(other, block, SIZE, D2D, stream)
        hal.memset(block, 8, SIZE, stream)
    assert not is_capturing(hal, stream)
    assert hal.read(other, SIZE, stream) == b"\x01" * SIZE
    for _ in range(3):
        hal.memset(block, 2, SIZE, stream)
        hal.memset(other, 2, SIZE, stream)
        launch(hal, capture, stream)
        assert hal.read(block, SIZE, stream) == b"\x08" * SIZE
        assert hal.read(other, SIZE, stream) == b"\x07" * SIZE


@covers("HAL-150", needs=("kernels", "kernel_fill"))
def test_a_graph_keeps_the_arguments_of_its_kernels(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    args = kernels.fill([SIZE], (block, [1]), b"\x11")
    with capturing(hal, stream) as capture:
        hal.launch("fill", args, stream)
    ctypes.memset(byref(args), 0xFF, ctypes.sizeof(args))
    for _ in range(2):
        hal.memset(block, 0, SIZE, stream)
        launch(hal, capture, stream)
        assert hal.read(block, SIZE, stream) == b"\x11" * SIZE


@covers("HAL-150")
def test_an_empty_graph_can_be_launched(hal: Driver) -> None:
    stream = hal.stream()
    with capturing(hal, stream) as capture:
        pass
    launch(hal, capture, stream)
    hal.synchronize(stream)


@covers("HAL-151")
def test_a_graph_runs_in_its_streams_order(hal: Driver) -> None:
    """On a stream other than the captured one; each step reads what the one before wrote."""
    captured, stream = hal.stream(), hal.stream()
    first, second, third = (hal.malloc(SIZE) for _ in range(3))
    with capturing(hal, captured) as capture:
        hal.copy(second, first, SIZE, D2D, captured)
    for value in range(50):
        hal.memset(first, value, SIZE, stream)
        launch(hal, capture, stream)
        hal.copy(third, second, SIZE, D2D, stream)
        hal.memset(first, 0xEE, SIZE, stream)
        hal.memset(second, 0xEE, SIZE, stream)
    assert hal.read(third, SIZE, stream) == bytes([49]) * SIZE


@covers("HAL-151", needs=("host_func",))
def test_a_launch_is_queued(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    with capturing(hal, stream) as capture:
        hal.memset(block, 7, SIZE, stream)
    with hal.held(stream):
        launch(hal, capture, stream)
        assert hal.query(stream) == Status.NOT_READY
    assert hal.read(block, SIZE, stream) == b"\x07" * SIZE


@covers("HAL-152")
def test_a_capture_spreads_over_streams_by_events(hal: Driver) -> None:
    stream, side = hal.stream(), hal.stream()
    block, other = hal.malloc(SIZE), hal.malloc(SIZE)
    fork, join = hal.event(), hal.event()
    with capturing(hal, stream) as capture:
        hal.memset(block, 7, SIZE, stream)
        hal.record(fork, stream)
        hal.wait(side, fork)
        assert is_capturing(hal, side)
        hal.copy(other, block, SIZE, D2D, side)
        hal.record(join, side)
        hal.wait(stream, join)
        hal.memset(block, 8, SIZE, stream)
    assert not is_capturing(hal, side)
    for _ in range(20):
        hal.memset(other, 0, SIZE, stream)
        launch(hal, capture, stream)
        assert hal.read(other, SIZE, stream) == b"\x07" * SIZE
        assert hal.read(block, SIZE, stream) == b"\x08" * SIZE
    hal.memset(other, 9, SIZE, side)
    assert hal.read(other, SIZE, side) == b"\x09" * SIZE


@covers("HAL-153")
def test_what_is_captured_cannot_be_waited_for(hal: Driver) -> None:
    stream, block, event = hal.stream(), hal.malloc(SIZE), hal.event()
    with capturing(hal, stream) as capture:
        hal.memset(block, 7, SIZE, stream)
        hal.record(event, stream)
        answers = [
            hal.api.stream_query(stream),
            hal.api.stream_synchronize(stream),
            hal.api.stream_destroy(stream),
            hal.api.event_query(event),
            hal.api.event_synchronize(event),
        ]
        assert answers == [Status.INVALID_ARGUMENT] * len(answers)
        hal.memset(block + 1, 8, 1, stream)
    launch(hal, capture, stream)
    assert hal.read(block, 3, stream) == b"\x07\x08\x07"


@covers("HAL-153")
def test_everything_else_goes_on_beside_a_capture(hal: Driver) -> None:
    stream, free, event = hal.stream(), hal.stream(), hal.event()
    with capturing(hal, stream) as capture:
        block = hal.malloc(SIZE)
        hal.memset(block, 7, SIZE, stream)
        hal.memset(block, 5, SIZE, free)
        hal.record(event, free)
        hal.ok(hal.api.event_synchronize(event))
        assert hal.read(block, SIZE, free) == b"\x05" * SIZE
        hal.ok(hal.api.device_synchronize(0))
        hal.free(hal.malloc(SIZE))
    launch(hal, capture, stream)
    assert hal.read(block, SIZE, stream) == b"\x07" * SIZE


def assert_works(hal: Driver, stream: int) -> None:
    assert not is_capturing(hal, stream)
    hal.flag(stream)
    hal.synchronize(stream)


@covers("HAL-154", needs=("host_func",))
def test_captures_are_begun_and_ended_in_pairs(hal: Driver) -> None:
    stream, graph, out = hal.stream(), hal.graph(), c_void_p(0x5A5A)
    assert graph.capture_end(stream, byref(out)) == Status.INVALID_ARGUMENT
    assert out.value == 0x5A5A
    with capturing(hal, stream):
        assert graph.capture_begin(stream) == Status.INVALID_ARGUMENT
    assert graph.capture_end(stream, byref(out)) == Status.INVALID_ARGUMENT
    assert_works(hal, stream)


@covers("HAL-154", needs=("host_func", "events"))
def test_a_capture_with_a_stream_left_over_fails(hal: Driver) -> None:
    stream, side, event, out = hal.stream(), hal.stream(), hal.event(), c_void_p(0x5A5A)
    hal.ok(hal.graph().capture_begin(stream))
    hal.record(event, stream)
    hal.wait(side, event)
    hal.flag(side)
    assert hal.graph().capture_end(stream, byref(out)) == Status.INVALID_ARGUMENT
    assert out.value == 0x5A5A
    for each in (stream, side):
        assert_works(hal, each)


@covers("HAL-154")
def test_a_graph_is_launched_when_it_is_ready_only(hal: Driver) -> None:
    stream, graph, out = hal.stream(), hal.graph(), c_void_p()
    hal.ok(graph.capture_begin(stream))
    hal.ok(graph.capture_end(stream, byref(out)))
    assert graph.launch(out, stream) == Status.INVALID_ARGUMENT
    for _ in range(2):
        hal.ok(graph.instantiate(out))
    hal.ok(graph.launch(out, stream))
    hal.synchronize(stream)
    hal.ok(graph.destroy(out))
    hal.ok(graph.destroy(None))


@covers("HAL-154", needs=("multi_device",))
def test_a_graph_stays_on_its_device(hal: Driver) -> None:
    stream = hal.stream(0)
    with capturing(hal, stream) as capture:
        pass
    status = hal.graph().launch(capture.handle, hal.stream(1))
    assert status == Status.INVALID_ARGUMENT


@covers("HAL-154", needs=("validation",))
def test_null_is_refused(hal: Driver) -> None:
    graph, stream = hal.graph(), hal.stream()
    answers = [
        graph.capture_begin(None),
        graph.capture_end(None, byref(c_void_p())),
        graph.capture_end(stream, None),
        graph.is_capturing(stream, None),
        graph.instantiate(None),
        graph.launch(None, stream),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * len(answers)


@covers("HAL-155")
@pytest.mark.parametrize("launches", [1, 5])
def test_queued_launches_outlive_the_graph(hal: Driver, launches: int) -> None:
    stream, block, flag = hal.stream(), hal.malloc(SIZE), hal.keep(Flag())
    with capturing(hal, stream) as capture:
        hal.ok(hal.api.stream_host_func(stream, flag.function, flag.address))
        hal.memset(block, 7, SIZE, stream)
    with hal.held(stream):
        for _ in range(launches):
            launch(hal, capture, stream)
        hal.ok(hal.graph().destroy(capture.handle))
        assert flag.times() == 0
    assert hal.read(block, SIZE, stream) == b"\x07" * SIZE
    assert flag.times() == launches
