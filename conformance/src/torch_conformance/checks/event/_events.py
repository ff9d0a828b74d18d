# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: events that are late, and what checks need."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import LATE_MS, Device

#: What observing a busy stream needs.
DELAYED = ("events", "streams", "delay")

TIMING = ("events", "streams", "event_timing", "delay")


def recorded_late(dev: Device, **options: bool) -> tuple[torch.Event, torch.Stream]:
    """An event that marks the end of a delay, and the stream of both."""
    event = dev.event(**options)
    with dev.stream() as stream:
        dev.delay(LATE_MS)
        event.record(stream)
    return event, stream


def fill_late(
    dev: Device, stream: torch.Stream, x: torch.Tensor, value: float = 1.0
) -> torch.Event:
    """Queue a late write to `x` on a stream; return an event behind it."""
    event = dev.event()
    with stream:
        dev.delay(LATE_MS)
        x.fill_(value)
        event.record(stream)
    return event
