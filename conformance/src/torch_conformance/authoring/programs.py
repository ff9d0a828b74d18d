# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run on the CPU and on the device and must return the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.device import Device
from torch_conformance.authoring.tensors import noise

#: A program: it makes its inputs on the device it is given and returns its results.
Program = Callable[[torch.device], Any]


@contextmanager
def deterministic(*, warn_only: bool = False) -> Iterator[None]:
    """Deterministic algorithms on, which also fills uninitialised memory.

    With `warn_only`, operators that have none are called, and warn.
    """
    enabled = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(enabled, warn_only=only_warned)


def tensors(results: Any) -> list[Tensor]:
    """The tensors of a nested result, in order."""
    if isinstance(results, Tensor):
        return [results]
    if isinstance(results, dict):
        results = list(results.values())
    return [t for item in results for t in tensors(item)] if isinstance(results, Sequence) else []


def agree(
    dev: Device, program: Program, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Run a program on the CPU and on the device; everything it returns must agree.

    A tolerance given here is widened to the backend's own, which its descriptor may declare.
    """
    torch.manual_seed(0)
    expected = tensors(program(torch.device("cpu")))
    torch.manual_seed(0)
    actual = tensors(program(dev.device()))
    assert expected, "the program returned no tensor"
    assert len(actual) == len(expected)
    for got, wanted in zip(actual, expected, strict=True):
        assert got.device.type == dev.type, f"a result is on {got.device}"
        own = dev.tolerance(got.dtype)
        dev.assert_close(
            got, wanted.detach(), rtol=max(own[0], rtol or 0.0), atol=max(own[1], atol or 0.0)
        )


def gradients(output: Tensor, *inputs: Tensor) -> list[Tensor]:
    """The output and its gradients with respect to the inputs, for a fixed non-uniform weight."""
    weight = noise(output.shape, seed=9).to(output.device, output.dtype)
    return [output, *torch.autograd.grad(output, inputs, weight)]


def leaf(device: torch.device, *shape: int, seed: int = 0) -> Tensor:
    """A leaf of normal values that requires grad."""
    return noise(shape, seed=seed).to(device, copy=True).requires_grad_()
