# SPDX-License-Identifier: BSD-3-Clause
"""Streams: order, concurrency, waiting, the current stream, priorities, and leaks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

from torch_conformance.authoring.api import (
    FULL,
    LATE_MS,
    Device,
    becomes_true,
    check,
    footprint,
    in_thread,
    in_threads,
    raised,
    while_held,
)

N = 4096


def _zeros(dev: Device, index: int = 0) -> torch.Tensor:
    return torch.zeros(N, device=dev.device(index))


def _full(value: float) -> torch.Tensor:
    return torch.full((N,), float(value))


# ---- objects ---------------------------------------------------------------------------------


@check("stream/create:default_device", "STREAM-001", needs=("streams",))
def streams_are_created_on_the_current_device(dev: Device) -> None:
    """torch.Stream() is a stream of the current device."""
    assert torch.Stream().device == dev.device(torch.accelerator.current_device_index())


@check("stream/create:type", "STREAM-001", needs=("streams",))
def streams_are_created_by_type(dev: Device) -> None:
    """torch.Stream takes the device type without an index."""
    assert torch.Stream(device=dev.type).device.type == dev.type


@check("stream/create:indexed", "STREAM-001", needs=("streams",))
def streams_are_created_on_the_device_asked_for(dev: Device) -> None:
    """torch.Stream takes a device with an index."""
    last = dev.device(dev.count - 1)
    assert torch.Stream(device=last).device == last


@check("stream/create:every_device", "STREAM-001", needs=("streams",))
def streams_of_every_device_work(dev: Device) -> None:
    """A new stream of every device is usable at once."""
    for index in range(dev.count):
        with dev.stream(index) as stream:
            dev.assert_equal(torch.ones(3, device=stream.device), torch.ones(3))


@check("stream/create:device_attributes", "STREAM-001", needs=("streams",))
def streams_know_their_device(dev: Device) -> None:
    """A stream has the index of its device and a number."""
    stream = dev.stream(0)
    assert stream.device_index == 0
    assert isinstance(stream.stream_id, int)
    assert torch.device(dev.type, stream.device_index) == stream.device


@check("stream/create:module_class", "STREAM-001", needs=("streams",))
def streams_are_created_by_the_module(dev: Device) -> None:
    """torch.<type>.Stream makes streams of the device asked for that are usable at once."""
    last = dev.device(dev.count - 1)
    assert dev.module.Stream(last).device == last
    stream = dev.module.Stream()
    assert isinstance(stream, torch.Stream)
    with stream:
        dev.assert_equal(torch.ones(3, device=dev.type), torch.ones(3))


def _current_in(dev: Device, stream: torch.Stream) -> torch.Stream:
    """What is current inside a stream: another handle of it."""
    with stream:
        return dev.current_stream(0)


def _rebuilt(stream: torch.Stream) -> torch.Stream:
    return torch.Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )


#: What holds for two streams of device 0.
_IDENTITY: dict[str, Callable[[Device, torch.Stream, torch.Stream], bool]] = {
    "equal": lambda dev, a, b: _current_in(dev, a) == a,
    "unequal": lambda dev, a, b: (
        a != b and a.stream_id != b.stream_id and a != dev.current_stream(0)
    ),
    "hash": lambda dev, a, b: len({a, _current_in(dev, a), b}) == 2,
    "rebuilt": lambda dev, a, b: _rebuilt(a) == a and hash(_rebuilt(a)) == hash(a),
    "other_type": lambda dev, a, b: a != torch.Stream(device="cpu") and (a == 3) is False,
    "text": lambda dev, a, b: dev.type in repr(a),
}


@check("stream/identity", "STREAM-002", cases=_IDENTITY, needs=("streams",))
def streams_compare_by_identity(dev: Device, case: str) -> None:
    """Two handles of a stream are equal and hash alike; other streams are not equal."""
    a, b = dev.stream(0), dev.stream(0)
    assert _IDENTITY[case](dev, a, b), f"it does not hold for {a!r} and {b!r}"


@check("stream/identity:other_device", "STREAM-002", needs=("streams",))
def streams_of_different_devices_are_not_equal(dev: Device) -> None:
    """The current streams of two devices are not equal."""
    dev.require("multi_device")
    assert dev.current_stream(0) != dev.current_stream(dev.count - 1)


_PRIORITIES = {"high": -1, "low": 1, "default": 0}


@check("stream/priority", "STREAM-003", cases=_PRIORITIES, needs=("stream_priorities",))
def priorities_are_accepted(dev: Device, case: str) -> None:
    """Streams of a high, low and default priority are made and work."""
    try:
        stream = dev.stream(0, priority=_PRIORITIES[case])
    except (RuntimeError, ValueError) as error:
        raise AssertionError(f"priority {_PRIORITIES[case]} was refused: {error}") from error
    _verify_usable(dev, stream)


@check("stream/priority:out_of_range", "STREAM-003", needs=("stream_priorities",))
def priorities_out_of_range_are_clamped_or_refused(dev: Device) -> None:
    """A stream of a priority that no device has works or is refused with an exception."""
    try:
        stream = dev.stream(0, priority=-1000)
    except (RuntimeError, ValueError):
        return
    _verify_usable(dev, stream)


@check("stream/priority:read_back", "STREAM-058", needs=("stream_priorities",))
def priorities_can_be_read(dev: Device) -> None:
    """A stream of the module has, on each device, the priority that it was made with."""
    make, ask = dev.module.Stream, getattr(dev.module.Stream, "priority_range", None)
    if ask is None or not hasattr(make, "priority"):
        dev.unsupported("streams of the device module have no priority and priority_range()")
    least, greatest = ask()
    assert greatest <= 0 <= least, f"least {least}, greatest {greatest}"
    for index in {0, dev.count - 1}:
        streams = {priority: make(index, priority) for priority in range(greatest, least + 1)}
        assert {p: stream.priority for p, stream in streams.items()} == {p: p for p in streams}
        for outside, nearest in ((greatest - 7, greatest), (least + 7, least)):
            assert make(index, outside).priority == nearest


@check("stream/priority:mixed_order", "STREAM-003", needs=("stream_priorities", "delay"))
def priorities_change_no_order(dev: Device) -> None:
    """Work of high priority that waits for work of low priority runs after it."""
    x = _zeros(dev)
    dev.synchronize()
    low, high = dev.stream(0, priority=0), dev.stream(0, priority=-1)
    with low:
        dev.delay(LATE_MS)
        x.fill_(1)
    high.wait_stream(low)
    with high:
        x.mul_(3)
    dev.assert_equal(x, _full(3))


def _verify_usable(dev: Device, stream: torch.Stream) -> None:
    x = _zeros(dev)
    dev.synchronize()
    with stream:
        x.fill_(1).add_(1)
    stream.synchronize()
    dev.assert_equal(x, _full(2))


@check("stream/native_handle:integer", "STREAM-004", needs=("streams", "native_handle"))
def native_handles_are_integers(dev: Device) -> None:
    """native_handle is a number other than zero."""
    stream: Any = dev.stream(0)  # Torch's stubs lack native_handle.
    assert isinstance(stream.native_handle, int) and stream.native_handle != 0


@check("stream/native_handle:distinct", "STREAM-004", needs=("streams", "native_handle"))
def native_handles_are_distinct(dev: Device) -> None:
    """Two streams have different native handles."""
    a: Any = dev.stream(0)
    b: Any = dev.stream(0)
    assert a.native_handle != b.native_handle


@check("stream/native_handle:stable", "STREAM-004", needs=("streams", "native_handle"))
def native_handles_do_not_change(dev: Device) -> None:
    """Every handle of a stream has the same native handle."""
    stream: Any = dev.stream(0)
    handle = stream.native_handle
    with stream:
        current: Any = dev.current_stream(0)
        assert current.native_handle == handle


# ---- busy and done ---------------------------------------------------------------------------


@check("stream/query:idle", "STREAM-010", needs=("streams", "delay"))
def query_of_an_idle_stream_is_true(dev: Device) -> None:
    """query() is True once a stream was synchronised."""
    stream = dev.stream()
    with stream:
        _zeros(dev)
    stream.synchronize()
    assert stream.query() is True, "an idle stream claims to be busy"


@check("stream/query:busy", "STREAM-010", needs=("streams", "delay"))
def query_of_a_busy_stream_is_false(dev: Device) -> None:
    """query() is False while work is pending, and never waits."""
    with dev.stream() as stream:
        assert while_held(dev, stream.query) is False, "a busy stream claims to be done"


@check("stream/query:done_after_synchronize", "STREAM-010", needs=("streams", "delay"))
def query_after_synchronize_is_true(dev: Device) -> None:
    """query() is True after synchronize() waited for work."""
    with dev.stream() as stream:
        dev.delay(LATE_MS)
        stream.synchronize()
        assert stream.query() is True


@check("stream/query:done_by_itself", "STREAM-010", needs=("streams", "delay"))
def query_becomes_true(dev: Device) -> None:
    """query() becomes True when the work is done, also if no call waits for it."""
    with dev.stream() as stream:
        dev.delay(LATE_MS)
        assert becomes_true(stream.query), "query() never becomes True"


@check("stream/query:never_used", "STREAM-010", needs=("streams", "delay"))
def query_of_an_unused_stream_is_true(dev: Device) -> None:
    """query() of a new stream is True."""
    assert dev.stream().query() is True


@check("stream/query_default", "STREAM-010", needs=("streams", "delay"))
def query_of_the_default_stream_is_true_to_it(dev: Device) -> None:
    """query() of the default stream sees the work queued without naming a stream."""
    stream = dev.current_stream()
    assert while_held(dev, stream.query) is False
    stream.synchronize()
    assert stream.query() is True


#: Streams and events without work beside a busy stream of device 0, and what tells that.
_NEIGHBOURS: dict[str, Callable[[Device], Callable[[], bool]]] = {
    "unused_stream": lambda dev: dev.stream(0).query,
    "used_stream": lambda dev: _used(dev, dev.stream(0)).query,
    "default_stream": lambda dev: _used(dev, dev.default_stream(0)).query,
    "event": lambda dev: _used(dev, dev.stream(0)).record_event(dev.event()).query,
    "other_device": lambda dev: _used(dev, dev.stream(dev.count - 1)).query,
}


def _used(dev: Device, stream: torch.Stream) -> torch.Stream:
    """A stream whose work has been waited for."""
    with stream:
        _zeros(dev, stream.device_index)
    stream.synchronize()
    return stream


@check(
    "stream/query_neighbour",
    "STREAM-010",
    cases=_NEIGHBOURS,
    needs=("streams", "events", "delay"),
    case_needs={"other_device": "multi_device"},
)
def query_is_about_one_stream(dev: Device, case: str) -> None:
    """query() of an idle stream or event is True while another stream is busy."""
    query = _NEIGHBOURS[case](dev)
    dev.synchronize()
    with dev.stream(0):
        assert while_held(dev, query) is True, "it is not True beside a busy stream"
    dev.synchronize()


_WAITERS: dict[str, Callable[[Device, torch.Stream], Any]] = {
    "stream": lambda dev, stream: stream.synchronize(),
    "device": lambda dev, stream: torch.accelerator.synchronize(stream.device_index),
    "module": lambda dev, stream: dev.module.synchronize(stream.device_index),
    "event": lambda dev, stream: stream.record_event().synchronize(),
}


@check(
    "stream/synchronize", "STREAM-011", cases=tuple(_WAITERS), needs=("streams", "events", "delay")
)
def synchronize_waits_for_the_work(dev: Device, case: str) -> None:
    """When a synchronisation returns, the work queued before it is done."""
    stream = dev.stream(0)
    after = dev.event()
    with stream:
        dev.delay(LATE_MS)
        after.record(stream)
    _WAITERS[case](dev, stream)
    # A query that lies is another requirement's business: both have to say "done".
    assert after.query() and stream.query(), "it returned while work was pending"


@check(
    "stream/synchronize_result",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay", "async_copy", "pinned_memory"),
)
def synchronize_waits_for_the_result(dev: Device, case: str) -> None:
    """When a synchronisation returns, a copy to host memory queued before it has arrived."""
    stream = dev.stream(0)
    x = torch.ones(N, device=dev.device(0))
    host = torch.zeros(N).pin_memory()
    dev.synchronize()
    with stream:
        dev.delay(LATE_MS)
        host.copy_(x, non_blocking=True)
    _WAITERS[case](dev, stream)
    assert torch.equal(host, _full(1)), "it returned before the copy arrived"


def _waits_from_a_thread(dev: Device, case: str, index: int) -> None:
    stream = dev.stream(index)
    with stream:
        dev.delay(LATE_MS)
    in_thread(lambda: _WAITERS[case](dev, stream))
    assert stream.query(), "it returned while work was pending"


@check(
    "stream/synchronize_from_thread",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay", "threads"),
)
def threads_without_work_can_wait(dev: Device, case: str) -> None:
    """A synchronisation from a thread that never used the device waits for the work of others."""
    _waits_from_a_thread(dev, case, 0)


@check(
    "stream/synchronize_from_thread_elsewhere",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay", "threads", "multi_device"),
)
def threads_without_work_can_wait_for_any_device(dev: Device, case: str) -> None:
    """A thread whose current device is the first one can wait for the work of the last one."""
    _waits_from_a_thread(dev, case, dev.count - 1)


def _waits_for_a_waiting_stream(dev: Device, case: str, index: int) -> None:
    """The host waits for a stream of device `index` that has nothing to do but to wait."""
    then = dev.stream(index)
    work = dev.event()
    dev.synchronize()
    with dev.stream(0) as first:
        dev.delay(LATE_MS)
        work.record(first)
    then.wait_event(work)
    _WAITERS[case](dev, then)
    assert work.query(), "it returned before the work for which the stream waits"
    assert then.query(), "it returned while the stream was waiting"


@check(
    "stream/synchronize_waiting",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay"),
)
def synchronize_waits_for_a_waiting_stream(dev: Device, case: str) -> None:
    """Synchronising a stream that only waits for another one waits for the work of that one."""
    _waits_for_a_waiting_stream(dev, case, 0)


@check(
    "stream/synchronize_waiting_device",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay", "multi_device"),
)
def synchronize_waits_for_a_waiting_device(dev: Device, case: str) -> None:
    """Synchronising a device whose stream only waits for another device waits for that work."""
    _waits_for_a_waiting_stream(dev, case, dev.count - 1)


#: Longer than a quarter of a second, after which a wait with a limit may give up.
_LONG_MS = 320.0
#: Longer than the next limits that come to mind, one and two seconds.
_VERY_LONG_MS = 2200.0


def _host_waits_long(dev: Device, ms: float) -> None:
    """All waits of the host, in threads of their own, for one piece of work."""
    stream, work = dev.stream(0), dev.event()
    dev.synchronize()
    with stream:
        dev.delay(ms)
        work.record(stream)

    def wait(case: str) -> tuple[str, bool]:
        _WAITERS[case](dev, stream)
        return case, work.query()

    done = dict(in_threads([partial(wait, case) for case in _WAITERS]))
    assert all(done.values()), f"returned with the work done: {done}"


def _streams_wait_long(dev: Device, ms: float) -> None:
    """All waits of streams, one stream each, for one piece of work."""
    waits = [wait for case, wait in _ORDERINGS.items() if not case.startswith("host")]
    x, results = _zeros(dev), [_zeros(dev) for _ in waits]
    dev.synchronize()
    first = _producer(dev, x, late_ms=ms)
    for wait, result in zip(waits, results, strict=True):
        with dev.stream(0) as then:
            wait(first, then)
            result.copy_(x)
    dev.synchronize()
    for result in results:
        dev.assert_equal(result, _full(1))


_LONG_WAITS: dict[str, Callable[[Device, float], None]] = {
    "host": _host_waits_long,
    "stream": _streams_wait_long,
}
_LONG_NEEDS = ("streams", "events", "delay", "threads")


@check("stream/long_wait", ("STREAM-011", "STREAM-021"), cases=_LONG_WAITS, needs=_LONG_NEEDS)
def long_work_is_waited_for(dev: Device, case: str) -> None:
    """Waits of the host and of streams last as long as work of a third of a second."""
    _LONG_WAITS[case](dev, _LONG_MS)


@check(
    "stream/very_long_wait",
    ("STREAM-011", "STREAM-021"),
    cases=_LONG_WAITS,
    needs=_LONG_NEEDS,
    breadth=FULL,
)
def very_long_work_is_waited_for(dev: Device, case: str) -> None:
    """Waits of the host and of streams last as long as work of two seconds."""
    _LONG_WAITS[case](dev, _VERY_LONG_MS)


@check("stream/pause", "STREAM-053", needs=("streams", "delay"), breadth=FULL)
def a_device_works_after_a_pause(dev: Device) -> None:
    """Work that comes after six seconds without any is done, also if no call waits for it."""
    x, stream = _zeros(dev), dev.stream(0)
    dev.synchronize()
    time.sleep(6)  # threads that serve the device may end when they have had nothing to do
    with stream:
        x.fill_(1)
    assert becomes_true(stream.query), "the work is never done"
    dev.assert_equal(x, _full(1))


_READERS: dict[str, Callable[[torch.Tensor], float]] = {
    "item": lambda x: x[N - 1].item(),
    "cpu": lambda x: x.cpu()[-1].item(),
    "tolist": lambda x: x.tolist()[-1],
    "to": lambda x: x.to("cpu")[-1].item(),
    "copy": lambda x: torch.zeros(N).copy_(x)[-1].item(),
    "bool": lambda x: 5.0 if bool(x[0] == 5) else 0.0,
}


@check("stream/host_reads", "STREAM-012", cases=tuple(_READERS), needs=("delay",))
def host_reads_see_queued_work(dev: Device, case: str) -> None:
    """Reading a value on the host waits for the work queued on the current stream."""
    streams: list[AbstractContextManager[Any]] = [nullcontext()]
    if dev.has("streams"):
        streams.append(dev.stream())
    for stream in streams:
        x = _zeros(dev)
        assert _READERS[case](x) == 0.0
        dev.synchronize()
        with stream:
            dev.delay(LATE_MS)
            x.fill_(5)
            value = _READERS[case](x)
        assert value == 5.0, f"the host read {value} before the queued work ran, in {stream}"


# ---- order -----------------------------------------------------------------------------------


def _fills(x: torch.Tensor, y: torch.Tensor) -> None:
    for value in range(1, 9):
        x.fill_(value)


def _copies(x: torch.Tensor, y: torch.Tensor) -> None:
    for source in [torch.full((N,), float(value), device=x.device) for value in range(1, 9)]:
        x.copy_(source)


def _changes(x: torch.Tensor, y: torch.Tensor) -> None:
    for _ in range(6):
        x.mul_(2).add_(1)


def _fills_and_copies(x: torch.Tensor, y: torch.Tensor) -> None:
    for value in range(1, 9):
        x.fill_(value)
        y.copy_(x)
        x.zero_()


def _many_fills(x: torch.Tensor, y: torch.Tensor) -> None:
    for value in range(300):
        x.fill_(value)
    y.copy_(x)


#: Work on two tensors of zeros, and the values they then have.
_IN_ORDER: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], None], int, int]] = {
    "fills": (_fills, 8, 0),
    "copies": (_copies, 8, 0),
    "read_modify_write": (_changes, 63, 0),
    "fill_then_copy": (_fills_and_copies, 0, 8),
    "many": (_many_fills, 299, 299),
}


@check("stream/order", "STREAM-020", cases=_IN_ORDER, needs=("streams", "delay"))
def work_of_a_stream_runs_in_order(dev: Device, case: str) -> None:
    """Work queued on one stream runs in the order in which it was queued."""
    work, first, second = _IN_ORDER[case]
    x, y = _zeros(dev), _zeros(dev)
    dev.synchronize()
    with dev.stream():
        dev.delay(LATE_MS)  # so that all of it is queued before any of it runs
        work(x, y)
        dev.assert_equal(x, _full(first))
        dev.assert_equal(y, _full(second))


def _producer(
    dev: Device, x: torch.Tensor, value: float = 1.0, late_ms: float = LATE_MS
) -> torch.Stream:
    """A stream on which `x` is filled late."""
    stream = dev.stream(x.device.index)
    with stream:
        dev.delay(late_ms)
        x.fill_(value)
    return stream


_ORDERINGS: dict[str, Callable[[torch.Stream, torch.Stream], Any]] = {
    "wait_event": lambda first, then: then.wait_event(first.record_event()),
    "event_wait": lambda first, then: first.record_event().wait(then),
    "wait_stream": lambda first, then: then.wait_stream(first),
    "host_stream": lambda first, then: first.synchronize(),
    "host_device": lambda first, then: torch.accelerator.synchronize(0),
}


@check("stream/wait", "STREAM-021", cases=tuple(_ORDERINGS), needs=("streams", "events", "delay"))
def work_after_a_wait_sees_the_work_before(dev: Device, case: str) -> None:
    """Work queued after a wait runs only after the work that was waited for."""
    x, y = _zeros(dev), _zeros(dev)
    dev.synchronize()
    first, then = _producer(dev, x), dev.stream(0)
    _ORDERINGS[case](first, then)
    with then:
        y.copy_(x)
    then.synchronize()
    dev.assert_equal(y, _full(1))


@check("stream/wait_shape:chain", "STREAM-022", needs=("streams", "events", "delay"))
def waits_order_a_chain(dev: Device) -> None:
    """In a chain of streams each sees the work of the one it waited for."""
    x = _zeros(dev)
    dev.synchronize()
    before = _producer(dev, x)
    for _ in range(5):
        after = dev.stream(0)
        after.wait_stream(before)
        with after:
            x.add_(1)
        before = after
    before.synchronize()
    dev.assert_equal(x, _full(6))


@check("stream/wait_shape:idle_links", "STREAM-022", needs=("streams", "events", "delay"))
def waits_pass_through_idle_streams(dev: Device) -> None:
    """A chain of streams without work of their own hands the wait on."""
    x, y = _zeros(dev), _zeros(dev)
    dev.synchronize()
    before = _producer(dev, x)
    for _ in range(5):
        after = dev.stream(0)
        after.wait_stream(before)
        before = after
    with before:
        y.copy_(x)
    before.synchronize()
    dev.assert_equal(y, _full(1))


@check("stream/wait_shape:fan_in", "STREAM-022", needs=("streams", "events", "delay"))
def waits_join_streams(dev: Device) -> None:
    """A stream that waited for several others sees the work of each."""
    y, parts = _zeros(dev), [_zeros(dev) for _ in range(4)]
    dev.synchronize()
    # Each is later than the one before: to wait for any one of them is not enough.
    streams = [_producer(dev, part, k + 1.0, LATE_MS * (k + 1) / 2) for k, part in enumerate(parts)]
    with dev.stream(0) as join:
        for stream in streams:
            join.wait_stream(stream)
        for part in parts:
            y.add_(part)
    join.synchronize()
    dev.assert_equal(y, _full(10))


@check("stream/wait_shape:fan_out", "STREAM-022", needs=("streams", "events", "delay"))
def waits_fork_streams(dev: Device) -> None:
    """Several streams that waited for one event each see the work before it."""
    x, targets = _zeros(dev), [_zeros(dev) for _ in range(4)]
    dev.synchronize()
    event = _producer(dev, x).record_event()
    for target in targets:
        with dev.stream(0) as stream:
            stream.wait_event(event)
            target.copy_(x)
    for target in targets:
        dev.assert_equal(target, _full(1))


@check("stream/wait_shape:ping_pong", "STREAM-022", needs=("streams", "events", "delay"))
def waits_order_two_streams_in_turns(dev: Device) -> None:
    """Two streams that wait for each other in turns work in turns."""
    x = _zeros(dev)
    dev.synchronize()
    a, b = dev.stream(0), dev.stream(0)
    with a:
        dev.delay(LATE_MS)
    for _ in range(5):
        with a:
            a.wait_stream(b)
            x.add_(1)
        with b:
            b.wait_stream(a)
            x.mul_(2)
    b.synchronize()
    dev.assert_equal(x, _full(62))


@check("stream/wait_shape:to_default", "STREAM-022", needs=("streams", "events", "delay"))
def the_default_stream_can_wait(dev: Device) -> None:
    """Work on the default stream sees the work of a stream that it waited for."""
    x, y = _zeros(dev), _zeros(dev)
    dev.synchronize()
    first = _producer(dev, x)
    dev.current_stream(0).wait_stream(first)
    y.copy_(x)
    dev.assert_equal(y, _full(1))


@check("stream/wait_shape:write_after_read", "STREAM-022", needs=("streams", "events", "delay"))
def waits_keep_writes_behind_reads(dev: Device) -> None:
    """A write that waited for a late read does not change what is read."""
    x, y = _zeros(dev), _zeros(dev)
    dev.synchronize()
    x.fill_(7)
    reader = dev.stream(0)
    reader.wait_stream(dev.current_stream(0))
    with reader:
        dev.delay(LATE_MS)
        y.copy_(x)
    dev.current_stream(0).wait_stream(reader)
    x.fill_(9)
    dev.assert_equal(y, _full(7))
    dev.assert_equal(x, _full(9))


#: In which order the streams that one stream waits for end their work.
_ENDS: dict[str, tuple[int, ...]] = {
    "first_to_last": (0, 1, 2, 3, 4, 5),
    "last_to_first": (5, 4, 3, 2, 1, 0),
    "mixed": (3, 0, 5, 1, 4, 2),
}


def _producers(dev: Device, ends: tuple[int, ...]) -> list[tuple[torch.Stream, torch.Tensor]]:
    """Streams that each fill a tensor, of zeros before, with ones: the later the larger its end."""
    parts = [_zeros(dev) for _ in ends]
    dev.synchronize()
    return [
        (_producer(dev, part, late_ms=LATE_MS * (end + 1) / len(ends)), part)
        for end, part in zip(ends, parts, strict=True)
    ]


@check("stream/wait_many", "STREAM-022", cases=_ENDS, needs=("streams", "events", "delay"))
def waits_hold_in_any_order_of_completion(dev: Device, case: str) -> None:
    """Between waits for several streams, a stream's work runs after the waits before it."""
    results = [_zeros(dev) for _ in _ENDS[case]]
    with dev.stream(0) as then:
        for (stream, part), result in zip(_producers(dev, _ENDS[case]), results, strict=True):
            then.wait_stream(stream)
            result.copy_(part)
    then.synchronize()
    for result in results:
        dev.assert_equal(result, _full(1))


@check("stream/wait_many_at_once", "STREAM-022", cases=_ENDS, needs=("streams", "events", "delay"))
def waits_add_up_in_any_order_of_completion(dev: Device, case: str) -> None:
    """Work behind several waits in a row runs after all of them."""
    results = [_zeros(dev) for _ in _ENDS[case]]
    with dev.stream(0) as then:
        producers = _producers(dev, _ENDS[case])
        for stream, _ in producers:
            then.wait_stream(stream)
        for (_, part), result in zip(producers, results, strict=True):
            result.copy_(part)
    then.synchronize()
    for result in results:
        dev.assert_equal(result, _full(1))


@check("stream/wait_many:hundreds", "STREAM-022", needs=("streams", "events", "delay"))
def a_stream_can_have_hundreds_of_pending_waits(dev: Device) -> None:
    """A stream with 300 pending waits is busy until the last of them has ended."""
    x, y = _zeros(dev), _zeros(dev)
    first, then = dev.stream(0), dev.stream(0)
    dev.synchronize()

    def look() -> bool:
        for _ in range(300):
            then.wait_event(first.record_event())
        return then.query()

    with first:
        assert while_held(dev, look) is False, "it does not wait"
        dev.delay(LATE_MS)
        x.fill_(1)
    then.wait_stream(first)
    with then:
        y.copy_(x)
    then.synchronize()
    dev.assert_equal(y, _full(1))


@check(
    "stream/wait_host",
    "STREAM-023",
    cases=("wait_event", "wait_stream"),
    needs=("streams", "events", "delay"),
)
def waiting_streams_do_not_hold_the_host(dev: Device, case: str) -> None:
    """wait_event and wait_stream return at once; only the stream waits."""
    first, then = dev.stream(), dev.stream()

    def look() -> tuple[bool, bool]:
        _ORDERINGS[case](first, then)
        return first.query(), then.query()

    with first:
        pending = while_held(dev, look)
    assert pending == (False, False), f"(first, waiting) stream done: {pending}"
    dev.synchronize()


@check("stream/wait_later_work", "STREAM-024", needs=("streams", "events", "delay"))
def a_wait_covers_only_earlier_work(dev: Device) -> None:
    """wait_stream covers the work queued so far and nothing that is queued later."""
    first, then = dev.stream(), dev.stream()
    then.wait_stream(first)

    def look() -> bool:
        then.synchronize()
        return first.query()

    with first:
        assert while_held(dev, look) is False


@check(
    "stream/wait_device",
    "STREAM-025",
    cases=("wait_event", "wait_stream", "event_wait"),
    needs=("streams", "events", "delay", "multi_device", "peer_copy"),
)
def streams_wait_across_devices(dev: Device, case: str) -> None:
    """A stream of device 1 can wait for work of device 0 and then sees its result."""
    x, y = _zeros(dev, 0), _zeros(dev, 1)
    dev.synchronize()
    first, then = _producer(dev, x), dev.stream(1)
    _ORDERINGS[case](first, then)
    with then:
        y.copy_(x, non_blocking=True)
    then.synchronize()
    dev.assert_equal(y, _full(1))


# ---- independence ----------------------------------------------------------------------------


def _verify_unhindered(dev: Device, work: Callable[[], Any]) -> None:
    """Fail if `work`, which waits for other streams, takes as long as a busy stream is busy."""
    busy = dev.stream()
    dev.synchronize()

    def look() -> bool:
        work()
        return busy.query()

    with busy:
        assert while_held(dev, look) is False, "the other stream waited for the busy one"
    dev.synchronize()


def _fill(stream: torch.Stream, x: torch.Tensor) -> None:
    """Fill `x` with 4 on a stream, and wait for that."""
    with stream:
        x.fill_(4)
    stream.synchronize()


@check("stream/independent:synchronize", "STREAM-030", needs=("streams", "delay"))
def synchronize_waits_for_one_stream_only(dev: Device) -> None:
    """An idle stream can be synchronised while another stream is busy."""
    _verify_unhindered(dev, dev.stream().synchronize)


@check("stream/independent:fill", "STREAM-030", needs=("streams", "delay"))
def a_busy_stream_does_not_delay_another(dev: Device) -> None:
    """Work on one stream is done, and can be waited for, while another stream is busy."""
    x, other = _zeros(dev), dev.stream()
    _verify_unhindered(dev, lambda: _fill(other, x))
    dev.assert_equal(x, _full(4))


@check("stream/independent:read", "STREAM-030", needs=("streams", "delay"))
def a_busy_stream_does_not_delay_reads(dev: Device) -> None:
    """The result of one stream can be read on the host while another stream is busy."""
    x, other = _zeros(dev), dev.stream()

    def work() -> None:
        with other:
            x.fill_(4)
            assert x[0].item() == 4

    _verify_unhindered(dev, work)
    dev.assert_equal(x, _full(4))


@check("stream/independent:default_is_no_barrier", "STREAM-030", needs=("streams", "delay"))
def the_default_stream_is_no_barrier(dev: Device) -> None:
    """Work on the default stream does not wait for a busy stream."""
    x, default = _zeros(dev), dev.default_stream()
    _verify_unhindered(dev, lambda: _fill(default, x))
    dev.assert_equal(x, _full(4))


@check("stream/independent:three", "STREAM-030", needs=("streams", "delay"))
def a_busy_stream_does_not_delay_new_ones(dev: Device) -> None:
    """Work on each of three streams made while another stream is busy is done meanwhile."""
    x = _zeros(dev)

    def work() -> None:
        for stream in [dev.stream() for _ in range(3)]:
            _fill(stream, x)

    _verify_unhindered(dev, work)
    dev.assert_equal(x, _full(4))


@check("stream/independent:shorter", "STREAM-030", needs=("streams", "delay"))
def a_long_wait_does_not_delay_a_short_one(dev: Device) -> None:
    """What takes a short time on one stream ends before what began earlier and takes longer."""
    x, other = _zeros(dev), dev.stream()

    def work() -> None:
        with other:
            dev.delay(5)
            x.fill_(4)
        other.synchronize()

    _verify_unhindered(dev, work)
    dev.assert_equal(x, _full(4))


@check("stream/independent:other_device", "STREAM-030", needs=("streams", "delay"))
def a_busy_device_does_not_delay_another(dev: Device) -> None:
    """Work on device 0 is done, can be waited for and read while device 1 is busy."""
    dev.require("multi_device")
    x, busy, other = _zeros(dev), dev.stream(1), dev.stream(0)
    dev.synchronize()

    def look() -> tuple[float, bool]:
        _fill(other, x)
        with other:
            value = x[0].item()
        return value, busy.query()

    with busy:
        assert while_held(dev, look) == (4.0, False), "(value, device 1 done)"
    dev.synchronize()


@check("stream/synchronize_device:every_stream", "STREAM-031", needs=("streams", "delay"))
def device_synchronize_covers_every_stream(dev: Device) -> None:
    """Synchronising a device waits for all of its streams."""
    streams = [dev.stream(0) for _ in range(5)]
    for stream in streams:
        with stream:
            dev.delay(LATE_MS)
    torch.accelerator.synchronize(0)
    assert all(stream.query() for stream in streams), "a stream was left busy"


@check("stream/synchronize_device:only_this_device", "STREAM-032", needs=("streams", "delay"))
def device_synchronize_waits_for_no_other_device(dev: Device) -> None:
    """Synchronising device 0 does not wait for device 1."""
    dev.require("multi_device")
    with dev.stream(1) as busy:

        def look() -> bool:
            torch.accelerator.synchronize(0)
            return busy.query()

        assert while_held(dev, look) is False, "synchronize(0) waited for device 1"


#: The current device, and the argument that means device 1.
_SYNCHRONIZED: dict[str, Callable[[Device], tuple[int, Any]]] = {
    "by_index": lambda dev: (1, 1),
    "by_device": lambda dev: (1, dev.device(1)),
    "from_other_current": lambda dev: (0, 1),
}


@check("stream/synchronize_device", "STREAM-031", cases=_SYNCHRONIZED, needs=("streams", "delay"))
def device_synchronize_covers_the_device_named(dev: Device, case: str) -> None:
    """Synchronising device 1, by index or device, waits for it whichever device is current."""
    dev.require("multi_device")
    current, argument = _SYNCHRONIZED[case](dev)
    with dev.stream(1) as busy:
        dev.delay(LATE_MS)
    with torch.accelerator.device_index(current):
        torch.accelerator.synchronize(argument)
    assert busy.query(), "synchronize(1) did not wait for device 1"


# ---- the current stream ----------------------------------------------------------------------


@check("stream/default:is_current", "STREAM-055", needs=("streams",))
def the_default_stream_is_current_at_first(dev: Device) -> None:
    """In a new thread the default stream is current."""
    assert in_thread(lambda: dev.current_stream(0)) == dev.module.default_stream(0)


@check("stream/default:of_device", "STREAM-040", needs=("streams",))
def every_device_has_a_default_stream(dev: Device) -> None:
    """The default stream of each device is a stream of that device."""
    for index in range(dev.count):
        assert dev.default_stream(index).device == dev.device(index)


@check("stream/default:by_device", "STREAM-040", needs=("streams",))
def the_default_stream_is_found_by_device(dev: Device) -> None:
    """torch.<type>.default_stream takes a torch.device as it takes an index."""
    for index in range(dev.count):
        by_device = dev.module.default_stream(dev.device(index))
        assert by_device == dev.module.default_stream(index)


@check("stream/default:constant", "STREAM-040", needs=("streams",))
def the_default_stream_does_not_change(dev: Device) -> None:
    """default_stream gives the same stream while another one is current."""
    default = dev.default_stream(0)
    with dev.stream(0):
        assert dev.default_stream(0) == default


@check("stream/default:usable", "STREAM-057", needs=("streams",))
def the_default_stream_can_be_entered(dev: Device) -> None:
    """The default stream can be entered and synchronised as any other stream."""
    default = dev.default_stream(0)
    with default:
        x = torch.ones(N, device=dev.device(0))
    default.synchronize()
    dev.assert_equal(x, _full(1))


@check("stream/default:new_streams_differ", "STREAM-056", needs=("streams",))
def new_streams_are_not_the_default_stream(dev: Device) -> None:
    """None of forty created streams is the default stream."""
    assert dev.default_stream(0) not in [dev.stream(0) for _ in range(40)]


@contextmanager
def _restored(dev: Device) -> Iterator[None]:
    """Fail unless the stream that is current on device 0 now is current at the end."""
    before = dev.current_stream(0)
    yield
    assert dev.current_stream(0) == before, "the former stream is not current again"


@check("stream/context:selects", "STREAM-041", needs=("streams",))
def a_stream_is_current_inside(dev: Device) -> None:
    """A stream as a context is current inside it."""
    a = dev.stream(0)
    with _restored(dev), a:
        assert dev.current_stream(0) == a


@check("stream/context:restores", "STREAM-041", needs=("streams",))
def the_former_stream_is_current_again(dev: Device) -> None:
    """After a stream as a context the former stream is current."""
    with _restored(dev), dev.stream(0):
        torch.ones(3, device=dev.device(0))


@check("stream/context:default", "STREAM-041", needs=("streams",))
def the_stream_of_a_new_thread_is_current_again(dev: Device) -> None:
    """In a new thread the default stream is current, and again after a stream as a context."""
    default, stream = dev.default_stream(0), dev.stream(0)

    def work() -> None:
        for _ in range(2):
            assert dev.current_stream(0) == default, "not the default stream"
            with stream:
                assert dev.current_stream(0) == stream
            assert dev.current_stream(0) == default, "the default stream is not current again"

    in_thread(work)


@check("stream/context:after_exception", "STREAM-041", needs=("streams",))
def exceptions_leave_a_stream(dev: Device) -> None:
    """An exception passes through a stream as a context, and the former stream is current."""

    def work() -> None:
        with dev.stream(0):
            raise KeyError("on purpose")

    with _restored(dev):
        assert isinstance(raised(work), KeyError)


@check("stream/context:nested", "STREAM-041", needs=("streams",))
def streams_can_be_nested(dev: Device) -> None:
    """Streams can be entered inside one another, also one inside itself."""
    a, b = dev.stream(0), dev.stream(0)
    with _restored(dev), a:
        with b:
            assert dev.current_stream(0) == b
            with a:
                assert dev.current_stream(0) == a
            assert dev.current_stream(0) == b
        assert dev.current_stream(0) == a


@check("stream/context:reentered", "STREAM-041", needs=("streams",))
def a_stream_can_be_entered_again(dev: Device) -> None:
    """A stream can be entered and left several times."""
    a = dev.stream(0)
    for _ in range(3):
        with _restored(dev), a:
            assert dev.current_stream(0) == a


@check("stream/context:returns_itself", "STREAM-041", needs=("streams",))
def a_stream_enters_as_itself(dev: Device) -> None:
    """`with stream as entered` gives the stream itself."""
    a = dev.stream(0)
    with _restored(dev), a as entered:
        assert entered is a


@check("stream/context:module_stream", "STREAM-041", needs=("streams",))
def the_modules_context_selects_a_stream(dev: Device) -> None:
    """Inside torch.<type>.stream(s) the stream is current; after it the former one is."""
    a = dev.stream(0)
    with _restored(dev), dev.module.stream(a):
        assert dev.current_stream(0) == a


@check("stream/context:module_none", "STREAM-041", needs=("streams",))
def the_modules_context_of_none_selects_nothing(dev: Device) -> None:
    """torch.<type>.stream(None) leaves the current stream."""
    a = dev.stream(0)
    with _restored(dev), a, dev.module.stream(None):
        assert dev.current_stream(0) == a


@check("stream/context:module_after_exception", "STREAM-041", needs=("streams",))
def exceptions_leave_the_modules_context(dev: Device) -> None:
    """An exception passes through torch.<type>.stream(s), and the former stream is current."""

    def work() -> None:
        with dev.module.stream(dev.stream(0)):
            raise KeyError("on purpose")

    with _restored(dev):
        assert isinstance(raised(work), KeyError)


@check("stream/context:module_nested", "STREAM-041", needs=("streams",))
def the_modules_contexts_nest_and_are_entered_again(dev: Device) -> None:
    """Contexts of torch.<type>.stream() nest, also with streams, and can be entered again."""
    a, b = dev.stream(0), dev.stream(0)
    context = dev.module.stream(a)
    for _ in range(2):
        with _restored(dev), context:
            with b:
                assert dev.current_stream(0) == b
                with dev.module.stream(a):
                    assert dev.current_stream(0) == a
                assert dev.current_stream(0) == b
            assert dev.current_stream(0) == a


@contextmanager
def _from_device_0(dev: Device) -> Iterator[torch.Stream]:
    """A stream of device 1 while device 0 is current; fails unless that is so again at the end."""
    with torch.accelerator.device_index(0):
        outer = dev.current_stream(1)
        yield dev.stream(1)
        assert torch.accelerator.current_device_index() == 0, "device not restored"
        assert dev.current_stream(1) == outer, "the other device's stream was not restored"


def _verify_current(dev: Device, stream: torch.Stream) -> None:
    assert torch.accelerator.current_device_index() == 1
    assert dev.current_stream(1) == stream


@check("stream/context_device:selects_device", "STREAM-042", needs=("streams", "multi_device"))
def stream_context_switches_the_device(dev: Device) -> None:
    """Inside a stream of another device the stream and its device are current."""
    with _from_device_0(dev) as stream, stream:
        _verify_current(dev, stream)


@check("stream/context_device:restores_device", "STREAM-042", needs=("streams", "multi_device"))
def stream_context_restores_the_device(dev: Device) -> None:
    """After a stream of another device the former device and both streams are current."""
    with _from_device_0(dev) as stream, _restored(dev), stream:
        torch.ones(2, device=stream.device)


@check("stream/context_device:after_exception", "STREAM-042", needs=("streams", "multi_device"))
def exceptions_restore_the_device(dev: Device) -> None:
    """An exception that leaves a stream of another device restores the device and both streams."""
    with _from_device_0(dev) as stream:

        def work() -> None:
            with stream:
                raise KeyError("on purpose")

        assert isinstance(raised(work), KeyError)


@check("stream/context_device:allocates_there", "STREAM-042", needs=("streams", "multi_device"))
def stream_context_decides_where_tensors_are_made(dev: Device) -> None:
    """Inside a stream of another device a tensor of the device type is made on that device."""
    with _from_device_0(dev) as stream, stream:
        assert torch.ones(2, device=dev.type).device == dev.device(1)


@check("stream/context_device:set_stream", "STREAM-042", needs=("streams", "multi_device"))
def set_stream_switches_the_device(dev: Device) -> None:
    """set_stream to a stream of another device makes that device current as well."""
    with _from_device_0(dev) as stream:
        outer = dev.current_stream(1)
        torch.accelerator.set_stream(stream)
        try:
            assert torch.accelerator.current_stream() == stream
            _verify_current(dev, stream)
        finally:
            torch.accelerator.set_stream(outer)
            torch.accelerator.set_device_index(0)


@check("stream/context_device:module_stream", "STREAM-042", needs=("streams", "multi_device"))
def the_modules_context_switches_the_device(dev: Device) -> None:
    """Inside torch.<type>.stream(s) of another device the stream and its device are current."""
    with _from_device_0(dev) as stream, dev.module.stream(stream):
        _verify_current(dev, stream)


@check(
    "stream/context_device:module_after_exception",
    "STREAM-042",
    needs=("streams", "multi_device"),
)
def exceptions_in_the_modules_context_restore_the_device(dev: Device) -> None:
    """An exception that leaves torch.<type>.stream(s) restores the device and both streams."""
    with _from_device_0(dev) as stream:

        def work() -> None:
            with dev.module.stream(stream):
                raise KeyError("on purpose")

        assert isinstance(raised(work), KeyError)


@check("stream/context_device:nested", "STREAM-042", needs=("streams", "multi_device"))
def contexts_of_two_devices_nest(dev: Device) -> None:
    """Streams of two devices, entered in one another, restore device and streams level by level."""
    with _from_device_0(dev) as stream, _restored(dev), stream:
        inner = dev.stream(0)
        with inner:
            assert torch.accelerator.current_device_index() == 0
            assert (dev.current_stream(0), dev.current_stream(1)) == (inner, stream)
        _verify_current(dev, stream)


@check("stream/per_device", "STREAM-043", needs=("streams", "multi_device"))
def every_device_has_its_own_current_stream(dev: Device) -> None:
    """Setting the stream of one device leaves the current stream of the other alone."""
    before = dev.current_stream(1)
    with torch.accelerator.device_index(0), dev.stream(0) as stream:
        assert dev.current_stream(0) == stream
        assert dev.current_stream(1) == before


@check("stream/per_thread:new_thread", "STREAM-044", needs=("streams", "threads"))
def a_new_thread_begins_on_the_default_stream(dev: Device) -> None:
    """In a new thread the default stream is current, whatever is current in the one before."""
    with dev.stream(0):
        assert in_thread(lambda: dev.current_stream(0)) == dev.module.default_stream(0)


@check("stream/per_thread:set_elsewhere", "STREAM-044", needs=("streams", "threads"))
def a_thread_sets_its_own_stream_only(dev: Device) -> None:
    """A stream set in one thread does not become current in another."""
    before = dev.current_stream(0)
    in_thread(lambda: torch.accelerator.set_stream(dev.stream(0)))
    assert dev.current_stream(0) == before, "another thread changed this thread's stream"


@check("stream/per_thread:eight_threads", "STREAM-044", needs=("streams", "threads"))
def every_thread_has_its_own_current_stream(dev: Device) -> None:
    """In eight threads that each entered a stream, that stream is current."""
    everyone = threading.Barrier(8)

    def worker() -> bool:
        stream = dev.stream(0)
        with stream:
            everyone.wait(30)
            mine = dev.current_stream(0) == stream
            everyone.wait(30)
        return mine

    assert all(in_threads([worker] * 8))


_SETTERS: dict[str, Callable[[Device], Callable[[torch.Stream], None]]] = {
    "accelerator": lambda dev: torch.accelerator.set_stream,
    "module": lambda dev: dev.module.set_stream,
}


@check("stream/set_stream", "STREAM-045", cases=_SETTERS, needs=("streams",))
def set_stream_makes_a_stream_current(dev: Device, case: str) -> None:
    """set_stream makes a stream current until another one is set."""
    before, stream = dev.current_stream(0), dev.stream(0)
    setter = _SETTERS[case](dev)
    try:
        setter(stream)
        assert dev.current_stream(0) == stream
    finally:
        setter(before)
    assert dev.current_stream(0) == before


@check("stream/set_stream:wrong_type", "STREAM-045", needs=("streams",))
def set_stream_refuses_other_devices(dev: Device) -> None:
    """set_stream of a stream of the CPU raises and leaves the current stream."""
    for setter in _SETTERS.values():
        refusing = setter(dev)
        with dev.stream(0) as current:
            raised(lambda: refusing(torch.Stream(device="cpu")))  # noqa: B023 - called at once
            assert dev.current_stream(0) == current


_ON_STREAM: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "fill": lambda x, one: x.fill_(1),
    "copy": lambda x, one: x.copy_(one),
    "strided_copy": lambda x, one: x.view(64, 64).copy_(one.view(64, 64).t()),
    "view_copy": lambda x, one: x[:].copy_(one[:]),
}


@check("stream/operators", "STREAM-046", cases=tuple(_ON_STREAM), needs=("streams", "delay"))
def operators_run_on_the_current_stream(dev: Device, case: str) -> None:
    """An operator joins the current stream: behind a delay there, it has not run elsewhere."""
    _runs_behind_a_delay(dev, _ON_STREAM[case], 0)


@check(
    "stream/operators_elsewhere",
    "STREAM-046",
    cases=tuple(_ON_STREAM),
    needs=("streams", "delay", "multi_device"),
)
def operators_run_on_the_stream_of_their_device(dev: Device, case: str) -> None:
    """An operator on device 1 joins device 1's current stream, also while device 0 is current."""
    _runs_behind_a_delay(dev, _ON_STREAM[case], 1)


#: What makes a tensor of numbers that are known, on a device.
_MAKERS: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "ones": lambda d: torch.ones(N, device=d),
    "full": lambda d: torch.full((N,), 3.5, device=d),
    "arange": lambda d: torch.arange(N, device=d),
    "range": lambda d: torch.arange(0.5, 100, 0.25, device=d),
    "linspace": lambda d: torch.linspace(0, 8, 129, device=d),
    "logspace": lambda d: torch.logspace(0, 8, 9, base=2, device=d),
    "eye": lambda d: torch.eye(65, device=d),
    "tril_indices": lambda d: torch.tril_indices(65, 65, device=d),
    "triu_indices": lambda d: torch.triu_indices(65, 65, device=d),
    "randperm": lambda d: torch.randperm(N, device=d).sort().values,
    "complex": lambda d: torch.full((N,), 1 + 2j, device=d).real,
}


@check("stream/factories_elsewhere", "STREAM-046", needs=("streams", "delay", "multi_device"))
def factories_run_on_the_stream_of_their_device(dev: Device) -> None:
    """A factory of device 1 does not join a stream of device 0, which is current and busy."""
    there = dev.device(1)

    def make() -> dict[str, torch.Tensor]:
        return {name: maker(there).cpu() for name, maker in _MAKERS.items()}

    make()  # what is done once, such as loading kernels, is done here
    with torch.accelerator.device_index(0):
        found = while_held(dev, make)
    for name, tensor in found.items():
        assert torch.equal(tensor, _MAKERS[name](torch.device("cpu"))), name


@check("stream/factories", "STREAM-046", cases=_MAKERS, needs=("streams", "delay"))
def factories_run_on_the_current_stream(dev: Device, case: str) -> None:
    """A factory on a side stream does not join the default stream, which is busy."""
    make, side = _MAKERS[case], dev.stream(0)

    def look() -> torch.Tensor:
        with side:
            return make(dev.device(0)).cpu()

    look()  # what is done once, such as loading kernels, is done here
    dev.synchronize()
    found = while_held(dev, look)
    assert torch.equal(found, make(torch.device("cpu")))


def _runs_behind_a_delay(
    dev: Device, operator: Callable[[torch.Tensor, torch.Tensor], Any], index: int
) -> None:
    """The operator on tensors of device `index` runs on its current stream; 0 is current."""
    x, early = _zeros(dev, index), _zeros(dev, index)
    one = torch.ones(N, device=dev.device(index))
    stream, other = dev.stream(index), dev.stream(index)
    dev.synchronize()

    def look() -> tuple[float, bool]:
        with torch.accelerator.device_index(0):
            operator(x, one)
        if stream.query():
            return 0.0, True
        for device in {0, index}:  # places where it may have gone
            dev.default_stream(device).synchronize()
        with other:
            early.copy_(x)
        other.synchronize()
        with other:
            return float(early[N - 1].item()), stream.query()

    with stream:
        value, done = while_held(dev, look)
    assert value == 0.0, "it ran although its stream was held"
    assert done is False, "its stream has no work"
    stream.synchronize()
    dev.assert_equal(x, _full(1))


def _make_and_free(x: torch.Tensor, one: torch.Tensor) -> None:
    torch.empty(777, device=x.device).fill_(1)


#: What has to return at once: native work, allocating, and freeing.
_QUEUED: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "fill": _ON_STREAM["fill"],
    "copy": _ON_STREAM["copy"],
    "strided_copy": _ON_STREAM["strided_copy"],
    "allocate": lambda x, one: torch.empty(12345, device=x.device),
    "free": _make_and_free,
}


@check("stream/operators_async", "STREAM-047", cases=_QUEUED, needs=("streams", "delay"))
def operators_return_before_they_ran(dev: Device, case: str) -> None:
    """Queueing native work, allocating and freeing return while the stream is still held."""
    x, one = _zeros(dev), torch.ones(N, device=dev.device(0))
    stream = dev.stream()
    dev.synchronize()

    def look() -> bool:
        _QUEUED[case](x, one)
        return stream.query()

    with stream:
        assert while_held(dev, look) is False
    stream.synchronize()


#: Elements of 16 MiB of float32 and a few: more than one thread or one transfer takes.
_LARGE = (1 << 22) + 3


def _cast(x: torch.Tensor, one: torch.Tensor) -> None:
    x.copy_(one.view(torch.int32))


#: Work that is done by more than one thread, or in more than one piece, where it is large.
_LARGE_WORK: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "fill": _ON_STREAM["fill"],
    "zero": lambda x, one: x.zero_(),
    "copy": _ON_STREAM["copy"],
    "strided_copy": lambda x, one: x[::2].copy_(one[::2]),
    "cast": _cast,
}


@check("stream/operators_async_large", "STREAM-047", cases=_LARGE_WORK, needs=("streams", "delay"))
def large_operators_return_before_they_ran(dev: Device, case: str) -> None:
    """Queueing fills and copies of 16 MiB returns while the stream is still held."""
    x, one = torch.zeros(_LARGE, device=dev.device(0)), torch.ones(_LARGE, device=dev.device(0))
    stream = dev.stream()
    dev.synchronize()

    def look() -> bool:
        _LARGE_WORK[case](x, one)
        return stream.query()

    with stream:
        assert while_held(dev, look) is False
    stream.synchronize()


def _constant(x: torch.Tensor) -> float:
    """The value of all elements, or NaN where they differ."""
    host = x.cpu()
    return host[0].item() if bool((host == host[0]).all()) else float("nan")


@check("stream/order:large", "STREAM-020", needs=("streams", "delay"))
def large_work_of_a_stream_runs_in_order(dev: Device) -> None:
    """Fills and copies of 16 MiB on one stream run one after the other, each as a whole."""
    x, y, z = (torch.full((_LARGE,), 9.0, device=dev.device(0)) for _ in range(3))
    dev.synchronize()
    with dev.stream(0):
        dev.delay(LATE_MS)
        x.fill_(1)
        y.copy_(x)
        x.zero_()
        z.copy_(x)
        x.fill_(2)
        assert [_constant(tensor) for tensor in (x, y, z)] == [2.0, 1.0, 0.0]


@check("stream/wait:large", "STREAM-021", needs=("streams", "events"))
def large_work_is_waited_for_as_a_whole(dev: Device) -> None:
    """Copies of 16 MiB that wait for one another in turns on two streams keep that order."""
    x, y = (torch.zeros(_LARGE, device=dev.device(0)) for _ in range(2))
    a, b = dev.stream(0), dev.stream(0)
    dev.synchronize()
    for value in (1.0, 2.0, 3.0):
        a.wait_stream(b)
        with a:
            x.fill_(value)
        b.wait_stream(a)
        with b:
            y.copy_(x)
    a.wait_stream(b)
    with a:
        x.zero_()
    b.synchronize()
    assert _constant(y) == 3.0


# ---- asynchronous copies ---------------------------------------------------------------------


_COPY_NEEDS = ("streams", "delay", "async_copy", "pinned_memory")


def _verify_non_blocking(dev: Device, destination: torch.Tensor, source: torch.Tensor) -> None:
    """A non-blocking copy must return at once, wait for its turn, and then arrive."""
    stream = dev.stream(0)
    expected = dev.cpu(source).clone()
    dev.synchronize()

    def look() -> tuple[bool, bool]:
        destination.copy_(source, non_blocking=True)
        # A copy that went elsewhere has time to arrive.
        dev.default_stream(0).synchronize()
        time.sleep(0.01)
        return stream.query(), destination.is_cpu and bool((destination == expected).any())

    with stream:
        done, arrived = while_held(dev, look)
    assert done is False and not arrived, "the copy did not wait for its turn"
    dev.synchronize()
    dev.assert_equal(destination, expected)


@check("stream/non_blocking:to_host", "STREAM-048", needs=_COPY_NEEDS)
def non_blocking_copies_to_the_host_wait_in_their_stream(dev: Device) -> None:
    """A non-blocking copy to the host returns before it ran, in stream order, and arrives."""
    host = torch.zeros(N).pin_memory()
    _verify_non_blocking(dev, host, torch.ones(N, device=dev.device(0)))


@check("stream/non_blocking:to_device", "STREAM-048", needs=_COPY_NEEDS)
def non_blocking_copies_to_the_device_wait_in_their_stream(dev: Device) -> None:
    """A non-blocking copy from the host returns before it ran, in stream order, and arrives."""
    host = torch.zeros(N).pin_memory()
    _verify_non_blocking(dev, torch.ones(N, device=dev.device(0)), host)


@check("stream/non_blocking:between_devices", "STREAM-048", needs=_COPY_NEEDS)
def non_blocking_copies_between_devices_wait_in_their_stream(dev: Device) -> None:
    """A non-blocking copy to another device returns before it ran, and arrives."""
    dev.require("multi_device", "peer_copy")
    _verify_non_blocking(dev, _zeros(dev, dev.count - 1), torch.ones(N, device=dev.device(0)))


@check("stream/non_blocking_order", "STREAM-048", needs=("streams", "async_copy", "pinned_memory"))
def non_blocking_round_trips_stay_in_order(dev: Device) -> None:
    """Copies in, work, and copies out, all non-blocking on one stream, stay in order."""
    sources = [torch.full((N,), float(k)).pin_memory() for k in range(16)]
    results = [torch.zeros(N).pin_memory() for _ in sources]
    x = _zeros(dev)
    dev.synchronize()
    with dev.stream(0) as stream:
        for source, result in zip(sources, results, strict=True):
            x.copy_(source, non_blocking=True)
            x.add_(1)
            result.copy_(x, non_blocking=True)
    stream.synchronize()
    for k, result in enumerate(results):
        assert torch.equal(result, _full(k + 1.0)), f"round trip {k} has {result[0].item()}"


# ---- lifetime --------------------------------------------------------------------------------


@check("stream/lifetime:dropped_while_busy", "STREAM-053", needs=("streams", "delay"))
def streams_may_be_dropped_any_time(dev: Device) -> None:
    """The work of a stream object that was dropped while it was busy is done."""
    x = _zeros(dev)
    dev.synchronize()
    _producer(dev, x)  # the stream is dropped at once
    dev.assert_equal(x, _full(1))


@check("stream/lifetime:dropped_in_context", "STREAM-053", needs=("streams", "delay"))
def a_context_keeps_its_stream(dev: Device) -> None:
    """The work of a stream to which only its context refers is done."""
    x = _zeros(dev)
    dev.synchronize()
    with dev.stream(0):
        dev.delay(LATE_MS)
        x.fill_(1)
    dev.assert_equal(x, _full(1))


@check("stream/lifetime:many_live", "STREAM-054", needs=("streams", "delay"))
def many_streams_work_at_once(dev: Device) -> None:
    """The work of each of 64 streams that exist at once is done."""
    x = _zeros(dev)
    dev.synchronize()
    streams = [dev.stream(0) for _ in range(64)]
    parts = [x[k : k + 64] for k in range(0, N, 64)]
    for stream, part in zip(streams, parts, strict=True):
        with stream:
            part.fill_(1)
    dev.assert_equal(x, _full(1))


@check("stream/lifetime:other_thread", "STREAM-050", needs=("streams", "delay"))
def work_of_another_thread_is_waited_for(dev: Device) -> None:
    """synchronize() waits for what another thread queued on the stream."""
    x, stream = _zeros(dev), dev.stream(0)
    dev.synchronize()

    def fill() -> None:
        with stream:
            dev.delay(LATE_MS)
            x.fill_(1)

    in_thread(fill)
    stream.synchronize()
    assert stream.query()
    assert x[-1].item() == 1, "the work of another thread was not waited for"
    dev.assert_equal(x, _full(1))


@check("stream/lifetime:thread_ended", "STREAM-050", needs=("streams", "delay"))
def streams_outlive_the_thread_that_made_them(dev: Device) -> None:
    """synchronize() waits for the work of a stream whose thread has ended."""
    x = _zeros(dev)
    dev.synchronize()
    stream = in_thread(lambda: _producer(dev, x))
    stream.synchronize()
    assert x[-1].item() == 1, "the work of the thread was not waited for"
    dev.assert_equal(x, _full(1))


def _use(dev: Device, stream: torch.Stream, x: torch.Tensor) -> None:
    with stream:
        x.fill_(1)


def _use_and_wait(dev: Device, stream: torch.Stream, x: torch.Tensor) -> None:
    _use(dev, stream, x)
    dev.current_stream(0).wait_stream(stream)


_USES: dict[str, Callable[[Device, torch.Stream, torch.Tensor], None]] = {
    "created": lambda dev, stream, x: None,
    "used": _use,
    "waited_for": _use_and_wait,
}


@check("stream/leak", "STREAM-051", cases=_USES, needs=("streams", "events"))
def thousands_of_streams_leak_nothing(dev: Device, case: str) -> None:
    """Creating and dropping thousands of streams holds threads and file descriptors flat."""
    x = _zeros(dev)

    def batch(count: int) -> None:
        for _ in range(count):
            _USES[case](dev, dev.stream(0), x)
        dev.synchronize()

    batch(200)  # pools fill, workers start
    before = footprint()
    batch(1000)
    after = footprint()
    assert after.threads <= before.threads + 4, f"threads: {before.threads} -> {after.threads}"
    assert after.descriptors <= before.descriptors + 4, (
        f"file descriptors: {before.descriptors} -> {after.descriptors}"
    )


def _query(stream: torch.Stream) -> None:
    assert stream.query(), "an idle stream claims to be busy"


def _wait_for_itself(stream: torch.Stream) -> None:
    stream.wait_stream(stream)
    stream.wait_event(stream.record_event())


_IDLE: dict[str, Callable[[torch.Stream], None]] = {
    "synchronize": lambda stream: stream.synchronize(),
    "device": lambda stream: torch.accelerator.synchronize(0),
    "query": _query,
    "wait_self": _wait_for_itself,
}


@check("stream/idle", "STREAM-052", cases=_IDLE, needs=("streams", "events"))
def idle_streams_are_no_special_case(dev: Device, case: str) -> None:
    """Synchronising, querying or waiting for an idle or the same stream returns at once."""
    stream = dev.stream(0)
    for _ in range(100):
        _IDLE[case](stream)
    with stream:
        dev.assert_equal(torch.ones(3, device=dev.device(0)), torch.ones(3))


def _copy_behind(dev: Device, host: torch.Tensor, source: torch.Tensor) -> None:
    """Copy on a stream that waits for another one, which is busy."""
    dev.require("streams", "delay")
    first, second = dev.stream(0), dev.stream(0)
    with first:
        dev.delay(LATE_MS)
    second.wait_stream(first)
    with second:
        host.copy_(source, non_blocking=True)


#: What queues a copy to pinned memory, in which the host sees it without a call.
_LEFT_ALONE: dict[str, Callable[[Device, torch.Tensor, torch.Tensor], object]] = {
    "alone": lambda dev, host, source: host.copy_(source, non_blocking=True),
    "behind_another_stream": _copy_behind,
}


@check("stream/progress", "STREAM-059", cases=_LEFT_ALONE, needs=("pinned_memory", "async_copy"))
def queued_work_runs_without_another_call(dev: Device, case: str) -> None:
    """After some idle time a copy that is queued is seen in pinned memory, without a call."""
    host = torch.zeros(1).pin_memory()
    source = torch.ones(1, device=dev.device(0))
    dev.synchronize()
    time.sleep(0.3)  # threads of a driver may go to sleep in it
    _LEFT_ALONE[case](dev, host, source)
    seen = becomes_true(lambda: host[0].item() == 1, seconds=2)
    dev.synchronize()
    assert seen, "the copy did not run until the host synchronised"


@check("stream/external", "STREAM-060", needs=("streams", "native_handle", "delay"))
def a_stream_of_a_native_handle_is_that_queue(dev: Device) -> None:
    """A stream that is made of another one's handle is busy and idle with it, in one order."""
    external = getattr(dev.module, "ExternalStream", None)
    if external is None:
        dev.unsupported(f"{dev.module.__name__} has no ExternalStream")
    owner: Any = dev.stream(0)  # Torch's stubs lack native_handle.
    same = external(owner.native_handle, device=dev.device(0))
    x = _zeros(dev)
    dev.synchronize()
    with owner:
        assert not while_held(dev, same.query), "it is idle while its owner is busy"
        x.fill_(1)
    with same:
        y = x + 1
    same.synchronize()
    assert owner.query(), "its owner is busy after it was synchronised"
    dev.assert_equal(y, _full(2))
