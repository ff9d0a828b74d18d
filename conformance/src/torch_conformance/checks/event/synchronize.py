# SPDX-License-Identifier: BSD-3-Clause
"""synchronize() waits for the recorded work and its results, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check, in_thread, while_held
from torch_conformance.checks._vectors import N
from torch_conformance.checks.event._events import DELAYED, recorded_late


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


@check("event/synchronize", "EVENT-004", cases=_SYNCHRONIZED, needs=DELAYED)
def synchronize_waits_for_the_event(dev: Device, case: str) -> None:
    """When synchronize() returns, the event and the work that it marks are done."""
    options, wait = _SYNCHRONIZED[case]
    event, stream = recorded_late(dev, **options)
    wait(event)
    assert event.query(), "synchronize() returned while the event was pending"
    # Nothing was queued after the event, so that the stream must be done as well.
    assert stream.query(), "synchronize() returned while the recorded work was pending"


@check("event/synchronize:stream", "EVENT-004", needs=DELAYED)
def synchronize_waits_for_the_work(dev: Device) -> None:
    """When synchronize() returns, the stream is done, also before the event is queried."""
    event, stream = recorded_late(dev)
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


@check("event/synchronize_only_its_work", "EVENT-005", cases=_RECORDED_ON, needs=DELAYED)
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
