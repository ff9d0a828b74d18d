# SPDX-License-Identifier: BSD-3-Clause
"""The extension "trace": what the device did, and when."""

from __future__ import annotations

import ctypes
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, byref, c_uint64

from hal_conformance import abi
from hal_conformance.abi import MemcpyKind, Status, TraceKind, TraceRecord
from hal_conformance.covers import covers
from hal_conformance.driver import Driver

SIZE = 4096
TOLERANCE_NS = 1_000_000


def stopped(hal: Driver) -> list[TraceRecord]:
    """Stop the trace; its records."""
    records, count = POINTER(TraceRecord)(), c_uint64()
    hal.ok(hal.trace().stop(byref(records), byref(count)))
    return [records[index] for index in range(count.value)]


def correlation(hal: Driver) -> int:
    out = c_uint64()
    hal.ok(hal.trace().correlation(byref(out)))
    return out.value


@covers("HAL-160")
def test_the_trace_table_is_whole(hal: Driver) -> None:
    trace = hal.trace()
    assert trace.version >= abi.TRACE_VERSION
    assert trace.struct_size >= ctypes.sizeof(abi.TraceApi)
    assert [name for name in abi.TRACE_ENTRIES if not getattr(trace, name)] == []


@covers("HAL-160", needs=("kernels", "kernel_delay", "host_func"))
def test_each_piece_of_work_has_its_record(hal: Driver) -> None:
    stream, other = hal.stream(), hal.stream()
    block, target = hal.malloc(SIZE), hal.malloc(SIZE)
    hal.memset(block, 1, SIZE, stream)
    hal.ok(hal.trace().start())
    hal.memset(block, 2, SIZE, stream)
    hal.copy(target, block, 100, MemcpyKind.DEVICE_TO_DEVICE, other)
    hal.delay(stream, 1)
    hal.flag(stream)
    records = stopped(hal)
    hal.memset(block, 3, SIZE, stream)
    assert [(TraceKind(r.kind), r.bytes, r.stream, r.device) for r in records] == [
        (TraceKind.FILL, SIZE, stream, 0),
        (TraceKind.COPY, 100, other, 0),
        (TraceKind.KERNEL, 0, stream, 0),
        (TraceKind.HOST_FUNC, 0, stream, 0),
    ]
    assert records[2].name == b"delay"
    assert all(record.name for record in records)


@covers("HAL-160")
def test_a_second_trace_knows_nothing_of_the_first(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    for size in (10, 20):
        hal.ok(hal.trace().start())
        hal.memset(block, 1, size, stream)
        assert [record.bytes for record in stopped(hal)] == [size]
    hal.ok(hal.trace().start())
    assert stopped(hal) == []


@covers("HAL-160", needs=("graph",))
def test_a_launch_of_a_graph_is_one_record(hal: Driver) -> None:
    stream, block, graph, out = hal.stream(), hal.malloc(SIZE), hal.graph(), ctypes.c_void_p()
    hal.ok(hal.trace().start())
    hal.ok(graph.capture_begin(stream))
    hal.memset(block, 1, SIZE, stream)
    hal.ok(graph.capture_end(stream, byref(out)))
    hal.ok(graph.instantiate(out))
    hal.ok(graph.launch(out, stream))
    assert [TraceKind(record.kind) for record in stopped(hal)] == [TraceKind.GRAPH]


@covers("HAL-161")
def test_records_tell_when_the_work_ran(hal: Driver) -> None:
    stream = hal.stream()
    hal.delay(stream, 1)
    hal.synchronize(stream)
    hal.ok(hal.trace().start())
    started = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for milliseconds in (5, 20):
        hal.delay(stream, milliseconds)
    records = stopped(hal)
    ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for milliseconds, record in zip((5, 20), records, strict=True):
        assert started - TOLERANCE_NS <= record.begin_ns <= record.end_ns <= ended + TOLERANCE_NS
        assert record.end_ns - record.begin_ns >= milliseconds * 0.99e6
    assert records[0].end_ns <= records[1].begin_ns + TOLERANCE_NS


@covers("HAL-161", needs=("memory",))
def test_records_of_a_stream_follow_each_other(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    hal.ok(hal.trace().start())
    for value in range(100):
        hal.memset(block, value, SIZE, stream)
    records = stopped(hal)
    assert len(records) == 100
    # A microsecond is what the clocks of events resolve.
    for before, after in itertools.pairwise(records):
        assert before.begin_ns <= after.begin_ns + 1000
        assert before.end_ns <= after.begin_ns + 1000


@covers("HAL-162")
def test_correlations_tie_records_to_calls(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)

    def traced(value: int) -> list[int]:
        mine = []
        for _ in range(20):
            hal.memset(block, value, SIZE, stream)
            mine.append(correlation(hal))
        return mine

    with ThreadPoolExecutor(4) as pool:
        hal.ok(hal.trace().start())
        calls = list(pool.map(traced, range(4)))
    found = [record.correlation for record in stopped(hal)]
    assert sorted(found) == sorted(itertools.chain(*calls))
    assert len(set(found)) == 80
    assert 0 not in found


@covers("HAL-163")
def test_traces_are_started_and_stopped_in_pairs(hal: Driver) -> None:
    trace, records, count = hal.trace(), POINTER(TraceRecord)(), c_uint64()
    assert trace.stop(byref(records), byref(count)) == Status.INVALID_ARGUMENT
    hal.ok(trace.start())
    assert trace.start() == Status.INVALID_ARGUMENT
    hal.ok(trace.stop(byref(records), byref(count)))
    assert trace.stop(byref(records), byref(count)) == Status.INVALID_ARGUMENT


@covers("HAL-163", needs=("validation",))
def test_null_is_refused(hal: Driver) -> None:
    trace, records, count = hal.trace(), POINTER(TraceRecord)(), c_uint64()
    hal.ok(trace.start())
    answers = [
        trace.stop(None, byref(count)),
        trace.stop(byref(records), None),
        trace.correlation(None),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * len(answers)
    hal.ok(trace.stop(byref(records), byref(count)))
