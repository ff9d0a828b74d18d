# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: how work is called, and work that fails late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device

#: Runs some work, in this thread or in another one.
Runner = Callable[[Callable[[], None]], None]

#: What a check needs whose queued work fails.
DEFERRED = ("fault_injection", "deferred_errors", "streams", "events")


def untyped(function: Any) -> Any:
    """The function without its type, to be called as its type forbids."""
    return function


def in_this_thread(work: Callable[[], None]) -> None:
    """Run `work` in this thread."""
    work()


def fail_late(dev: Device, stream: torch.Stream, x: torch.Tensor) -> torch.Event:
    """Queue, on `stream`, a kernel that fails when it runs; return an event behind it."""
    dev.synchronize()
    dev.fault.kernel_error_at(1)
    with stream:
        x.fill_(3)
        return stream.record_event()


def error_of(work: Callable[[], object]) -> list[RuntimeError]:
    """The RuntimeError that `work` raises, if any."""
    try:
        work()
    except RuntimeError as error:
        return [error]
    return []


#: Launches by the name that a message is expected to have.
NAMED: dict[str, Callable[[torch.Tensor], object]] = {
    "fill": lambda x: x.fill_(3),
    "mul": lambda x: x.mul_(x),
    "sin": lambda x: x.sin_(),
}
