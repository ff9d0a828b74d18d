# SPDX-License-Identifier: BSD-3-Clause
"""A lost device raises, delays nobody, and works once it is back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check, in_thread, raised


@contextmanager
def _last_device_lost(dev: Device) -> Iterator[torch.Tensor]:
    """A tensor of the last device, which is lost inside."""
    x = torch.ones(64, device=dev.device(dev.count - 1))
    dev.synchronize()
    try:
        dev.fault.device_lost(dev.count - 1)
        yield x
    finally:
        dev.fault.reset()


def _fill(x: torch.Tensor) -> None:
    x.fill_(2)
    torch.accelerator.synchronize(x.device)


def _allocate(x: torch.Tensor) -> None:
    torch.empty(1 << 26, dtype=torch.uint8, device=x.device)  # which a cache may serve
    _fill(x)


_USES: dict[str, Callable[[torch.Tensor], None]] = {"raises": _fill, "allocation": _allocate}


def _lost_device_raises(x: torch.Tensor, use: Callable[[torch.Tensor], None] = _fill) -> None:
    error = raised(lambda: use(x))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    assert not isinstance(error, torch.OutOfMemoryError), "a lost device is not out of memory"


@check("error/device_lost", "ERR-025", cases=_USES, needs=("fault_injection",), isolate=True)
def a_lost_device_raises(dev: Device, case: str) -> None:
    """Work on a lost device raises RuntimeError, without a crash or a hang."""
    with _last_device_lost(dev) as x:
        _lost_device_raises(x, _USES[case])


def _record_and_wait(x: torch.Tensor) -> None:
    torch.accelerator.current_stream(x.device).record_event().synchronize()


#: Other uses of a lost device.
_LOST_CALLS: dict[str, Callable[[torch.Tensor], object]] = {
    "copy_in": lambda x: x.copy_(torch.ones(64)),
    "copy_out": lambda x: x.cpu(),
    "item": lambda x: x[0].item(),
    "copy": lambda x: _fill(x.clone()),
    "synchronize": lambda x: torch.accelerator.synchronize(x.device),
    "stream": lambda x: torch.accelerator.current_stream(x.device).synchronize(),
    "event": _record_and_wait,
}


@check("error/device_lost", "ERR-025", cases=_LOST_CALLS, needs=("fault_injection",), isolate=True)
def every_use_of_a_lost_device_raises(dev: Device, case: str) -> None:
    """Copies from and to a lost device, and waits for it, raise RuntimeError."""
    with _last_device_lost(dev) as x:
        error = raised(lambda: _LOST_CALLS[case](x))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    assert not isinstance(error, torch.OutOfMemoryError), "a lost device is not out of memory"


#: Milliseconds of work that is pending when its device is lost, and by when its wait has ended.
_PENDING_MS, _ENDED_MS = 20_000.0, 10_000.0


def _ends_in_time(work: Callable[[], object]) -> None:
    begun = time.monotonic()
    with suppress(RuntimeError):
        in_thread(work)
    took = (time.monotonic() - begun) * 1e3
    assert took < _ENDED_MS, f"it took {took:.0f} ms to end"


_LOST_PENDING = ("fault_injection", "streams", "events", "delay")


@check("error/device_lost:pending_work", "ERR-025", needs=_LOST_PENDING, isolate=True)
def a_lost_device_is_not_waited_for(dev: Device) -> None:
    """A wait for work that was pending when its device was lost ends before the work would."""
    stream, x = dev.stream(dev.count - 1), torch.ones(64, device=dev.device(dev.count - 1))
    dev.synchronize()
    with stream:
        dev.delay(_PENDING_MS)
        x.fill_(3)
    try:
        dev.fault.device_lost(dev.count - 1)
        _ends_in_time(stream.synchronize)
    finally:
        dev.fault.reset()
    y = torch.full((64,), 4.0, device=x.device)
    dev.assert_equal(y, torch.full((64,), 4.0))


#: The stream that waits for work of a device that is lost: of the same device, or of another one.
_WAITING_FOR_LOST: dict[str, Callable[[Device], torch.Stream]] = {
    "waiting_stream": lambda dev: dev.stream(dev.count - 1),
    "waiting_device": lambda dev: dev.stream(0),
}


@check(
    "error/device_lost",
    "ERR-025",
    cases=_WAITING_FOR_LOST,
    needs=(*_LOST_PENDING, "multi_device"),
    isolate=True,
)
def streams_that_wait_for_a_lost_device_end(dev: Device, case: str) -> None:
    """A stream that waits for work of a device that is lost ends its wait, or raises."""
    first, then = dev.stream(dev.count - 1), _WAITING_FOR_LOST[case](dev)
    y = torch.ones(64, device=then.device)
    dev.synchronize()
    with first:
        dev.delay(_PENDING_MS)
    then.wait_stream(first)
    with then:
        y.fill_(3)
    try:
        dev.fault.device_lost(dev.count - 1)
        _ends_in_time(then.synchronize)
    finally:
        dev.fault.reset()
    dev.assert_equal(torch.ones(3, device=dev.device(0)) + 1, torch.full((3,), 2.0))


@check("error/device_lost:other_device", "ERR-025", needs=("fault_injection",), isolate=True)
def other_devices_work_beside_a_lost_one(dev: Device) -> None:
    """While a device is lost, another one computes."""
    dev.require("multi_device")
    with _last_device_lost(dev) as x:
        _lost_device_raises(x)
        dev.assert_equal(torch.ones(3, device=dev.device(0)) + 1, torch.full((3,), 2.0))


def _freed_while_lost(dev: Device, x: torch.Tensor) -> None:
    del x


def _used_elsewhere(dev: Device, x: torch.Tensor) -> None:
    with dev.stream(x.device.index) as stream:
        dev.delay(LATE_MS)
        x.fill_(5)
        x.record_stream(stream)
    del x


#: What a program does with a tensor of a device just before the device is lost.
_FREED: dict[str, Callable[[Device, torch.Tensor], None]] = {
    "freed": _freed_while_lost,
    "in_use": _used_elsewhere,
}


@check(
    "error/device_lost_memory",
    "ERR-025",
    cases=_FREED,
    needs=("fault_injection", "memory_stats", "record_stream", "streams", "delay"),
    isolate=True,
)
def memory_of_a_lost_device_returns_with_it(dev: Device, case: str) -> None:
    """Memory that is freed around the loss of a device can be used again once it is back."""
    index = dev.count - 1

    def make() -> torch.Tensor:
        return torch.zeros(1 << 22, device=dev.device(index))

    first = make()
    dev.synchronize()
    before = torch.accelerator.memory_allocated(index)
    del first
    with suppress(RuntimeError):  # the allocator may meet the loss
        _FREED[case](dev, make())
        dev.fault.device_lost(index)
        for _ in range(3):
            with suppress(RuntimeError):
                make()
        torch.accelerator.empty_cache()
    dev.fault.reset()
    for _ in range(3):
        with suppress(RuntimeError):  # errors that are reported late
            torch.accelerator.synchronize(index)
            make()
    again = make()
    dev.assert_equal(again[:3] + 1, torch.ones(3))
    allocated = torch.accelerator.memory_allocated(index)
    assert allocated == before, f"{allocated - before} bytes have not returned"


@check("error/device_lost:recovers", "ERR-025", needs=("fault_injection",), isolate=True)
def a_device_that_is_back_computes(dev: Device) -> None:
    """Once the device is no longer lost it computes."""
    with _last_device_lost(dev) as x:
        _lost_device_raises(x)
    y = torch.ones(64, device=x.device)
    y.fill_(3)
    dev.assert_equal(y, torch.full((64,), 3.0))
