# SPDX-License-Identifier: BSD-3-Clause
"""A late error is raised once; its stream, its device and its memory can be used again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress

import torch

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks.error._failures import DEFERRED, NAMED, error_of, fail_late


def _two_fail(dev: Device, index: int) -> list[torch.Stream]:
    """Two streams of a device on each of which a kernel has failed: fill, and then sin."""
    streams = [dev.stream(index) for _ in range(2)]
    tensors = [torch.ones(64, device=dev.device(index)) for _ in streams]
    dev.synchronize()
    for stream, x, name in zip(streams, tensors, ("fill", "sin"), strict=True):
        dev.fault.kernel_error_at(1)
        with stream:
            NAMED[name](x)
    return streams


@check("error/deferred_two:streams", "ERR-023", needs=DEFERRED)
def each_stream_raises_its_own_error(dev: Device) -> None:
    """Of two streams whose work failed each raises its own error, once."""
    try:
        streams = _two_fail(dev, dev.count - 1)
        messages = [str(raised(stream.synchronize)).lower() for stream in reversed(streams)]
        for stream in streams:
            stream.synchronize()
        dev.synchronize()
    finally:
        dev.fault.reset()
    for name, message in zip(("sin", "fill"), messages, strict=True):
        assert name in message, f"the failed launch, {name}, is not named: {message}"


@check("error/deferred_two:device", "ERR-023", needs=DEFERRED)
def a_device_raises_the_errors_of_its_streams(dev: Device) -> None:
    """Waits for a device raise the errors of two of its streams, and then nothing more."""
    index = dev.count - 1
    try:
        _two_fail(dev, index)
        raised(lambda: torch.accelerator.synchronize(index))
        with suppress(RuntimeError):  # the second one, unless the first wait took both
            torch.accelerator.synchronize(index)
        torch.accelerator.synchronize(index)
    finally:
        dev.fault.reset()


def _late_error_is_raised_once(
    dev: Device, launch: Callable[[torch.Tensor], object] = lambda x: None
) -> tuple[torch.Stream, torch.Tensor]:
    """Queue a kernel that fails and a `launch` behind it: only the first wait raises."""
    stream, x = dev.stream(0), torch.ones(64, device=dev.device(0))
    try:
        fail_late(dev, stream, x)  # the launch itself must not raise
        with stream:
            launch(x)
        error = raised(stream.synchronize)
        assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
        stream.synchronize()
        torch.accelerator.synchronize(0)
    finally:
        dev.fault.reset()
    return stream, x


_LAUNCHES: dict[str, Callable[[torch.Tensor], object]] = {
    "reported_once": lambda x: None,
    "launch_does_not_raise": lambda x: x.fill_(5),
}


@check("error/deferred_once", "ERR-023", cases=_LAUNCHES, needs=DEFERRED)
def a_late_error_is_reported_once(dev: Device, case: str) -> None:
    """A late error is raised by the first wait, and neither by a launch nor by the next waits."""
    _late_error_is_raised_once(dev, _LAUNCHES[case])


@check("error/deferred_once:usable_after", "ERR-029", needs=DEFERRED)
def the_device_goes_on_after_a_late_error(dev: Device) -> None:
    """After a late error the device computes."""
    _late_error_is_raised_once(dev)
    dev.assert_equal(torch.ones(3, device=dev.device(0)) + 1, torch.full((3,), 2.0))


@check("error/deferred_once:stream_usable", "ERR-029", needs=DEFERRED)
def the_stream_goes_on_after_its_late_error(dev: Device) -> None:
    """After a late error the stream that had it runs new work."""
    stream, x = _late_error_is_raised_once(dev)
    with stream:
        x.fill_(6)
    stream.synchronize()
    dev.assert_equal(x, torch.full((64,), 6.0))


#: Whether the memory was made on the stream whose work fails.
_MADE_THERE = {"own": True, "of_another_stream": False}


@check(
    "error/deferred_memory",
    "ERR-029",
    cases=_MADE_THERE,
    needs=(*DEFERRED, "memory_stats", "record_stream"),
)
def memory_of_failed_work_returns(dev: Device, case: str) -> None:
    """Memory that failed work used goes back to the device, once its error was raised."""
    made_there = _MADE_THERE[case]
    stream = dev.stream(0)
    dev.synchronize()
    torch.accelerator.empty_cache()
    before = torch.accelerator.memory_reserved(0)
    with stream if made_there else nullcontext():
        x = torch.ones(1 << 22, device=dev.device(0))
    try:
        fail_late(dev, stream, x)
        if not made_there:
            x.record_stream(stream)
        del x
        raisers = (torch.accelerator.empty_cache, stream.synchronize, torch.accelerator.empty_cache)
        errors = [error for work in raisers for error in error_of(work)]
    finally:
        dev.fault.reset()
    assert errors, "the error was not raised"
    torch.accelerator.empty_cache()
    left = torch.accelerator.memory_reserved(0) - before
    assert left <= 0, f"{left} bytes are still reserved"
