# SPDX-License-Identifier: BSD-3-Clause
"""Streams wait for events, and do not hold the host."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, while_held
from torch_conformance.checks._vectors import N, zeros
from torch_conformance.checks.event._events import DELAYED, fill_late


def _wait_for_a_finished_event(event: torch.Event, waiter: torch.Stream) -> None:
    event.synchronize()
    waiter.wait_event(event)


_WAITS: dict[str, Callable[[torch.Event, torch.Stream], object]] = {
    "stream_waits": lambda event, waiter: waiter.wait_event(event),
    "current_stream": lambda event, waiter: event.wait(),
    "named_stream": lambda event, waiter: event.wait(waiter),
    "finished_event": _wait_for_a_finished_event,
}


@check("event/wait", "EVENT-008", cases=_WAITS, needs=DELAYED)
def work_after_a_wait_follows_the_event(dev: Device, case: str) -> None:
    """Work queued after a wait runs after the work recorded by the event."""
    x, result = zeros(dev), zeros(dev)
    first, waiter = dev.stream(0), dev.stream(0)
    dev.synchronize()
    event = fill_late(dev, first, x)
    with waiter:
        _WAITS[case](event, waiter)
        result.copy_(x)
    dev.assert_equal(result, torch.ones(N))


@check("event/wait:several_waiters", "EVENT-008", needs=DELAYED)
def several_streams_can_wait_for_an_event(dev: Device) -> None:
    """Work of three streams that wait for one event runs after the work recorded by it."""
    x, results = zeros(dev), [zeros(dev) for _ in range(3)]
    first, waiters = dev.stream(0), [dev.stream(0) for _ in results]
    dev.synchronize()
    event = fill_late(dev, first, x)
    for waiter, result in zip(waiters, results, strict=True):
        with waiter:
            waiter.wait_event(event)
            result.copy_(x)
    for result in results:
        dev.assert_equal(result, torch.ones(N))


@check("event/wait:two_events", "EVENT-008", needs=DELAYED)
def a_stream_can_wait_for_two_events(dev: Device) -> None:
    """Work queued after waits for two events runs after the work recorded by both."""
    x, result = zeros(dev), zeros(dev)
    first, waiter = dev.stream(0), dev.stream(0)
    dev.synchronize()
    events = [fill_late(dev, first, x, value) for value in (1.0, 2.0)]
    with waiter:
        for event in events:
            waiter.wait_event(event)
        result.copy_(x)
    dev.assert_equal(result, torch.full((N,), 2.0))


@check("event/wait_host", "EVENT-009", needs=DELAYED)
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
