# SPDX-License-Identifier: BSD-3-Clause
"""Events: recording, querying, waiting, elapsed time, misuse, and leaks."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import torch

from torch_conformance.authoring.api import (
    LATE_MS,
    Device,
    becomes_true,
    check,
    footprint,
    heap_bytes,
    in_thread,
    raised,
    while_held,
)

N = 4096

#: What observing a busy stream needs.
_DELAYED = ("events", "streams", "delay")


def _zeros(dev: Device, index: int = 0) -> torch.Tensor:
    return torch.zeros(N, device=dev.device(index))


# ---- objects ---------------------------------------------------------------------------------


_CREATED: dict[str, Callable[[Device], torch.Event]] = {
    "default_device": lambda dev: torch.Event(),
    "type": lambda dev: torch.Event(device=dev.type),
    "timing": lambda dev: torch.Event(device=dev.type, enable_timing=True),
    "blocking": lambda dev: torch.Event(device=dev.type, blocking=True),
    "module_class": lambda dev: dev.module.Event(),
}


def _can_be_recorded(dev: Device, event: torch.Event) -> None:
    assert isinstance(event, torch.Event)
    event.record(dev.current_stream())
    event.synchronize()
    assert event.query() is True


@check("event/create", "EVENT-001", cases=_CREATED, needs=("events",))
def events_can_be_created(dev: Device, case: str) -> None:
    """torch.Event is created for the device, with or without timing, and can be recorded."""
    _can_be_recorded(dev, _CREATED[case](dev))


#: What holds of an event that was recorded.
_ATTRIBUTES: dict[str, Callable[[Device, torch.Event], bool]] = {
    "device_attribute": lambda dev, event: (
        event.device == dev.device(torch.accelerator.current_device_index())
        and isinstance(event.event_id, int)
    ),
    "text": lambda dev, event: dev.type in repr(event),
}


@check("event/create", "EVENT-001", cases=_ATTRIBUTES, needs=("events",))
def events_have_their_attributes(dev: Device, case: str) -> None:
    """An event has its device and an integer id, and its text names the device type."""
    event = dev.event()
    _can_be_recorded(dev, event)
    assert _ATTRIBUTES[case](dev, event), f"{event} of {event.device}, id {event.event_id}"


_ON_FRESH: dict[str, Callable[[Device, torch.Event], object]] = {
    "query": lambda dev, event: event.query(),
    "synchronize": lambda dev, event: event.synchronize(),
    "wait": lambda dev, event: event.wait(),
    "wait_event": lambda dev, event: dev.stream().wait_event(event),
}


@check("event/unrecorded", "EVENT-002", cases=_ON_FRESH, needs=("events", "streams"))
def an_unrecorded_event_holds_nobody(dev: Device, case: str) -> None:
    """An event that was never recorded is done: it can be queried and waited for at once."""
    event = dev.event()
    assert _ON_FRESH[case](dev, event) in (True, None)
    assert event.query() is True


_CLASSES: dict[str, Callable[[Device], torch.Event]] = {
    "torch": lambda dev: dev.event(),
    "module": lambda dev: dev.module.Event(),
}


@check("event/unrecorded_while_busy", "EVENT-002", cases=_CLASSES, needs=_DELAYED)
def an_unrecorded_event_marks_nothing(dev: Device, case: str) -> None:
    """An event made while the current stream is busy is done, and holds no stream that waits."""
    other = dev.stream()

    def look() -> tuple[bool, bool]:
        event = _CLASSES[case](dev)
        other.wait_event(event)
        return event.query(), other.query()

    with dev.stream():
        assert while_held(dev, look) == (True, True), "(event, waiting stream) done"
    dev.synchronize()


# ---- pending and done ------------------------------------------------------------------------


#: name -> options of an event whose work is pending.
_PENDING = {"pending": {}, "blocking": {"blocking": True}, "timing": {"timing": True}}


@check("event/query", "EVENT-003", cases=_PENDING, needs=_DELAYED)
def query_tells_that_work_is_pending(dev: Device, case: str) -> None:
    """query() is False until the recorded work is done, then True, and never waits."""
    event, stream = dev.event(**_PENDING[case]), dev.stream()

    def look() -> bool:
        event.record(stream)
        return event.query()

    with stream:
        assert while_held(dev, look) is False, "the event claims to be done before its work"
    event.synchronize()
    assert becomes_true(event.query), "query() never becomes True"


def _recorded_late(dev: Device, **options: bool) -> tuple[torch.Event, torch.Stream]:
    """An event that marks the end of a delay, and the stream of both."""
    event = dev.event(**options)
    with dev.stream() as stream:
        dev.delay(LATE_MS)
        event.record(stream)
    return event, stream


@check("event/query:done_after_synchronize", "EVENT-003", needs=_DELAYED)
def query_tells_that_a_synchronized_stream_is_done(dev: Device) -> None:
    """query() is True once the host has waited for the event's stream."""
    event, stream = _recorded_late(dev)
    stream.synchronize()
    assert event.query(), "query() is False though the stream has been waited for"


@check("event/query:done_by_itself", "EVENT-003", needs=_DELAYED)
def query_tells_that_work_has_ended(dev: Device) -> None:
    """query() becomes True without any wait for the event or for its stream."""
    event, _ = _recorded_late(dev)
    assert becomes_true(event.query), "query() never becomes True"


@check("event/query:idle_stream", "EVENT-003", needs=_DELAYED)
def an_event_of_an_idle_stream_completes(dev: Device) -> None:
    """query() becomes True for an event that was recorded on a stream without work."""
    event, stream = dev.event(), dev.stream()
    event.record(stream)
    assert becomes_true(event.query), "an event on an idle stream never completes"


def _synchronize_twice(event: torch.Event) -> None:
    event.synchronize()
    event.synchronize()


#: name -> (options of the event, how it is waited for).
_SYNCHRONIZED: dict[str, tuple[dict[str, bool], Callable[[torch.Event], object]]] = {
    "query": ({}, lambda event: event.synchronize()),
    "blocking": ({"blocking": True}, lambda event: event.synchronize()),
    "timing": ({"timing": True}, lambda event: event.synchronize()),
    "twice": ({}, _synchronize_twice),
    "other_thread": ({}, lambda event: in_thread(event.synchronize)),
}


@check("event/synchronize", "EVENT-004", cases=_SYNCHRONIZED, needs=_DELAYED)
def synchronize_waits_for_the_event(dev: Device, case: str) -> None:
    """When synchronize() returns, the event and the work that it marks are done."""
    options, wait = _SYNCHRONIZED[case]
    event, stream = _recorded_late(dev, **options)
    wait(event)
    assert event.query(), "synchronize() returned while the event was pending"
    # Nothing was queued after the event, so that the stream must be done as well.
    assert stream.query(), "synchronize() returned while the recorded work was pending"


@check("event/synchronize:stream", "EVENT-004", needs=_DELAYED)
def synchronize_waits_for_the_work(dev: Device) -> None:
    """When synchronize() returns, the stream is done, also before the event is queried."""
    event, stream = _recorded_late(dev)
    event.synchronize()
    assert stream.query(), "synchronize() returned while the recorded work was pending"
    assert event.query(), "synchronize() returned while the event was pending"


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


#: Which of a busy and an idle stream the event is recorded on.
_RECORDED_ON: dict[str, Callable[[torch.Stream, torch.Stream], torch.Stream]] = {
    "later_work": lambda busy, idle: busy,
    "other_stream": lambda busy, idle: idle,
}


@check("event/synchronize_only_its_work", "EVENT-005", cases=_RECORDED_ON, needs=_DELAYED)
def synchronize_waits_for_nothing_else(dev: Device, case: str) -> None:
    """synchronize() waits for the work before the record, not for later or other work."""
    busy, idle = dev.stream(), dev.stream()
    event = dev.event()
    event.record(_RECORDED_ON[case](busy, idle))

    def look() -> bool:
        event.synchronize()
        return busy.query()

    with busy:
        assert while_held(dev, look) is False, "it waited for work that was not recorded"
    busy.synchronize()


def _marks_the_busy_stream(
    dev: Device, record: Callable[[torch.Event, torch.Stream], object]
) -> None:
    """What `record` does, while a busy stream is current, marks that stream."""
    busy, event = dev.stream(0), dev.event()

    def look() -> bool:
        record(event, busy)
        return event.query()

    with busy:
        assert while_held(dev, look) is False, "the event marks another stream"
    dev.synchronize()
    assert event.query()


def _record_from_another_stream(event: torch.Event, busy: torch.Stream) -> None:
    with torch.Stream(busy.device):
        event.record(busy)


def _record_by_stream(event: torch.Event, busy: torch.Stream) -> None:
    assert busy.record_event(event) is event


_RECORDS: dict[str, Callable[[torch.Event, torch.Stream], None]] = {
    "current_stream": lambda event, busy: event.record(),
    "named_stream": _record_from_another_stream,
    "by_stream": _record_by_stream,
}


@check("event/record", "EVENT-006", cases=_RECORDS, needs=_DELAYED)
def record_marks_the_right_stream(dev: Device, case: str) -> None:
    """record() marks the current stream, record(s) and s.record_event() mark s."""
    _marks_the_busy_stream(dev, _RECORDS[case])


@check("event/record:by_stream_new", "EVENT-006", needs=_DELAYED)
def record_event_makes_an_event(dev: Device) -> None:
    """s.record_event() returns a new event that marks s."""
    with dev.stream(0) as busy:
        seen = while_held(dev, lambda: busy.record_event().query())
    assert seen is False, "the event marks another stream"
    dev.synchronize()


@check("event/record:other_device_current", "EVENT-006", needs=_DELAYED)
def record_marks_a_stream_of_a_device_that_is_not_current(dev: Device) -> None:
    """event.record(s) marks s, while another device is current."""
    dev.require("multi_device")

    def record(event: torch.Event, busy: torch.Stream) -> None:
        with torch.accelerator.device_index(1):
            event.record(busy)

    _marks_the_busy_stream(dev, record)


@check("event/record:not_current", "EVENT-006", needs=_DELAYED)
def record_does_not_mark_the_current_stream_instead(dev: Device) -> None:
    """event.record(s) does not mark the current stream, which is another one and busy."""
    busy, idle, event = dev.stream(0), dev.stream(0), dev.event()

    def look() -> bool:
        event.record(idle)
        event.synchronize()
        return busy.query()

    with busy:
        assert while_held(dev, look) is False, "the event marks another stream"
    dev.synchronize()
    assert event.query()


def _recorded_again(dev: Device, event: torch.Event) -> torch.Stream:
    """Record a finished event again, on a stream that is held: it is pending."""
    stream = dev.stream()
    event.record(stream)
    event.synchronize()

    def look() -> bool:
        event.record(stream)
        return event.query()

    with stream:
        assert while_held(dev, look) is False, "the event still means its first record"
    return stream


#: name -> whether the event takes the time.
_TIMED = {"becomes_pending": False, "timed": True}


@check("event/record_again", "EVENT-007", cases=_TIMED, needs=_DELAYED)
def recording_again_makes_an_event_pending(dev: Device, case: str) -> None:
    """An event that was done is pending again after another record."""
    if _TIMED[case]:
        dev.require("event_timing")
    _recorded_again(dev, dev.event(timing=_TIMED[case]))
    dev.synchronize()


@check("event/record_again:last_counts", "EVENT-007", needs=_DELAYED)
def synchronize_waits_for_the_last_record(dev: Device) -> None:
    """synchronize() of an event that was recorded twice waits for the second record."""
    event = dev.event()
    stream = _recorded_again(dev, event)
    event.synchronize()
    assert stream.query()


@check("event/record_again:earlier_wait_stands", "EVENT-007", needs=_DELAYED)
def recording_again_does_not_move_an_earlier_wait(dev: Device) -> None:
    """A stream that waits for an event waits for the record there was, not for a later one."""
    event, stream, then = dev.event(), dev.stream(), dev.stream()
    event.record(stream)
    event.synchronize()

    def look() -> tuple[bool, bool]:
        then.wait_event(event)  # the finished record
        event.record(stream)
        then.synchronize()
        return event.query(), then.query()

    with stream:
        pending, waiter = while_held(dev, look)
    assert pending is False, "the event still means its first record"
    assert waiter is True, "a wait was moved to a later record"
    dev.synchronize()


@check("event/record_again:hundred_times", "EVENT-007", needs=_DELAYED)
def an_event_can_be_recorded_a_hundred_times(dev: Device) -> None:
    """An event that was recorded a hundred times is done after a wait for it."""
    event, stream = dev.event(), dev.stream()
    for _ in range(100):
        event.record(stream)
    event.synchronize()
    assert event.query()


#: More than a counter of 16 bits can hold.
_MANY_RECORDS = 66_000


@check("event/record_again:counter", "EVENT-007", needs=_DELAYED)
def recording_has_no_limit(dev: Device) -> None:
    """An event is done or pending as its last record says, after more than 2^16 records."""
    event, stream = dev.event(), dev.stream()
    for _ in range(_MANY_RECORDS):
        event.record(stream)
    event.synchronize()
    assert event.query() and stream.query(), "not done after the wait for the last record"
    _recorded_again(dev, event)
    event.synchronize()
    assert event.query()


# ---- waiting ---------------------------------------------------------------------------------


def _fill_late(
    dev: Device, stream: torch.Stream, x: torch.Tensor, value: float = 1.0
) -> torch.Event:
    """Queue a late write to `x` on a stream; return an event behind it."""
    event = dev.event()
    with stream:
        dev.delay(LATE_MS)
        x.fill_(value)
        event.record(stream)
    return event


def _wait_for_a_finished_event(event: torch.Event, waiter: torch.Stream) -> None:
    event.synchronize()
    waiter.wait_event(event)


_WAITS: dict[str, Callable[[torch.Event, torch.Stream], object]] = {
    "stream_waits": lambda event, waiter: waiter.wait_event(event),
    "current_stream": lambda event, waiter: event.wait(),
    "named_stream": lambda event, waiter: event.wait(waiter),
    "finished_event": _wait_for_a_finished_event,
}


@check("event/wait", "EVENT-008", cases=_WAITS, needs=_DELAYED)
def work_after_a_wait_follows_the_event(dev: Device, case: str) -> None:
    """Work queued after a wait runs after the work recorded by the event."""
    x, result = _zeros(dev), _zeros(dev)
    first, waiter = dev.stream(0), dev.stream(0)
    dev.synchronize()
    event = _fill_late(dev, first, x)
    with waiter:
        _WAITS[case](event, waiter)
        result.copy_(x)
    dev.assert_equal(result, torch.ones(N))


@check("event/wait:several_waiters", "EVENT-008", needs=_DELAYED)
def several_streams_can_wait_for_an_event(dev: Device) -> None:
    """Work of three streams that wait for one event runs after the work recorded by it."""
    x, results = _zeros(dev), [_zeros(dev) for _ in range(3)]
    first, waiters = dev.stream(0), [dev.stream(0) for _ in results]
    dev.synchronize()
    event = _fill_late(dev, first, x)
    for waiter, result in zip(waiters, results, strict=True):
        with waiter:
            waiter.wait_event(event)
            result.copy_(x)
    for result in results:
        dev.assert_equal(result, torch.ones(N))


@check("event/wait:two_events", "EVENT-008", needs=_DELAYED)
def a_stream_can_wait_for_two_events(dev: Device) -> None:
    """Work queued after waits for two events runs after the work recorded by both."""
    x, result = _zeros(dev), _zeros(dev)
    first, waiter = dev.stream(0), dev.stream(0)
    dev.synchronize()
    events = [_fill_late(dev, first, x, value) for value in (1.0, 2.0)]
    with waiter:
        for event in events:
            waiter.wait_event(event)
        result.copy_(x)
    dev.assert_equal(result, torch.full((N,), 2.0))


@check("event/wait_host", "EVENT-009", needs=_DELAYED)
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


_TWO_DEVICES = (*_DELAYED, "multi_device")


def _pending_for_device_1(
    dev: Device, event: torch.Event, first: torch.Stream, look: Callable[[], bool]
) -> None:
    """Record an event on a busy stream of device 0: `look`, by device 1, finds its work pending."""

    def record() -> bool:
        event.record(first)
        with torch.accelerator.device_index(1):
            return look()

    with first:
        assert while_held(dev, record) is False


@check("event/wait_device:wait", "EVENT-010", needs=_TWO_DEVICES)
def a_device_waits_for_an_event_of_another(dev: Device) -> None:
    """An event of device 0 can be waited for by a stream of device 1."""
    event, first, then = dev.event(), dev.stream(0), dev.stream(1)

    def look() -> bool:
        event.wait(then)
        return then.query()

    _pending_for_device_1(dev, event, first, look)
    with torch.accelerator.device_index(1):
        dev.synchronize()
        assert then.query() and event.query()
        assert torch.accelerator.current_device_index() == 1


#: How the end of the work is waited for.
_ENDS: dict[str, Callable[[Device, torch.Event], None]] = {
    "synchronize": lambda dev, event: event.synchronize(),
    "query": lambda dev, event: dev.synchronize(),
}


@check("event/wait_device", "EVENT-010", cases=_ENDS, needs=_TWO_DEVICES)
def the_host_waits_for_an_event_of_another_device(dev: Device, case: str) -> None:
    """An event of device 0 can be asked and waited for while device 1 is current."""
    event, first = dev.event(), dev.stream(0)
    _pending_for_device_1(dev, event, first, event.query)
    with torch.accelerator.device_index(1):
        _ENDS[case](dev, event)
        assert first.query() and event.query()
        assert torch.accelerator.current_device_index() == 1


def _event_pends_on_the_last_device(dev: Device, look: Callable[[torch.Event], bool]) -> None:
    """An event of a busy stream of the last device is pending, by `look`, until that is done."""
    last = dev.count - 1
    event, busy = dev.event(), dev.stream(last)

    def record() -> bool:
        event.record(busy)
        return look(event)

    with busy:
        assert while_held(dev, record) is False, "the event is done before its work"
    busy.synchronize()
    assert event.query() and event.device == dev.device(last)


@check("event/last_device:query", "EVENT-003", needs=_TWO_DEVICES)
def events_of_the_last_device_are_asked(dev: Device) -> None:
    """query() of an event of the last device is False until its work is done."""
    _event_pends_on_the_last_device(dev, lambda event: event.query())


@check("event/last_device:wait", "EVENT-008", needs=_TWO_DEVICES)
def streams_of_the_last_device_wait_for_its_events(dev: Device) -> None:
    """A stream of the last device that waits for an event there is busy until that is done."""
    then = dev.stream(dev.count - 1)

    def look(event: torch.Event) -> bool:
        event.wait(then)
        return then.query()

    _event_pends_on_the_last_device(dev, look)


@check("event/last_device:synchronize", "EVENT-004", needs=_TWO_DEVICES)
def events_of_the_last_device_are_waited_for(dev: Device) -> None:
    """synchronize() of an event of the last device waits, while the first device is current."""
    busy = dev.stream(dev.count - 1)
    with busy:
        dev.delay(LATE_MS)
        event = busy.record_event()
    event.synchronize()
    assert event.query() and busy.query()


@check("event/destroyed:while_waited_for", "EVENT-011", needs=_DELAYED)
def a_dropped_event_still_orders(dev: Device) -> None:
    """Dropping an event that a stream waits for does not lose the wait."""
    x, y = _zeros(dev), _zeros(dev)
    first, then = dev.stream(0), dev.stream(0)
    dev.synchronize()
    event = _fill_late(dev, first, x)
    then.wait_event(event)
    with then:
        y.copy_(x)
    del event
    dev.assert_equal(y, torch.ones(N))


@check("event/destroyed:while_pending", "EVENT-011", needs=_DELAYED)
def a_dropped_event_does_not_hold_the_host(dev: Device) -> None:
    """Dropping an event that is pending neither blocks nor disturbs the order of its stream."""
    x, y = _zeros(dev), _zeros(dev)
    first, then = dev.stream(0), dev.stream(0)
    dev.synchronize()

    def look() -> bool:
        x.fill_(1)
        first.record_event()  # and drops the event
        then.wait_stream(first)
        return first.query()

    with first:
        assert while_held(dev, look) is False, "dropping a pending event waits for its work"
    with then:
        y.copy_(x)
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


def _work_times(dev: Device) -> tuple[float, float, float]:
    """Milliseconds that passed between the records around 160 ms of work, 30 ms, and none."""
    a, b, c, d = _timed(dev, 160, 30, 0)
    return a.elapsed_time(b), b.elapsed_time(c), c.elapsed_time(d)


_TIMING = ("events", "streams", "event_timing", "delay")


#: What holds of two records with nothing between them.
_EMPTY: dict[str, Callable[[torch.Event, torch.Event], bool]] = {
    "type": lambda start, end: isinstance(start.elapsed_time(end), float),
    "not_negative": lambda start, end: start.elapsed_time(end) >= 0.0,
    "same_event": lambda start, end: start.elapsed_time(start) == 0.0,
}


@check("event/elapsed", "EVENT-020", cases=_EMPTY, needs=_TIMING)
def elapsed_time_is_a_number_of_milliseconds(dev: Device, case: str) -> None:
    """elapsed_time is a float, is not negative, and is zero from an event to itself."""
    start, end = _timed(dev, 0)
    times = start.elapsed_time(end), start.elapsed_time(start)
    assert _EMPTY[case](start, end), f"to the next and to itself: {times}"


@check("event/elapsed:at_least_the_work", "EVENT-020", needs=_TIMING)
def elapsed_time_covers_the_work(dev: Device) -> None:
    """elapsed_time is at least the milliseconds that the work between two records takes."""
    long, short, _ = _work_times(dev)
    # 5 % for clocks that differ: a delay is a lower bound already.
    assert long >= 160 * 0.95 and short >= 30 * 0.95, f"{long} ms for 160, {short} ms for 30"


@check("event/elapsed:grows_with_work", "EVENT-020", needs=_TIMING)
def elapsed_time_grows_with_the_work(dev: Device) -> None:
    """elapsed_time of more work is larger."""
    for _ in range(3):  # a preempted 30 ms may last longer once, not every time
        long, short, _ = _work_times(dev)
        if long > short:
            return
    raise AssertionError(f"160 ms of work took {long} ms, 30 ms took {short} ms")


@check("event/elapsed:empty_is_short", "EVENT-020", needs=_TIMING)
def elapsed_time_of_no_work_is_short(dev: Device) -> None:
    """elapsed_time of two records with nothing between them is short."""
    for _ in range(3):
        long, _, empty = _work_times(dev)
        if empty < long / 2:
            return
    raise AssertionError(f"no work took {empty} ms, 160 ms of work took {long} ms")


@check("event/elapsed:adds_up", "EVENT-020", needs=_TIMING)
def elapsed_times_add_up(dev: Device) -> None:
    """The times between records that follow each other add up to the whole time."""
    events = _timed(dev, 160, 30, 0)
    whole = events[0].elapsed_time(events[-1])
    parts = [start.elapsed_time(end) for start, end in pairwise(events)]
    assert abs(whole - sum(parts)) <= 0.1 + 0.01 * whole, f"{parts} do not add up to {whole}"


@check("event/elapsed:repeatable", "EVENT-020", needs=_TIMING)
def elapsed_time_does_not_change(dev: Device) -> None:
    """elapsed_time of two events is the same each time it is asked for."""
    a, b, c = _timed(dev, 30, 0)
    first = a.elapsed_time(b)
    b.elapsed_time(c)
    assert a.elapsed_time(b) == first, "asking twice gives two answers"


@check("event/elapsed_work", "EVENT-020", needs=_TIMING)
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


def _measured(dev: Device, ms: float, streams: tuple[torch.Stream, torch.Stream]) -> float:
    """Milliseconds between two records around `ms` of work, which the host's clock confirms.

    The first record is on the first stream; the work and the second one are on the second stream.
    """
    start, end = dev.event(timing=True), dev.event(timing=True)
    first, then = streams
    dev.synchronize()
    begun = time.perf_counter()
    start.record(first)
    with then:
        then.wait_event(start)
        dev.delay(ms)
        end.record(then)
    start.synchronize()
    end.synchronize()
    waited = (time.perf_counter() - begun) * 1e3
    elapsed = start.elapsed_time(end)
    # The host began before the first record and ended after the second. 5 % for clocks that differ.
    assert ms * 0.95 <= elapsed <= waited * 1.05 + 1, (
        f"{elapsed} ms elapsed around {ms} ms of work, for which the host waited {waited:.1f} ms"
    )
    return elapsed


#: The streams on which the records before and after some work are made.
_TIMED_ON: dict[str, Callable[[Device], tuple[torch.Stream, torch.Stream]]] = {
    "one_stream": lambda dev: (dev.stream(0),) * 2,
    "two_streams": lambda dev: (dev.stream(0), dev.stream(0)),
    "default_stream": lambda dev: (dev.default_stream(0),) * 2,
    "last_device": lambda dev: (dev.stream(dev.count - 1),) * 2,
}


@check("event/elapsed_host", "EVENT-020", cases=_TIMED_ON, needs=_TIMING)
def elapsed_time_agrees_with_the_hosts_clock(dev: Device, case: str) -> None:
    """elapsed_time lies between the time of the work and the time that the host waits."""
    _measured(dev, 40, _TIMED_ON[case](dev))


@check("event/elapsed_devices", "EVENT-024", needs=(*_TIMING, "multi_device"))
def elapsed_time_between_devices_is_refused_or_right(dev: Device) -> None:
    """elapsed_time of events of two devices raises, or agrees with the host's clock."""
    try:
        _measured(dev, 40, (dev.stream(0), dev.stream(1)))
    except (RuntimeError, ValueError):
        dev.synchronize()


@check("event/elapsed_order", "EVENT-025", needs=_TIMING)
def elapsed_time_against_the_order_is_not_positive(dev: Device) -> None:
    """elapsed_time from the later to the earlier event is the negative time, or raises."""
    start, end = _timed(dev, 30)
    try:
        backwards = end.elapsed_time(start)
    except (RuntimeError, ValueError):
        return
    assert backwards == -start.elapsed_time(end)


@check("event/elapsed_fractions", "EVENT-026", needs=_TIMING)
def elapsed_time_has_fractions(dev: Device) -> None:
    """elapsed_time is not rounded to whole milliseconds."""
    events = _timed(dev, *(1.3,) * 10)
    times = [start.elapsed_time(end) for start, end in pairwise(events)]
    assert any(ms != round(ms) for ms in times), times


def _recorded(dev: Device, event: torch.Event) -> torch.Event:
    event.record(dev.current_stream())
    return event


def _event(dev: Device) -> torch.Event:
    return dev.event(timing=True)


def _module_event(dev: Device) -> torch.Event:
    """The device module may have a class of its own."""
    event: torch.Event = dev.module.Event(enable_timing=True)
    return event


#: name -> the start and the end that are asked for the time between them.
_MISUSE: dict[str, Callable[[Device], tuple[torch.Event, torch.Event]]] = {
    "start_without_timing": lambda dev: (_recorded(dev, dev.event()), _recorded(dev, _event(dev))),
    "end_without_timing": lambda dev: (_recorded(dev, _event(dev)), _recorded(dev, dev.event())),
    "blocking_without_timing": lambda dev: (
        _recorded(dev, torch.Event(dev.type, enable_timing=False, blocking=True)),
        _recorded(dev, torch.Event(dev.type, enable_timing=False, blocking=True)),
    ),
    "start_unrecorded": lambda dev: (_event(dev), _recorded(dev, _event(dev))),
    "end_unrecorded": lambda dev: (_recorded(dev, _event(dev)), _event(dev)),
    "module_without_timing": lambda dev: (
        _recorded(dev, dev.module.Event()),
        _recorded(dev, dev.module.Event()),
    ),
    "module_end_unrecorded": lambda dev: (_recorded(dev, _module_event(dev)), _module_event(dev)),
}


@check("event/elapsed_misuse", "EVENT-021", cases=_MISUSE, needs=("events", "event_timing"))
def elapsed_time_refuses_what_it_cannot_measure(dev: Device, case: str) -> None:
    """Events without timing, or never recorded, raise instead of giving a number."""
    start, end = _MISUSE[case](dev)
    dev.synchronize()
    error = raised(lambda: start.elapsed_time(end))
    assert isinstance(error, (RuntimeError, ValueError)), repr(error)


@check("event/elapsed_pending", "EVENT-022", needs=_TIMING)
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


def _refuses_to_be_recorded(dev: Device, event: torch.Event, other: torch.Stream) -> None:
    """An event of device 0 is not recorded on `other`, and can be recorded on device 0 after."""
    error = raised(lambda: event.record(other))
    assert isinstance(error, (RuntimeError, ValueError)), repr(error)
    event.record(dev.current_stream(0))
    event.synchronize()
    assert event.query()


@check("event/record_other_device:cpu_stream", "EVENT-023", needs=("events", "streams"))
def an_event_keeps_to_its_device_type(dev: Device) -> None:
    """Recording an event on a stream of another device type raises."""
    event = _recorded(dev, dev.event())
    _refuses_to_be_recorded(dev, event, torch.Stream(device="cpu"))


@check("event/record_other_device:second_device", "EVENT-023", needs=("events", "streams"))
def an_event_keeps_to_its_device(dev: Device) -> None:
    """Recording an event of one device on a stream of another device raises."""
    event = _recorded(dev, dev.event())
    dev.require("multi_device")
    _refuses_to_be_recorded(dev, event, dev.stream(1))


# ---- lifetime --------------------------------------------------------------------------------


#: What one event is used for, with a stream to record it on and one that can wait.
_USES: dict[str, Callable[[Device, torch.Stream, torch.Stream], object]] = {
    "created": lambda dev, stream, then: dev.event(),
    "recorded": lambda dev, stream, then: dev.event().record(stream),
    "timed": lambda dev, stream, then: dev.event(timing=True).record(stream),
    "waited_for": lambda dev, stream, then: then.wait_event(stream.record_event(dev.event())),
}


def _use_events(dev: Device, case: str, count: int) -> None:
    """Make, use and drop so many events."""
    stream, then = dev.stream(), dev.stream()
    for _ in range(count):
        _USES[case](dev, stream, then)
    dev.synchronize()


@check("event/leak", "EVENT-030", cases=_USES, needs=("events", "streams"))
def thousands_of_events_leak_nothing(dev: Device, case: str) -> None:
    """Creating and dropping thousands of events holds threads and file descriptors flat."""
    _use_events(dev, case, 100)
    before = footprint()
    _use_events(dev, case, 3000)
    after = footprint()
    assert after.threads <= before.threads + 2, f"threads: {before.threads} -> {after.threads}"
    assert after.descriptors <= before.descriptors + 2, (
        f"file descriptors: {before.descriptors} -> {after.descriptors}"
    )


@check("event/leak_memory", "EVENT-030", cases=("recorded", "timed"), needs=("events", "streams"))
def thousands_of_events_leak_no_memory(dev: Device, case: str) -> None:
    """What recorded events take of the host's memory is returned when they are dropped."""
    count, growths = 4000, []
    for _ in range(5):
        before = heap_bytes()
        _use_events(dev, case, count)
        growths.append(heap_bytes() - before)
    # The first rounds fill pools and arenas; a leak goes on in every round.
    assert min(growths[2:]) < 64 * count, f"{count} events keep {min(growths[2:])} bytes"


@check("event/many_live", "EVENT-031", needs=_DELAYED)
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
