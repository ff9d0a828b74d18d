# SPDX-License-Identifier: BSD-3-Clause
"""record() marks the current stream, or the stream that it is given."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, while_held
from torch_conformance.checks.event._events import DELAYED


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


@check("event/record", "EVENT-006", cases=_RECORDS, needs=DELAYED)
def record_marks_the_right_stream(dev: Device, case: str) -> None:
    """record() marks the current stream, record(s) and s.record_event() mark s."""
    _marks_the_busy_stream(dev, _RECORDS[case])


@check("event/record:by_stream_new", "EVENT-006", needs=DELAYED)
def record_event_makes_an_event(dev: Device) -> None:
    """s.record_event() returns a new event that marks s."""
    with dev.stream(0) as busy:
        seen = while_held(dev, lambda: busy.record_event().query())
    assert seen is False, "the event marks another stream"
    dev.synchronize()


@check("event/record:other_device_current", "EVENT-006", needs=DELAYED)
def record_marks_a_stream_of_a_device_that_is_not_current(dev: Device) -> None:
    """event.record(s) marks s, while another device is current."""
    dev.require("multi_device")

    def record(event: torch.Event, busy: torch.Stream) -> None:
        with torch.accelerator.device_index(1):
            event.record(busy)

    _marks_the_busy_stream(dev, record)


@check("event/record:not_current", "EVENT-006", needs=DELAYED)
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
