# SPDX-License-Identifier: BSD-3-Clause
"""Events: recording, querying, waiting, elapsed time, misuse, and leaks."""

from __future__ import annotations

from collections.abc import Callable

import torch

from conformance.check import check
from conformance.device import Device
from conformance.observe import (
    LATE_MS,
    becomes_true,
    footprint,
    heap_bytes,
    in_thread,
    raised,
    while_held,
)

N = 4096


def _zeros(dev: Device, index: int = 0) -> torch.Tensor:
    return torch.zeros(N, device=dev.device(index))


# ---- objects ---------------------------------------------------------------------------------


@check(
    "event/create",
    "EVENT-001",
    cases=(
        "default_device",
        "type",
        "timing",
        "blocking",
        "module_class",
        "device_attribute",
        "text",
    ),
    needs=("events",),
)
def events_can_be_created(dev: Device, case: str) -> None:
    """torch.Event is created for the device, with or without timing, and can be recorded."""
    if case == "default_device":
        event = torch.Event()
    elif case == "type":
        event = torch.Event(device=dev.type)
    elif case == "timing":
        event = torch.Event(device=dev.type, enable_timing=True)
    elif case == "blocking":
        event = torch.Event(device=dev.type, blocking=True)
    elif case == "module_class":
        event = dev.module.Event()
    else:
        event = dev.event()
    assert isinstance(event, torch.Event)
    event.record(dev.current_stream())
    event.synchronize()
    assert event.query() is True
    if case == "device_attribute":
        assert event.device == dev.device(torch.accelerator.current_device_index())
        assert isinstance(event.event_id, int)
    if case == "text":
        assert dev.type in repr(event)


_ON_FRESH: dict[str, Callable[[Device, torch.Event], object]] = {
    "query": lambda dev, event: event.query(),
    "synchronize": lambda dev, event: event.synchronize(),
    "wait": lambda dev, event: event.wait(),
    "wait_event": lambda dev, event: dev.stream().wait_event(event),
}


@check("event/unrecorded", "EVENT-002", cases=tuple(_ON_FRESH), needs=("events", "streams"))
def an_unrecorded_event_holds_nobody(dev: Device, case: str) -> None:
    """An event that was never recorded is done: it can be queried and waited for at once."""
    event = dev.event()
    assert _ON_FRESH[case](dev, event) in (True, None)
    assert event.query() is True


@check(
    "event/unrecorded_while_busy",
    "EVENT-002",
    cases=("torch", "module"),
    needs=("events", "streams", "delay"),
)
def an_unrecorded_event_marks_nothing(dev: Device, case: str) -> None:
    """An event made while the current stream is busy is done, and holds no stream that waits."""
    other = dev.stream()

    def look() -> tuple[bool, bool]:
        event = dev.module.Event() if case == "module" else dev.event()
        other.wait_event(event)
        return event.query(), other.query()

    with dev.stream():
        assert while_held(dev, look) == (True, True), "(event, waiting stream) done"
    dev.synchronize()


# ---- pending and done ------------------------------------------------------------------------


@check(
    "event/query",
    "EVENT-003",
    cases=(
        "pending",
        "done_after_synchronize",
        "done_by_itself",
        "idle_stream",
        "blocking",
        "timing",
    ),
    needs=("events", "streams", "delay"),
)
def query_tells_whether_the_work_is_done(dev: Device, case: str) -> None:
    """query() is False until the recorded work is done, then True, and never waits."""
    event = dev.event(timing=case == "timing", blocking=case == "blocking")
    stream = dev.stream()
    if case == "idle_stream":
        event.record(stream)
        assert becomes_true(event.query), "an event on an idle stream never completes"
        return
    with stream:
        if case in ("pending", "blocking", "timing"):

            def look() -> bool:
                event.record(stream)
                return event.query()

            assert while_held(dev, look) is False, "the event claims to be done before its work"
            event.synchronize()
        else:
            dev.delay(LATE_MS)
            event.record(stream)
            if case == "done_after_synchronize":
                stream.synchronize()
    assert becomes_true(event.query), "query() never becomes True"


@check(
    "event/synchronize",
    "EVENT-004",
    cases=("query", "stream", "blocking", "timing", "twice", "other_thread"),
    needs=("events", "streams", "delay"),
)
def synchronize_waits_for_the_event(dev: Device, case: str) -> None:
    """When synchronize() returns, the work recorded by the event is done."""
    event = dev.event(timing=case == "timing", blocking=case == "blocking")
    stream = dev.stream()
    with stream:
        dev.delay(LATE_MS)
        event.record(stream)
    if case == "other_thread":
        in_thread(event.synchronize)
    else:
        event.synchronize()
    if case == "twice":
        event.synchronize()
    # Nothing was queued after the event, so that the stream must be done as well.
    assert event.query(), "synchronize() returned while the event was pending"
    assert stream.query(), "synchronize() returned while the recorded work was pending"


@check(
    "event/synchronize_result",
    "EVENT-004",
    needs=("events", "streams", "delay", "async_copy", "pinned_memory"),
)
def synchronize_waits_for_the_result(dev: Device) -> None:
    """When synchronize() returns, a copy to the host recorded by the event has arrived."""
    x = torch.ones(N, device=dev.device(0))
    host = torch.zeros(N).pin_memory()
    event = dev.event()
    dev.synchronize()
    with dev.stream(0) as stream:
        dev.delay(LATE_MS)
        host.copy_(x, non_blocking=True)
        event.record(stream)
    event.synchronize()
    assert torch.equal(host, torch.ones(N)), "synchronize() returned before the copy arrived"


@check(
    "event/synchronize_only_its_work",
    "EVENT-005",
    cases=("later_work", "other_stream"),
    needs=("events", "streams", "delay"),
)
def synchronize_waits_for_nothing_else(dev: Device, case: str) -> None:
    """synchronize() waits for the work before the record, not for later or other work."""
    busy, idle = dev.stream(), dev.stream()
    event = dev.event()
    event.record(busy if case == "later_work" else idle)

    def look() -> bool:
        event.synchronize()
        return busy.query()

    with busy:
        assert while_held(dev, look) is False, "it waited for work that was not recorded"
    busy.synchronize()


@check(
    "event/record",
    "EVENT-006",
    cases=(
        "current_stream",
        "named_stream",
        "by_stream",
        "by_stream_new",
        "not_current",
        "other_device_current",
    ),
    needs=("events", "streams", "delay"),
)
def record_marks_the_right_stream(dev: Device, case: str) -> None:
    """record() marks the current stream, record(s) and s.record_event() mark s."""
    if case == "other_device_current":
        dev.require("multi_device")
    busy, idle = dev.stream(0), dev.stream(0)
    event = dev.event()

    def look() -> bool:
        if case == "not_current":
            event.record(idle)  # while `busy` is current
            event.synchronize()
            return busy.query()
        recorded = event
        if case == "current_stream":
            event.record()
        elif case == "named_stream":
            with idle:
                event.record(busy)
        elif case == "other_device_current":
            with torch.accelerator.device_index(1):
                event.record(busy)
        elif case == "by_stream":
            assert busy.record_event(event) is event
        else:
            recorded = busy.record_event()
        return recorded.query()

    with busy:
        assert while_held(dev, look) is False, "the event marks another stream"
    dev.synchronize()
    assert event.query()


@check(
    "event/record_again",
    "EVENT-007",
    cases=("becomes_pending", "timed", "last_counts", "earlier_wait_stands", "hundred_times"),
    needs=("events", "streams", "delay"),
)
def recording_again_moves_the_event(dev: Device, case: str) -> None:
    """An event means its last record; a wait means the record it found."""
    if case == "timed":
        dev.require("event_timing")
    event, stream, then = dev.event(timing=case == "timed"), dev.stream(), dev.stream()
    if case == "hundred_times":
        for _ in range(100):
            event.record(stream)
        event.synchronize()
        assert event.query()
        return
    event.record(stream)
    event.synchronize()

    def look() -> tuple[bool, bool]:
        if case == "earlier_wait_stands":
            then.wait_event(event)  # the finished record
        event.record(stream)
        if case == "earlier_wait_stands":
            then.synchronize()
        return event.query(), then.query()

    with stream:
        pending, waiter = while_held(dev, look)
    assert pending is False, "the event still means its first record"
    if case == "earlier_wait_stands":
        assert waiter is True, "a wait was moved to a later record"
    if case == "last_counts":
        event.synchronize()
        assert stream.query()
    dev.synchronize()


# ---- waiting ---------------------------------------------------------------------------------


@check(
    "event/wait",
    "EVENT-008",
    cases=(
        "stream_waits",
        "current_stream",
        "named_stream",
        "several_waiters",
        "two_events",
        "finished_event",
    ),
    needs=("events", "streams", "delay"),
)
def work_after_a_wait_follows_the_event(dev: Device, case: str) -> None:
    """Work queued after a wait runs after the work recorded by the event."""
    x = _zeros(dev)
    waiters = [dev.stream(0) for _ in range(3 if case == "several_waiters" else 1)]
    results = [_zeros(dev) for _ in waiters]
    event, second = dev.event(), dev.event()
    dev.synchronize()
    with dev.stream(0) as first:
        dev.delay(LATE_MS)
        x.fill_(1)
        event.record(first)
        if case == "two_events":
            dev.delay(LATE_MS)
            x.fill_(2)
            second.record(first)
    if case == "finished_event":
        event.synchronize()
    for waiter, result in zip(waiters, results, strict=True):
        with waiter:
            if case == "current_stream":
                event.wait()
            elif case == "named_stream":
                event.wait(waiter)
            else:
                waiter.wait_event(event)
            if case == "two_events":
                waiter.wait_event(second)
            result.copy_(x)
    for result in results:
        dev.assert_equal(result, torch.full((N,), 2.0 if case == "two_events" else 1.0))


@check("event/wait_host", "EVENT-009", needs=("events", "streams", "delay"))
def waiting_does_not_hold_the_host(dev: Device) -> None:
    """event.wait() makes the stream wait and returns to the host at once."""
    first, then = dev.stream(), dev.stream()
    event = dev.event()

    def look() -> tuple[bool, bool]:
        event.record(first)
        event.wait(then)
        return event.query(), then.query()

    with first:
        assert while_held(dev, look) == (False, False)
    dev.synchronize()


@check(
    "event/wait_device",
    "EVENT-010",
    cases=("wait", "synchronize", "query"),
    needs=("events", "streams", "delay", "multi_device"),
)
def events_work_across_devices(dev: Device, case: str) -> None:
    """An event of device 0 can be waited for by device 1, and asked while device 1 is current."""
    event, first, then = dev.event(), dev.stream(0), dev.stream(1)

    def look() -> bool:
        event.record(first)
        with torch.accelerator.device_index(1):
            if case == "wait":
                event.wait(then)
                return then.query()
            return event.query()

    with first:
        assert while_held(dev, look) is False
    with torch.accelerator.device_index(1):
        if case == "synchronize":
            event.synchronize()
            assert first.query()
        dev.synchronize()
        assert then.query() and event.query()
        assert torch.accelerator.current_device_index() == 1


@check(
    "event/destroyed",
    "EVENT-011",
    cases=("while_waited_for", "while_pending"),
    needs=("events", "streams", "delay"),
)
def a_dropped_event_still_orders(dev: Device, case: str) -> None:
    """Dropping an event that is pending or waited for neither loses the wait nor blocks."""
    x, y = _zeros(dev), _zeros(dev)
    first, then = dev.stream(0), dev.stream(0)
    dev.synchronize()
    event = dev.event()
    with first:
        dev.delay(LATE_MS)
        x.fill_(1)
        event.record(first)
    then.wait_event(event)
    with then:
        y.copy_(x)
    if case == "while_pending":
        then.wait_stream(first)
    del event
    dev.assert_equal(y, torch.ones(N))


# ---- elapsed time ----------------------------------------------------------------------------


def _timed(dev: Device, *delays: float) -> list[torch.Event]:
    """Timing events around delays of that many milliseconds on one stream, all completed."""
    events = [dev.event(timing=True) for _ in range(len(delays) + 1)]
    with dev.stream(0) as stream:
        events[0].record(stream)
        for ms, event in zip(delays, events[1:], strict=True):
            if ms > 0:
                dev.delay(ms)
            event.record(stream)
        stream.synchronize()
    return events


@check(
    "event/elapsed",
    "EVENT-020",
    cases=(
        "type",
        "not_negative",
        "at_least_the_work",
        "grows_with_work",
        "empty_is_short",
        "adds_up",
        "same_event",
        "repeatable",
    ),
    needs=("events", "streams", "event_timing", "delay"),
)
def elapsed_time_measures_the_work(dev: Device, case: str) -> None:
    """elapsed_time is the time in milliseconds that the device spent between two records."""
    if case in ("type", "not_negative", "same_event"):
        start, end = _timed(dev, 0)
        elapsed = start.elapsed_time(start if case == "same_event" else end)
        assert isinstance(elapsed, float)
        assert elapsed == 0.0 if case == "same_event" else elapsed >= 0.0
        return
    a, b, c, d = _timed(dev, 160, 30, 0)
    long, short, empty = a.elapsed_time(b), b.elapsed_time(c), c.elapsed_time(d)
    if case == "at_least_the_work":
        # 5 % for clocks that differ: a delay is a lower bound already.
        assert long >= 160 * 0.95 and short >= 30 * 0.95, f"{long} ms for 160, {short} ms for 30"
    elif case == "grows_with_work":
        for _ in range(3):  # a preempted 30 ms may last longer once, not every time
            if long > short:
                return
            a, b, c, d = _timed(dev, 160, 30, 0)
            long, short = a.elapsed_time(b), b.elapsed_time(c)
        raise AssertionError(f"160 ms of work took {long} ms, 30 ms took {short} ms")
    elif case == "empty_is_short":
        for _ in range(3):
            if empty < long / 2:
                return
            a, b, c, d = _timed(dev, 160, 30, 0)
            long, empty = a.elapsed_time(b), c.elapsed_time(d)
        raise AssertionError(f"no work took {empty} ms, 160 ms of work took {long} ms")
    elif case == "adds_up":
        whole = a.elapsed_time(d)
        assert abs(whole - (long + short + empty)) <= 0.1 + 0.01 * whole
    else:
        assert a.elapsed_time(b) == long, "asking twice gives two answers"


@check("event/elapsed_work", "EVENT-020", needs=("events", "streams", "event_timing", "delay"))
def elapsed_time_excludes_what_came_before(dev: Device) -> None:
    """Work queued before the first record is not part of the elapsed time."""
    for _ in range(3):
        start, end = dev.event(timing=True), dev.event(timing=True)
        with dev.stream(0) as stream:
            dev.delay(160)
            start.record(stream)
            end.record(stream)
        end.synchronize()
        elapsed = start.elapsed_time(end)
        if elapsed < 80:
            return
    raise AssertionError(f"{elapsed} ms elapsed between two records with nothing between them")


_MISUSE: dict[str, Callable[[Device], tuple[torch.Event, torch.Event]]] = {
    "start_without_timing": lambda dev: (dev.event(), dev.event(timing=True)),
    "end_without_timing": lambda dev: (dev.event(timing=True), dev.event()),
    "start_unrecorded": lambda dev: (dev.event(timing=True), dev.event(timing=True)),
    "end_unrecorded": lambda dev: (dev.event(timing=True), dev.event(timing=True)),
    # The device module may have a class of its own.
    "module_without_timing": lambda dev: (dev.module.Event(), dev.module.Event()),
    "module_end_unrecorded": lambda dev: (
        dev.module.Event(enable_timing=True),
        dev.module.Event(enable_timing=True),
    ),
}


@check("event/elapsed_misuse", "EVENT-021", cases=tuple(_MISUSE), needs=("events", "event_timing"))
def elapsed_time_refuses_what_it_cannot_measure(dev: Device, case: str) -> None:
    """Events without timing, or never recorded, raise instead of giving a number."""
    start, end = _MISUSE[case](dev)
    for event, name in ((start, "start"), (end, "end")):
        if not case.endswith(f"{name}_unrecorded"):
            event.record(dev.current_stream())
    dev.synchronize()
    error = raised(lambda: start.elapsed_time(end))
    assert isinstance(error, (RuntimeError, ValueError)), repr(error)


@check("event/elapsed_pending", "EVENT-022", needs=("events", "streams", "event_timing", "delay"))
def elapsed_time_of_pending_events_is_refused(dev: Device) -> None:
    """elapsed_time of an event that is still pending raises, and works once it is done."""
    start, end = dev.event(timing=True), dev.event(timing=True)
    with dev.stream() as stream:

        def look() -> Exception:
            start.record(stream)
            end.record(stream)
            return raised(lambda: start.elapsed_time(end))

        error = while_held(dev, look)
    assert isinstance(error, RuntimeError), repr(error)
    end.synchronize()
    assert start.elapsed_time(end) >= 0.0


@check(
    "event/record_other_device",
    "EVENT-023",
    cases=("cpu_stream", "second_device"),
    needs=("events", "streams"),
)
def an_event_keeps_to_its_device(dev: Device, case: str) -> None:
    """Recording on a stream of another type, or moving to another device, raises."""
    event = dev.event()
    event.record(dev.current_stream(0))
    if case == "cpu_stream":
        other = torch.Stream(device="cpu")
    else:
        dev.require("multi_device")
        other = dev.stream(1)
    error = raised(lambda: event.record(other))
    assert isinstance(error, (RuntimeError, ValueError)), repr(error)
    event.record(dev.current_stream(0))
    event.synchronize()
    assert event.query()


# ---- lifetime --------------------------------------------------------------------------------


@check(
    "event/leak",
    "EVENT-030",
    cases=("created", "recorded", "timed", "waited_for"),
    needs=("events", "streams"),
)
def thousands_of_events_leak_nothing(dev: Device, case: str) -> None:
    """Creating and dropping thousands of events holds threads and file descriptors flat."""
    stream, then = dev.stream(), dev.stream()

    def batch(count: int) -> None:
        for _ in range(count):
            event = dev.event(timing=case == "timed")
            if case != "created":
                event.record(stream)
            if case == "waited_for":
                then.wait_event(event)
        dev.synchronize()

    batch(100)
    before = footprint()
    batch(3000)
    after = footprint()
    assert after.threads <= before.threads + 2, f"threads: {before.threads} -> {after.threads}"
    assert after.descriptors <= before.descriptors + 2, (
        f"file descriptors: {before.descriptors} -> {after.descriptors}"
    )


@check("event/leak_memory", "EVENT-030", cases=("recorded", "timed"), needs=("events", "streams"))
def thousands_of_events_leak_no_memory(dev: Device, case: str) -> None:
    """What recorded events take of the host's memory is returned when they are dropped."""
    stream = dev.stream()
    count, growths = 4000, []
    for _ in range(5):
        before = heap_bytes()
        for _ in range(count):
            dev.event(timing=case == "timed").record(stream)
        dev.synchronize()
        growths.append(heap_bytes() - before)
    # The first rounds fill pools and arenas; a leak goes on in every round.
    assert min(growths[2:]) < 64 * count, f"{count} events keep {min(growths[2:])} bytes"


@check("event/many_live", "EVENT-031", needs=("events", "streams", "delay"))
def thousand_events_can_be_pending(dev: Device) -> None:
    """A thousand events pending at once all complete, in the order of their records."""
    events = [dev.event() for _ in range(1000)]
    with dev.stream() as stream:

        def look() -> bool:
            for event in events:
                event.record(stream)
            return events[0].query() or events[-1].query()

        assert while_held(dev, look) is False
    events[500].synchronize()
    assert all(event.query() for event in events[:501]), "an earlier record is still pending"
    events[-1].synchronize()
    assert all(event.query() for event in events)
