# SPDX-License-Identifier: BSD-3-Clause
"""Events refuse times that they cannot measure, and streams of other devices."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, raised, while_held
from torch_conformance.checks.event._events import TIMING


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


@check("event/elapsed_pending", "EVENT-022", needs=TIMING)
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
