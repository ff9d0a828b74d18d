# SPDX-License-Identifier: BSD-3-Clause
"""Events are made with and without timing, and hold nobody before they are recorded."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, while_held
from torch_conformance.checks.event._events import DELAYED

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


@check("event/unrecorded_while_busy", "EVENT-002", cases=_CLASSES, needs=DELAYED)
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
