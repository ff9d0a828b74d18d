# SPDX-License-Identifier: BSD-3-Clause
"""Streams and the host wait for events of devices that are not current."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check, while_held
from torch_conformance.checks.event._events import DELAYED

_TWO_DEVICES = (*DELAYED, "multi_device")


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
