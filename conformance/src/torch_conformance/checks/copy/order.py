# SPDX-License-Identifier: BSD-3-Clause
"""Copies are in order with the work of their stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from torch_conformance.authoring.api import Device, check, ramp


@check("copy/device_source_freed", "COPY-018", needs=("delay",))
def a_device_source_may_be_freed_under_a_pending_copy(dev: Device) -> None:
    """Freeing a device source early must not let later work overwrite it before it is read."""
    expected = ramp((64 * 1024,))
    source = expected.to(dev.device())
    target = torch.empty(64 * 1024)
    if dev.has("pinned_memory"):
        target = target.pin_memory()
    dev.synchronize()
    dev.delay(40)
    target.copy_(source, non_blocking=True)
    del source
    thieves = [torch.full((64 * 1024,), -1.0, device=dev.device()) for _ in range(3)]
    dev.synchronize()
    assert torch.equal(target, expected)
    assert len(thieves) == 3


#: Ways to read five elements into Python, with no synchronisation after the copy.
_READS: dict[str, Callable[[torch.Tensor], list[float]]] = {
    "cpu": lambda x: x.cpu().tolist(),
    "copy": lambda x: torch.zeros(5).copy_(x).tolist(),
    "item": lambda x: [element.item() for element in x],
}


@check("copy/d2h_sees_earlier_work", "COPY-019", needs=("delay",), cases=_READS)
def a_blocking_read_waits_for_earlier_work(dev: Device, case: str) -> None:
    """Reading to the host returns the value written by work queued before on the same stream."""
    x = torch.zeros(5, device=dev.device())
    dev.synchronize()
    dev.delay(40)
    x.fill_(3)
    assert _READS[case](x) == [3.0] * 5


@check("copy/h2d_after_earlier_work", "COPY-019", needs=("delay",))
def a_copy_to_the_device_comes_after_earlier_work(dev: Device) -> None:
    """A copy to the device overwrites what was queued before it, never the other way round."""
    x = torch.zeros(4096, device=dev.device())
    source = ramp((4096,))
    dev.synchronize()
    dev.delay(40)
    x.fill_(-1)
    x.copy_(source)
    dev.assert_equal(x, source)


@contextmanager
def _busy_side_stream(dev: Device) -> Iterator[None]:
    """Work goes to a side stream that is busy, and is done after the block."""
    side = dev.stream()
    dev.synchronize()
    with side:
        dev.delay(40)
        yield
    side.synchronize()


@check("copy/stream_order:h2d", "COPY-020", needs=("streams", "delay"))
def copies_to_the_device_run_on_the_current_stream(dev: Device) -> None:
    """A copy from the host, on a side stream, comes after that stream's work."""
    source, target = ramp((2048,)), torch.zeros(2048, device=dev.device())
    with _busy_side_stream(dev):
        target.fill_(-1)
        target.copy_(source, non_blocking=True)
    dev.assert_equal(target, source)


@check("copy/stream_order:d2d", "COPY-020", needs=("streams", "delay"))
def copies_on_the_device_run_on_the_current_stream(dev: Device) -> None:
    """A copy within the device, on a side stream, comes after that stream's work."""
    source, target = (torch.zeros(2048, device=dev.device()) for _ in range(2))
    with _busy_side_stream(dev):
        source.fill_(5)
        target.copy_(source, non_blocking=True)
    dev.assert_equal(target, torch.full((2048,), 5.0))


@check("copy/stream_order:d2h", "COPY-020", needs=("streams", "delay"))
def copies_to_the_host_run_on_the_current_stream(dev: Device) -> None:
    """cpu(), on a side stream, reads what that stream's work has written."""
    source = torch.zeros(2048, device=dev.device())
    with _busy_side_stream(dev):
        source.fill_(5)
        result = source.cpu()
    dev.assert_equal(result, torch.full((2048,), 5.0))
