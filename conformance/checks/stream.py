# SPDX-License-Identifier: BSD-3-Clause
"""Streams: order, concurrency, waiting, the current stream, priorities, and leaks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from conformance.check import check
from conformance.device import Device
from conformance.observe import (
    LATE_MS,
    becomes_true,
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


@check(
    "stream/create",
    "STREAM-001",
    cases=(
        "default_device",
        "type",
        "indexed",
        "every_device",
        "device_attributes",
        "module_class",
    ),
    needs=("streams",),
)
def streams_can_be_created(dev: Device, case: str) -> None:
    """torch.Stream is created for the device asked for and is usable at once."""
    if case == "default_device":
        assert torch.Stream().device == dev.device(torch.accelerator.current_device_index())
    elif case == "type":
        assert torch.Stream(device=dev.type).device.type == dev.type
    elif case == "indexed":
        assert torch.Stream(device=dev.device(dev.count - 1)).device == dev.device(dev.count - 1)
    elif case == "every_device":
        for index in range(dev.count):
            with dev.stream(index) as stream:
                dev.assert_equal(torch.ones(3, device=stream.device), torch.ones(3))
    elif case == "device_attributes":
        stream = dev.stream(0)
        assert stream.device_index == 0
        assert isinstance(stream.stream_id, int)
        assert torch.device(dev.type, stream.device_index) == stream.device
    else:
        last = dev.device(dev.count - 1)
        assert dev.module.Stream(last).device == last
        stream = dev.module.Stream()
        assert isinstance(stream, torch.Stream)
        with stream:
            dev.assert_equal(torch.ones(3, device=dev.type), torch.ones(3))


@check(
    "stream/identity",
    "STREAM-002",
    cases=("equal", "unequal", "hash", "rebuilt", "other_device", "other_type", "text"),
    needs=("streams",),
)
def streams_compare_by_identity(dev: Device, case: str) -> None:
    """Two handles of a stream are equal and hash alike; other streams are not equal."""
    a, b = dev.stream(0), dev.stream(0)
    if case == "equal":
        with a:
            assert dev.current_stream(0) == a
    elif case == "unequal":
        assert a != b and a.stream_id != b.stream_id
        assert a != dev.current_stream(0)
    elif case == "hash":
        with a:
            assert len({a, dev.current_stream(0), b}) == 2
    elif case == "rebuilt":
        again = torch.Stream(
            stream_id=a.stream_id, device_index=a.device_index, device_type=a.device_type
        )
        assert again == a and hash(again) == hash(a)
    elif case == "other_device":
        assert dev.current_stream(0) != dev.current_stream(dev.count - 1) or dev.count == 1
    elif case == "other_type":
        assert a != torch.Stream(device="cpu")
        assert (a == 3) is False
    else:
        assert dev.type in repr(a)


@check(
    "stream/priority",
    "STREAM-003",
    cases=("high", "low", "default", "out_of_range", "mixed_order"),
    needs=("stream_priorities",),
)
def priorities_are_accepted(dev: Device, case: str) -> None:
    """Streams of any priority work; a priority never changes a result or an order."""
    x = _zeros(dev)
    dev.synchronize()
    if case == "mixed_order":
        low, high = dev.stream(0, priority=0), dev.stream(0, priority=-1)
        with low:
            dev.delay(LATE_MS)
            x.fill_(1)
        high.wait_stream(low)
        with high:
            x.mul_(3)
        dev.assert_equal(x, _full(3))
        return
    priority = {"high": -1, "low": 1, "default": 0, "out_of_range": -1000}[case]
    try:
        stream = dev.stream(0, priority=priority)
    except (RuntimeError, ValueError):
        assert case == "out_of_range", f"priority {priority} was refused"
        return
    with stream:
        x.fill_(1).add_(1)
    stream.synchronize()
    dev.assert_equal(x, _full(2))


@check(
    "stream/native_handle",
    "STREAM-004",
    cases=("integer", "distinct", "stable"),
    needs=("streams", "native_handle"),
)
def streams_give_their_native_handle(dev: Device, case: str) -> None:
    """native_handle names the driver's stream: one number for each stream, always the same."""
    # Torch's stubs lack native_handle.
    a: Any = dev.stream(0)
    b: Any = dev.stream(0)
    if case == "integer":
        assert isinstance(a.native_handle, int) and a.native_handle != 0
    elif case == "distinct":
        assert a.native_handle != b.native_handle
    else:
        handle = a.native_handle
        with a:
            current: Any = dev.current_stream(0)
            assert current.native_handle == handle


# ---- busy and done ---------------------------------------------------------------------------


@check(
    "stream/query",
    "STREAM-010",
    cases=("idle", "busy", "done_after_synchronize", "done_by_itself", "never_used"),
    needs=("streams", "delay"),
)
def query_tells_whether_work_is_pending(dev: Device, case: str) -> None:
    """query() is False while work is pending, True when there is none, and never waits."""
    stream = dev.stream()
    if case == "never_used":
        assert stream.query() is True
        return
    if case == "idle":
        with stream:
            _zeros(dev)
        stream.synchronize()
        assert stream.query() is True, "an idle stream claims to be busy"
        return
    with stream:
        if case == "busy":
            assert while_held(dev, stream.query) is False, "a busy stream claims to be done"
        elif case == "done_after_synchronize":
            dev.delay(LATE_MS)
            stream.synchronize()
            assert stream.query() is True
        else:
            dev.delay(LATE_MS)
            assert becomes_true(stream.query), "query() never becomes True"


@check("stream/query_default", "STREAM-010", needs=("streams", "delay"))
def query_of_the_default_stream_is_true_to_it(dev: Device) -> None:
    """query() of the default stream sees the work queued without naming a stream."""
    stream = dev.current_stream()
    assert while_held(dev, stream.query) is False
    stream.synchronize()
    assert stream.query() is True


_WAITERS: dict[str, Callable[[Device, torch.Stream], Any]] = {
    "stream": lambda dev, stream: stream.synchronize(),
    "device": lambda dev, stream: torch.accelerator.synchronize(0),
    "module": lambda dev, stream: dev.module.synchronize(0),
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


@check(
    "stream/order",
    "STREAM-020",
    cases=("fills", "copies", "read_modify_write", "fill_then_copy", "many"),
    needs=("streams", "delay"),
)
def work_of_a_stream_runs_in_order(dev: Device, case: str) -> None:
    """Work queued on one stream runs in the order in which it was queued."""
    x, y = _zeros(dev), _zeros(dev)
    dev.synchronize()
    with dev.stream():
        dev.delay(LATE_MS)  # so that all of it is queued before any of it runs
        if case == "fills":
            for value in range(1, 9):
                x.fill_(value)
            dev.assert_equal(x, _full(8))
        elif case == "copies":
            sources = [torch.full((N,), float(v), device=dev.device(0)) for v in range(1, 9)]
            for source in sources:
                x.copy_(source)
            dev.assert_equal(x, _full(8))
        elif case == "read_modify_write":
            for _ in range(6):
                x.mul_(2).add_(1)
            dev.assert_equal(x, _full(63))
        elif case == "fill_then_copy":
            for value in range(1, 9):
                x.fill_(value)
                y.copy_(x)
                x.zero_()
            dev.assert_equal(y, _full(8))
            dev.assert_equal(x, _full(0))
        else:
            for value in range(300):
                x.fill_(value)
            y.copy_(x)
            dev.assert_equal(y, _full(299))


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


@check(
    "stream/wait_shape",
    "STREAM-022",
    cases=(
        "chain",
        "idle_links",
        "fan_in",
        "fan_out",
        "ping_pong",
        "to_default",
        "write_after_read",
    ),
    needs=("streams", "events", "delay"),
)
def waits_compose(dev: Device, case: str) -> None:
    """Waits order work through chains, joins and forks of streams."""
    x, y = _zeros(dev), _zeros(dev)
    dev.synchronize()
    if case == "chain":
        before = _producer(dev, x)
        for _ in range(5):
            after = dev.stream(0)
            after.wait_stream(before)
            with after:
                x.add_(1)
            before = after
        before.synchronize()
        dev.assert_equal(x, _full(6))
    elif case == "idle_links":
        before = _producer(dev, x)
        for _ in range(5):  # streams that only hand the wait on
            after = dev.stream(0)
            after.wait_stream(before)
            before = after
        with before:
            y.copy_(x)
        before.synchronize()
        dev.assert_equal(y, _full(1))
    elif case == "fan_in":
        parts = [_zeros(dev) for _ in range(4)]
        dev.synchronize()
        # Each is later than the one before: to wait for any one of them is not enough.
        streams = [
            _producer(dev, part, k + 1.0, LATE_MS * (k + 1) / 2) for k, part in enumerate(parts)
        ]
        with dev.stream(0) as join:
            for stream in streams:
                join.wait_stream(stream)
            for part in parts:
                y.add_(part)
        join.synchronize()
        dev.assert_equal(y, _full(10))
    elif case == "fan_out":
        ys = [_zeros(dev) for _ in range(4)]
        dev.synchronize()
        event = _producer(dev, x).record_event()
        for target in ys:
            with dev.stream(0) as stream:
                stream.wait_event(event)
                target.copy_(x)
        for target in ys:
            dev.assert_equal(target, _full(1))
    elif case == "ping_pong":
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
    elif case == "to_default":
        first = _producer(dev, x)
        dev.current_stream(0).wait_stream(first)
        y.copy_(x)
        dev.assert_equal(y, _full(1))
    else:
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
        if case == "wait_event":
            then.wait_event(first.record_event())
        else:
            then.wait_stream(first)
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


@check(
    "stream/independent",
    "STREAM-030",
    cases=("synchronize", "fill", "read", "default_is_no_barrier", "three"),
    needs=("streams", "delay"),
)
def a_busy_stream_does_not_delay_another(dev: Device, case: str) -> None:
    """Work on one stream is done, and can be waited for, while another stream is busy."""
    busy, other = dev.stream(), dev.stream()
    x = _zeros(dev)
    dev.synchronize()

    def look() -> bool:
        if case == "three":
            for stream in [dev.stream() for _ in range(3)]:
                with stream:
                    x.fill_(1)
                stream.synchronize()
        elif case == "default_is_no_barrier":
            default = dev.module.default_stream()
            with default:
                x.fill_(4)
            default.synchronize()
        else:
            with other:
                if case != "synchronize":
                    x.fill_(4)
                if case == "read":
                    assert x[0].item() == 4
            other.synchronize()
        return busy.query()

    with busy:
        assert while_held(dev, look) is False, "the other stream waited for the busy one"
    dev.synchronize()
    if case in ("fill", "read", "default_is_no_barrier"):
        dev.assert_equal(x, _full(4))


@check(
    "stream/synchronize_device",
    "STREAM-031",
    cases=("every_stream", "only_this_device", "by_index", "by_device", "from_other_current"),
    needs=("streams", "delay"),
)
def device_synchronize_covers_the_device(dev: Device, case: str) -> None:
    """Synchronising a device waits for all of its streams and for no other device."""
    if case == "every_stream":
        streams = [dev.stream(0) for _ in range(5)]
        for stream in streams:
            with stream:
                dev.delay(LATE_MS)
        torch.accelerator.synchronize(0)
        assert all(stream.query() for stream in streams), "a stream was left busy"
        return
    dev.require("multi_device")
    if case == "only_this_device":
        with dev.stream(1) as busy:

            def look() -> bool:
                torch.accelerator.synchronize(0)
                return busy.query()

            assert while_held(dev, look) is False, "synchronize(0) waited for device 1"
        return
    with dev.stream(1) as busy:
        dev.delay(LATE_MS)
    current = 0 if case == "from_other_current" else 1
    with torch.accelerator.device_index(current):
        torch.accelerator.synchronize(dev.device(1) if case == "by_device" else 1)
    assert busy.query(), "synchronize(1) did not wait for device 1"


# ---- the current stream ----------------------------------------------------------------------


@check(
    "stream/default",
    "STREAM-040",
    cases=("is_current", "of_device", "constant", "usable", "new_streams_differ"),
    needs=("streams",),
)
def every_device_has_a_default_stream(dev: Device, case: str) -> None:
    """Each device has one default stream, current at first, different from created ones."""
    default = dev.module.default_stream(0)
    if case == "is_current":
        assert in_thread(lambda: dev.current_stream(0)) == default
    elif case == "of_device":
        for index in range(dev.count):
            assert dev.module.default_stream(index).device == dev.device(index)
            assert dev.module.default_stream(dev.device(index)).device == dev.device(index)
    elif case == "constant":
        with dev.stream(0):
            assert dev.module.default_stream(0) == default
    elif case == "usable":
        with default:
            x = torch.ones(N, device=dev.device(0))
        default.synchronize()
        dev.assert_equal(x, _full(1))
    else:
        assert default not in [dev.stream(0) for _ in range(40)]


@check(
    "stream/context",
    "STREAM-041",
    cases=(
        "selects",
        "restores",
        "after_exception",
        "nested",
        "reentered",
        "returns_itself",
        "module_stream",
        "module_none",
    ),
    needs=("streams",),
)
def stream_context_selects_and_restores(dev: Device, case: str) -> None:
    """A stream as a context is current inside and the former stream is current after it."""
    before = dev.current_stream(0)
    a, b = dev.stream(0), dev.stream(0)
    if case == "after_exception":
        try:
            with a:
                raise KeyError("on purpose")
        except KeyError:
            pass
        else:
            raise AssertionError("the context swallowed the exception")
    elif case == "nested":
        with a:
            with b:
                assert dev.current_stream(0) == b
                with a:
                    assert dev.current_stream(0) == a
                assert dev.current_stream(0) == b
            assert dev.current_stream(0) == a
    elif case == "reentered":
        for _ in range(3):
            with a:
                assert dev.current_stream(0) == a
            assert dev.current_stream(0) == before
    elif case == "returns_itself":
        with a as entered:
            assert entered is a
    elif case == "module_stream":
        with dev.module.stream(a):
            assert dev.current_stream(0) == a
    elif case == "module_none":
        with a, dev.module.stream(None):
            assert dev.current_stream(0) == a
    else:
        with a:
            assert dev.current_stream(0) == a
    assert dev.current_stream(0) == before, "the former stream is not current again"


@check(
    "stream/context_device",
    "STREAM-042",
    cases=(
        "selects_device",
        "restores_device",
        "after_exception",
        "allocates_there",
        "set_stream",
        "module_stream",
    ),
    needs=("streams", "multi_device"),
)
def stream_context_switches_the_device(dev: Device, case: str) -> None:
    """Entering a stream of another device makes that device current, leaving it restores both."""
    with torch.accelerator.device_index(0):
        stream = dev.stream(1)
        outer = dev.current_stream(1)
        if case == "set_stream":
            torch.accelerator.set_stream(stream)
            try:
                assert torch.accelerator.current_device_index() == 1
                assert torch.accelerator.current_stream() == stream
            finally:
                torch.accelerator.set_stream(outer)
                torch.accelerator.set_device_index(0)
            return
        try:
            with dev.module.stream(stream) if case == "module_stream" else stream:
                assert torch.accelerator.current_device_index() == 1
                assert dev.current_stream(1) == stream
                if case == "allocates_there":
                    assert torch.ones(2, device=dev.type).device == dev.device(1)
                if case == "after_exception":
                    raise KeyError("on purpose")
        except KeyError:
            assert case == "after_exception"
        assert torch.accelerator.current_device_index() == 0, "device not restored"
        assert dev.current_stream(1) == outer, "the other device's stream was not restored"


@check("stream/per_device", "STREAM-043", needs=("streams", "multi_device"))
def every_device_has_its_own_current_stream(dev: Device) -> None:
    """Setting the stream of one device leaves the current stream of the other alone."""
    before = dev.current_stream(1)
    with torch.accelerator.device_index(0), dev.stream(0) as stream:
        assert dev.current_stream(0) == stream
        assert dev.current_stream(1) == before


@check(
    "stream/per_thread",
    "STREAM-044",
    cases=("new_thread", "set_elsewhere", "eight_threads"),
    needs=("streams", "threads"),
)
def every_thread_has_its_own_current_stream(dev: Device, case: str) -> None:
    """The current stream belongs to the thread; a new thread begins on the default stream."""
    default = dev.module.default_stream(0)
    if case == "new_thread":
        with dev.stream(0):
            assert in_thread(lambda: dev.current_stream(0)) == default
        return
    if case == "set_elsewhere":
        before = dev.current_stream(0)
        in_thread(lambda: torch.accelerator.set_stream(dev.stream(0)))
        assert dev.current_stream(0) == before, "another thread changed this thread's stream"
        return
    everyone = threading.Barrier(8)

    def worker() -> bool:
        stream = dev.stream(0)
        with stream:
            everyone.wait(30)
            mine = dev.current_stream(0) == stream
            everyone.wait(30)
        return mine

    assert all(in_threads([worker] * 8))


@check(
    "stream/set_stream",
    "STREAM-045",
    cases=("accelerator", "module", "wrong_type"),
    needs=("streams",),
)
def set_stream_makes_a_stream_current(dev: Device, case: str) -> None:
    """set_stream makes a stream current until another one is set; other devices' are refused."""
    before = dev.current_stream(0)
    setter = dev.module.set_stream if case == "module" else torch.accelerator.set_stream
    if case == "wrong_type":
        for refusing in (torch.accelerator.set_stream, dev.module.set_stream):
            with dev.stream(0) as current:
                raised(lambda: refusing(torch.Stream(device="cpu")))  # noqa: B023 - called at once
                assert dev.current_stream(0) == current
        return
    stream = dev.stream(0)
    try:
        setter(stream)
        assert dev.current_stream(0) == stream
    finally:
        setter(before)
    assert dev.current_stream(0) == before


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
            dev.module.default_stream(device).synchronize()
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


@check(
    "stream/operators_async",
    "STREAM-047",
    cases=("fill", "copy", "strided_copy", "allocate", "free"),
    needs=("streams", "delay"),
)
def operators_return_before_they_ran(dev: Device, case: str) -> None:
    """Queueing native work, allocating and freeing return while the stream is still held."""
    x, one = _zeros(dev), torch.ones(N, device=dev.device())
    stream = dev.stream()
    dev.synchronize()

    def look() -> bool:
        if case in _ON_STREAM:
            _ON_STREAM[case](x, one)
        elif case == "allocate":
            torch.empty(12345, device=dev.device())
        else:
            y = torch.empty(777, device=dev.device())
            y.fill_(1)
            del y
        return stream.query()

    with stream:
        assert while_held(dev, look) is False
    stream.synchronize()


# ---- asynchronous copies ---------------------------------------------------------------------


@check(
    "stream/non_blocking",
    "STREAM-048",
    cases=("to_host", "to_device", "between_devices"),
    needs=("streams", "delay", "async_copy", "pinned_memory"),
)
def non_blocking_copies_wait_in_their_stream(dev: Device, case: str) -> None:
    """A non-blocking copy returns before it ran, runs in stream order, and then has arrived."""
    if case == "between_devices":
        dev.require("multi_device", "peer_copy")
    stream = dev.stream(0)
    x = torch.ones(N, device=dev.device(0))
    host = torch.zeros(N).pin_memory()
    target = _zeros(dev, dev.count - 1)
    dev.synchronize()

    def look() -> tuple[bool, float]:
        if case == "to_host":
            host.copy_(x, non_blocking=True)
        elif case == "to_device":
            x.copy_(host, non_blocking=True)
        else:
            target.copy_(x, non_blocking=True)
        # A copy that went elsewhere has time to arrive.
        dev.module.default_stream(0).synchronize()
        time.sleep(0.01)
        return stream.query(), float(host[N - 1])

    with stream:
        done, arrived = while_held(dev, look)
    assert done is False and arrived == 0.0, "the copy did not wait for its turn"
    dev.synchronize()
    if case == "to_host":
        assert torch.equal(host, _full(1))
    elif case == "to_device":
        dev.assert_equal(x, _full(0))
    else:
        dev.assert_equal(target, _full(1))


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


@check(
    "stream/lifetime",
    "STREAM-050",
    cases=("dropped_while_busy", "dropped_in_context", "many_live", "other_thread", "thread_ended"),
    needs=("streams", "delay"),
)
def streams_may_be_dropped_any_time(dev: Device, case: str) -> None:
    """Dropping a stream object neither loses its work nor breaks what waits for it."""
    x = _zeros(dev)
    dev.synchronize()
    if case == "dropped_while_busy":
        stream = _producer(dev, x)
        del stream
    elif case == "dropped_in_context":
        with dev.stream(0):  # the context alone holds the stream
            dev.delay(LATE_MS)
            x.fill_(1)
    elif case == "many_live":
        streams = [dev.stream(0) for _ in range(64)]
        parts = [x[k : k + 64] for k in range(0, N, 64)]
        for stream, part in zip(streams, parts, strict=True):
            with stream:
                part.fill_(1)
    elif case == "other_thread":
        stream = dev.stream(0)

        def fill() -> None:
            with stream:
                dev.delay(LATE_MS)
                x.fill_(1)

        in_thread(fill)
        stream.synchronize()
        assert stream.query()
        assert x[-1].item() == 1, "the work of another thread was not waited for"
    else:
        stream = in_thread(lambda: _producer(dev, x))
        stream.synchronize()
        assert x[-1].item() == 1, "the work of the thread was not waited for"
    dev.assert_equal(x, _full(1))


@check(
    "stream/leak",
    "STREAM-051",
    cases=("created", "used", "waited_for"),
    needs=("streams", "events"),
)
def thousands_of_streams_leak_nothing(dev: Device, case: str) -> None:
    """Creating and dropping thousands of streams holds threads and file descriptors flat."""
    x = _zeros(dev)

    def batch(count: int) -> None:
        for _ in range(count):
            stream = dev.stream(0)
            if case != "created":
                with stream:
                    x.fill_(1)
            if case == "waited_for":
                dev.current_stream(0).wait_stream(stream)
        dev.synchronize()

    batch(200)  # pools fill, workers start
    before = footprint()
    batch(1000)
    after = footprint()
    assert after.threads <= before.threads + 4, f"threads: {before.threads} -> {after.threads}"
    assert after.descriptors <= before.descriptors + 4, (
        f"file descriptors: {before.descriptors} -> {after.descriptors}"
    )


@check(
    "stream/idle",
    "STREAM-052",
    cases=("synchronize", "device", "query", "wait_self"),
    needs=("streams", "events"),
)
def idle_streams_are_no_special_case(dev: Device, case: str) -> None:
    """Synchronising, querying or waiting for an idle or the same stream returns at once."""
    stream = dev.stream(0)
    for _ in range(100):
        if case == "synchronize":
            stream.synchronize()
        elif case == "device":
            torch.accelerator.synchronize(0)
        elif case == "query":
            assert stream.query()
        else:
            stream.wait_stream(stream)
            stream.wait_event(stream.record_event())
    with stream:
        dev.assert_equal(torch.ones(3, device=dev.device(0)), torch.ones(3))
