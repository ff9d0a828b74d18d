# SPDX-License-Identifier: BSD-3-Clause
"""Errors of backward reach its caller, and the next backward works."""

from __future__ import annotations

from typing import Any

import torch

from torch_conformance.authoring.api import Device, check, in_thread, raised
from torch_conformance.checks.error._failures import Runner, in_this_thread


class _Fails(torch.autograd.Function):
    """A function whose backward raises."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        raise KeyError("from backward")


def _backward_raises(dev: Device, run: Runner = in_this_thread) -> None:
    """Let `run` call a backward that raises: its caller gets the exception itself."""

    def backward() -> None:
        x = torch.ones(3, device=dev.device(), requires_grad=True)
        _Fails.apply(x).sum().backward()

    error = raised(lambda: run(backward))
    assert isinstance(error, KeyError) and "from backward" in str(error), repr(error)


_CALLERS: dict[str, Runner] = {"kind": in_this_thread, "in_thread": in_thread}


@check("error/backward", "ERR-009", cases=_CALLERS)
def errors_of_backward_reach_the_caller(dev: Device, case: str) -> None:
    """An exception raised in backward arrives, as itself, where backward() was called."""
    _backward_raises(dev, _CALLERS[case])


@check("error/backward:repeatedly", "ERR-009")
def errors_of_backward_reach_the_caller_every_time(dev: Device) -> None:
    """An exception raised in backward arrives, as itself, also the second and the third time."""
    for _ in range(3):
        _backward_raises(dev)


@check("error/backward:usable_after", "ERR-009")
def backward_works_after_an_error(dev: Device) -> None:
    """After an exception raised in backward, another backward gives the right gradient."""
    _backward_raises(dev)
    y = torch.ones(3, device=dev.device(), requires_grad=True)
    (y * 2).sum().backward()
    assert y.grad is not None
    dev.assert_equal(y.grad, torch.full((3,), 2.0))
