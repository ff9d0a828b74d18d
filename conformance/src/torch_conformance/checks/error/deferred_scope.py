# SPDX-License-Identifier: BSD-3-Clause
"""A late error stays with its stream and its device, and does not reach back."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, becomes_true, check, raised
from torch_conformance.checks.error._failures import DEFERRED, fail_late


def _waits_without_error(
    dev: Device,
    other: torch.Stream,
    wait: Callable[[torch.Stream, torch.Event], None],
    index: int = 0,
) -> None:
    """While a late error of a device is pending, `wait` for what it does not concern."""
    stream, x = dev.stream(index), torch.ones(64, device=dev.device(index))
    y = torch.ones(64, device=other.device)
    try:
        failed = fail_late(dev, stream, x)
        with other:
            y.fill_(4)
        wait(other, other.record_event())
        with other:
            assert y[0].item() == 4
        error = raised(failed.synchronize)
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


_UNRELATED_WAITS: dict[str, Callable[[torch.Stream, torch.Event], None]] = {
    "other_stream": lambda stream, event: stream.synchronize(),
    "other_event": lambda stream, event: event.synchronize(),
}


@check("error/deferred_scope", "ERR-022", cases=_UNRELATED_WAITS, needs=DEFERRED)
def a_late_error_stays_with_its_stream(dev: Device, case: str) -> None:
    """Waiting for unrelated work of the device does not raise the error of another stream."""
    _waits_without_error(dev, dev.stream(0), _UNRELATED_WAITS[case])


@check("error/deferred_scope:other_device", "ERR-022", needs=DEFERRED)
def a_late_error_stays_with_its_device(dev: Device) -> None:
    """Waiting for another device does not raise the error of a stream."""
    dev.require("multi_device")
    _waits_without_error(
        dev,
        dev.stream(dev.count - 1),
        lambda stream, event: torch.accelerator.synchronize(stream.device),
    )


@check("error/deferred_scope:first_device", "ERR-022", needs=DEFERRED)
def a_late_error_of_the_last_device_stays_there(dev: Device) -> None:
    """Waiting for the first device does not raise the error of the last one."""
    dev.require("multi_device")
    _waits_without_error(
        dev,
        dev.stream(0),
        lambda stream, event: torch.accelerator.synchronize(stream.device),
        dev.count - 1,
    )


#: What is asked of an event.
_EARLIER: dict[str, Callable[[torch.Event], object]] = {
    "earlier_event": lambda event: event.synchronize(),
    "earlier_event_query": lambda event: becomes_true(event.query),
}


@check("error/deferred_scope", "ERR-022", cases=_EARLIER, needs=DEFERRED)
def a_late_error_does_not_reach_back(dev: Device, case: str) -> None:
    """An event that was recorded before the work that failed is done, without an error."""
    stream, x = dev.stream(0), torch.ones(64, device=dev.device(0))
    earlier = dev.event()
    earlier.record(stream)
    try:
        failed = fail_late(dev, stream, x)
        _EARLIER[case](earlier)
        error = raised(failed.synchronize)
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
