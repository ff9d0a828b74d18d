# SPDX-License-Identifier: BSD-3-Clause
"""Work that fails after it was queued raises at the next wait, and its error is never lost."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, becomes_true, check, raised
from torch_conformance.checks.error._failures import DEFERRED, error_of, fail_late

_SURFACE: dict[str, Callable[[torch.Stream, torch.Event, torch.Tensor], Any]] = {
    "stream": lambda stream, event, x: stream.synchronize(),
    "device": lambda stream, event, x: torch.accelerator.synchronize(x.device.index),
    "module": lambda stream, event, x: torch.get_device_module(x.device).synchronize(x.device),
    "event": lambda stream, event, x: event.synchronize(),
    "item": lambda stream, event, x: _on(stream, x[0].item),
    "copy": lambda stream, event, x: _on(stream, x.cpu),
}


def _on(stream: torch.Stream, read: Callable[[], object]) -> object:
    """What is read on a stream."""
    with stream:
        return read()


def _surfaces_at(dev: Device, case: str, index: int) -> None:
    """The failure of a kernel on device `index` is raised by a wait; device 0 is current."""
    stream, x = dev.stream(index), torch.ones(64, device=dev.device(index))
    try:
        event = fail_late(dev, stream, x)
        error = raised(lambda: _SURFACE[case](stream, event, x))
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    assert not isinstance(error, torch.OutOfMemoryError)


@check("error/deferred", "ERR-020", cases=_SURFACE, needs=DEFERRED)
def an_error_of_queued_work_surfaces(dev: Device, case: str) -> None:
    """A kernel that fails while it runs raises RuntimeError at the next wait that covers it."""
    _surfaces_at(dev, case, 0)


@check("error/deferred_elsewhere", "ERR-020", cases=_SURFACE, needs=(*DEFERRED, "multi_device"))
def an_error_of_queued_work_surfaces_on_every_device(dev: Device, case: str) -> None:
    """A kernel that fails on the last device raises at the next wait for that device."""
    _surfaces_at(dev, case, dev.count - 1)


@check("error/deferred_dropped", "ERR-020", needs=DEFERRED)
def an_error_outlives_its_stream_object(dev: Device) -> None:
    """The error of a stream that was dropped is raised by a wait for its device."""
    x = torch.ones(64, device=dev.device(0))
    try:
        fail_late(dev, dev.stream(0), x)  # both the stream and the event are dropped
        gc.collect()
        error = raised(lambda: torch.accelerator.synchronize(0))
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


@check("error/deferred:cleared", "ERR-020", needs=DEFERRED)
def an_error_that_is_taken_back_does_not_come(dev: Device) -> None:
    """After reset() of the faults no kernel fails that was to fail."""
    x = torch.ones(64, device=dev.device(0))
    try:
        dev.fault.kernel_error_at(2)
    finally:
        dev.fault.reset()
    for value in range(4):
        x.fill_(value)
    dev.assert_equal(x, torch.full((64,), 3.0))


#: Long enough for a failed kernel to have run, and for an allocator to look after its blocks.
_ALLOCATIONS, _PAUSE = 40, 0.005


@check("error/deferred_freed", "ERR-020", needs=(*DEFERRED, "record_stream"))
def an_error_that_the_allocator_meets_is_not_lost(dev: Device) -> None:
    """An error met while freed memory is looked after is raised there, or by the next wait."""
    stream, x = dev.stream(0), torch.ones(64, device=dev.device(0))
    try:
        fail_late(dev, stream, x)
        x.record_stream(stream)
        del x  # may be used again when `stream`, which has failed, is done with it
        error = raised(lambda: _allocate_and_wait(dev, stream))
    finally:
        dev.fault.reset()
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


def _allocate_and_wait(dev: Device, stream: torch.Stream) -> None:
    for _ in range(_ALLOCATIONS):
        torch.empty(64, device=dev.device(0))
        time.sleep(_PAUSE)
    stream.synchronize()


#: How a program asks for the end of work, with the stream and with an event behind the work.
_POLLS: dict[str, Callable[[torch.Stream, torch.Event], bool]] = {
    "stream": lambda stream, event: stream.query(),
    "event": lambda stream, event: event.query(),
}


def _is_not_lost(
    dev: Device, index: int, poll: Callable[[torch.Stream, torch.Event], bool]
) -> None:
    stream, x = dev.stream(index), torch.ones(64, device=dev.device(index))
    try:
        event = fail_late(dev, stream, x)
        errors = error_of(lambda: becomes_true(lambda: poll(stream, event)))
        errors += error_of(stream.synchronize)
    finally:
        dev.fault.reset()
    assert errors, "neither query() nor the wait after it raised the error"


@check("error/deferred_query", "ERR-030", cases=_POLLS, needs=DEFERRED)
def asking_for_the_end_loses_no_error(dev: Device, case: str) -> None:
    """query() of failed work raises its error, or leaves it to the next wait."""
    for index in {0, dev.count - 1}:
        _is_not_lost(dev, index, _POLLS[case])
