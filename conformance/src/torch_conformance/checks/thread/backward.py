# SPDX-License-Identifier: BSD-3-Clause
"""Backward runs in any thread, and leaves the current device as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import (
    Device,
    check,
    in_thread,
    in_threads,
)


def _nested(dev: Device, w: torch.Tensor) -> None:
    gradient = torch.autograd.grad((w * w * w).sum(), w, create_graph=True)[0]
    dev.assert_close(gradient.detach(), torch.full((16,), 27.0))
    in_thread(lambda: (gradient / 3).sum().backward())


#: Ways to compute the gradient of the sum of squares of a tensor.
_BACKWARD: dict[str, Callable[[Device, torch.Tensor], Any]] = {
    "in_thread": lambda dev, w: in_thread(lambda: (w * w).sum().backward()),
    "forward_here": lambda dev, w: in_thread((w * w).sum().backward),
    "shared_graph": lambda dev, w: in_threads([(w * w).sum().div(2).backward for _ in range(2)]),
    "nested": _nested,
}


@check("thread/backward", "THREAD-008", cases=_BACKWARD, needs=("threads",))
def backward_runs_in_any_thread(dev: Device, case: str) -> None:
    """backward() works from any thread and leaves its gradients on the right device."""
    w = _threes(dev)
    _BACKWARD[case](dev, w)
    _verify_gradient(dev, w)


@check("thread/backward:device_kept", "THREAD-008", needs=("threads",))
def backward_keeps_the_current_device(dev: Device) -> None:
    """backward() of work on another device leaves the current device."""
    dev.require("multi_device")
    w = _threes(dev)
    with torch.accelerator.device_index(0):
        (w * w).sum().backward()
        assert torch.accelerator.current_device_index() == 0
    _verify_gradient(dev, w)


def _threes(dev: Device) -> torch.Tensor:
    last = dev.device(dev.count - 1) if dev.has("multi_device") else dev.device()
    return torch.full((16,), 3.0, device=last, requires_grad=True)


def _verify_gradient(dev: Device, w: torch.Tensor) -> None:
    assert w.grad is not None and w.grad.device == w.device
    dev.assert_close(w.grad, torch.full((16,), 6.0))
