# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: a stream that is late, and ways to wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import LATE_MS, Device


def producer(
    dev: Device, x: torch.Tensor, value: float = 1.0, late_ms: float = LATE_MS
) -> torch.Stream:
    """A stream on which `x` is filled late."""
    stream = dev.stream(x.device.index)
    with stream:
        dev.delay(late_ms)
        x.fill_(value)
    return stream


#: Ways to let work of one stream come before that of another.
ORDERINGS: dict[str, Callable[[torch.Stream, torch.Stream], Any]] = {
    "wait_event": lambda first, then: then.wait_event(first.record_event()),
    "event_wait": lambda first, then: first.record_event().wait(then),
    "wait_stream": lambda first, then: then.wait_stream(first),
    "host_stream": lambda first, then: first.synchronize(),
    "host_device": lambda first, then: torch.accelerator.synchronize(0),
}
