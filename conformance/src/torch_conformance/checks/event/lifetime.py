# SPDX-License-Identifier: BSD-3-Clause
"""Events may be dropped at any time, leak nothing, and can be pending by the thousand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from torch_conformance.authoring.api import Device, check, heap_bytes, while_held
from torch_conformance.checks._leaks import assert_nothing_left
from torch_conformance.checks._vectors import N, zeros
from torch_conformance.checks.event._events import DELAYED, fill_late


@check("event/destroyed:while_waited_for", "EVENT-011", needs=DELAYED)
def a_dropped_event_still_orders(dev: Device) -> None:
    """Dropping an event that a stream waits for does not lose the wait."""
    x, y = zeros(dev), zeros(dev)
    first, then = dev.stream(0), dev.stream(0)
    dev.synchronize()
    event = fill_late(dev, first, x)
    then.wait_event(event)
    with then:
        y.copy_(x)
    del event
    dev.assert_equal(y, torch.ones(N))


@check("event/destroyed:while_pending", "EVENT-011", needs=DELAYED)
def a_dropped_event_does_not_hold_the_host(dev: Device) -> None:
    """Dropping an event that is pending neither blocks nor disturbs the order of its stream."""
    x, y = zeros(dev), zeros(dev)
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
    assert_nothing_left(partial(_use_events, dev, case), 100, 3000, slack=2)


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


@check("event/many_live", "EVENT-031", needs=DELAYED)
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
