# SPDX-License-Identifier: BSD-3-Clause
"""An event that is recorded again means its last record, and can be recorded without limit."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, while_held
from torch_conformance.checks.event._events import DELAYED


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


@check("event/record_again", "EVENT-007", cases=_TIMED, needs=DELAYED)
def recording_again_makes_an_event_pending(dev: Device, case: str) -> None:
    """An event that was done is pending again after another record."""
    if _TIMED[case]:
        dev.require("event_timing")
    _recorded_again(dev, dev.event(timing=_TIMED[case]))
    dev.synchronize()


@check("event/record_again:last_counts", "EVENT-007", needs=DELAYED)
def synchronize_waits_for_the_last_record(dev: Device) -> None:
    """synchronize() of an event that was recorded twice waits for the second record."""
    event = dev.event()
    stream = _recorded_again(dev, event)
    event.synchronize()
    assert stream.query()


@check("event/record_again:earlier_wait_stands", "EVENT-007", needs=DELAYED)
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


@check("event/record_again:hundred_times", "EVENT-007", needs=DELAYED)
def an_event_can_be_recorded_a_hundred_times(dev: Device) -> None:
    """An event that was recorded a hundred times is done after a wait for it."""
    event, stream = dev.event(), dev.stream()
    for _ in range(100):
        event.record(stream)
    event.synchronize()
    assert event.query()


#: More than a counter of 16 bits can hold.
_MANY_RECORDS = 66_000


@check("event/record_again:counter", "EVENT-007", needs=DELAYED)
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
