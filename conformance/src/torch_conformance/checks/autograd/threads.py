# SPDX-License-Identifier: BSD-3-Clause
"""Threads differentiate at the same time, lose no gradient, and have a grad mode of their own."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, in_thread, in_threads
from torch_conformance.checks.autograd._leaves import zeros


def _accumulated(x: Tensor, factor: int) -> Tensor:
    """The gradient of `x` after five backwards."""
    for _ in range(5):
        (x * factor).sum().backward()
    assert x.grad is not None
    return x.grad


@check("autograd/thread:own", "GRAD-010", needs=("threads",))
def threads_differentiate_graphs_of_their_own(dev: Device) -> None:
    """Threads differentiate, each a graph with a leaf of its own, at the same time."""

    def work(factor: int) -> Tensor:
        return _accumulated(zeros(dev, 64), factor)

    results = in_threads([partial(work, i) for i in range(1, 5)])
    dev.assert_equal(results, [torch.full((64,), 5.0 * i) for i in range(1, 5)])


@check("autograd/thread:shared", "GRAD-016", needs=("threads",))
def threads_add_to_one_gradient(dev: Device) -> None:
    """Threads that differentiate with respect to one leaf, at the same time, lose no gradient."""
    x = zeros(dev, 64)
    in_threads([partial(_accumulated, x, i) for i in range(1, 5)])
    dev.assert_equal(x.grad, torch.full((64,), 50.0))


@check("autograd/thread:grad_mode", "GRAD-010", needs=("threads",))
def grad_mode_belongs_to_its_thread(dev: Device) -> None:
    """A thread that is started under no_grad records."""
    x = zeros(dev, 64)
    with torch.no_grad():
        assert in_thread(lambda: (x * 2).requires_grad)
