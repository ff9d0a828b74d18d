# SPDX-License-Identifier: BSD-3-Clause
"""Graphs span devices: gradients, hooks, threads and the current device are where they belong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from torch_conformance.authoring.api import LATE_MS, Device, check, in_threads
from torch_conformance.checks.autograd._leaves import N, ones


@contextmanager
def _two_devices(dev: Device) -> Iterator[tuple[Tensor, torch.device]]:
    """A leaf on device 0, and device 1; the block must leave the current device as it is."""
    current = torch.accelerator.current_device_index()
    x = ones(dev, 0)
    dev.synchronize()
    yield x, dev.device(1)
    assert torch.accelerator.current_device_index() == current


#: A tensor of device 0 sent through device 1, and the gradient of its sum.
_ROUTES: dict[str, tuple[Callable[[Tensor, torch.device], Tensor], float]] = {
    "chain": (lambda x, there: (x.to(there) * 2).to(x.device).mul(3).to(there), 6.0),
    "branches": (lambda x, there: (x.to(there) * 2).sum().to(x.device) + (x * 3).sum(), 5.0),
    "current": (lambda x, there: x.to(there) * 2, 2.0),
}


@check("autograd/device", "GRAD-009", needs=("multi_device",), cases=_ROUTES)
def graphs_may_span_devices(dev: Device, case: str) -> None:
    """Gradients flow back over copies between devices, and the current device stays."""
    route, expected = _ROUTES[case]
    with _two_devices(dev) as (x, there):
        route(x, there).sum().backward()
        dev.assert_equal(x.grad, torch.full((N,), expected))


@check("autograd/device:leaves", "GRAD-009", needs=("multi_device",))
def gradients_arrive_where_their_leaves_are(dev: Device) -> None:
    """Leaves on two devices get their gradients on their own devices."""
    with _two_devices(dev) as (x, there):
        y = ones(dev, 1)
        (x.to(there) * y * 4).sum().backward()
        assert x.grad is not None and y.grad is not None
        assert (x.grad.device.index, y.grad.device.index) == (0, 1)
        dev.assert_equal([x.grad, y.grad], [torch.full((N,), 4.0)] * 2)


@check("autograd/device:late", "GRAD-009", needs=("multi_device",))
def gradients_wait_for_work_of_the_other_device(dev: Device) -> None:
    """A gradient is in order with work of the other device that is not done yet."""
    dev.require("delay", "streams")
    with _two_devices(dev) as (x, there):
        with torch.accelerator.device_index(1):
            dev.delay(LATE_MS)
            y = x.to(there) * 7
        y.sum().backward()
        assert x.grad is not None
        dev.assert_equal(x.grad + 1, torch.full((N,), 8.0))


@check("autograd/device:hook", "GRAD-009", needs=("multi_device",))
def hooks_run_on_the_device_of_their_tensor(dev: Device) -> None:
    """The current device in a hook is that of the tensor it is for."""
    seen: list[int] = []
    with _two_devices(dev) as (x, there):
        y = x.to(there)
        y.register_hook(lambda g: seen.append(torch.accelerator.current_device_index()))
        y.sum().backward()
        assert seen == [1]


@check("autograd/device:thread", "GRAD-009", needs=("multi_device",))
def threads_differentiate_on_two_devices(dev: Device) -> None:
    """Backward on two devices at the same time, one in each thread, adds up in a leaf."""
    dev.require("threads")
    with _two_devices(dev) as (x, _):

        def backward_on(index: int) -> None:
            (x.to(dev.device(index)) * (index + 1)).sum().backward()

        in_threads([partial(backward_on, index) for index in (0, 1)])
        dev.assert_equal(x.grad, torch.full((N,), 3.0))
