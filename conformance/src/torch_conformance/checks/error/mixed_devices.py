# SPDX-License-Identifier: BSD-3-Clause
"""Operands on different devices are refused, but for numbers and CPU scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks.error._failures import untyped

_MIXED: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "add": lambda x, other: x + other,
    "add_reversed": lambda x, other: other + x,
    "add_in_place": lambda x, other: x.add_(other),
    "compare": lambda x, other: x == other,
    "matmul": lambda x, other: x @ other,
    "cat": lambda x, other: torch.cat([x, other]),
    "where": lambda x, other: torch.where(x > 0, x, other),
    "linear": lambda x, other: torch.nn.functional.linear(x, other),
    "out": lambda x, other: torch.mul(x, x, out=other),
    "index_select": lambda x, other: x.index_select(0, other[0].long()),
    "gather": lambda x, other: x.gather(1, other.long()),
    "embedding": lambda x, other: torch.nn.functional.embedding(other.long(), x),
    "set_source": lambda x, other: untyped(x.set_)(other),
}


@check("error/mixed", "ERR-003", cases=_MIXED, needs=("accelerator",))
def cpu_and_device_operands_are_refused(dev: Device, case: str) -> None:
    """An operator given operands on the CPU and on the device raises and changes neither."""
    x, other = torch.ones(3, 3, device=dev.device()), torch.full((3, 3), 2.0)
    error = raised(lambda: _MIXED[case](x, other))
    assert isinstance(error, (RuntimeError, TypeError)), f"{type(error).__name__}: {error}"
    dev.assert_equal(x, torch.ones(3, 3))
    assert torch.equal(other, torch.full((3, 3), 2.0))


@check(
    "error/mixed_devices",
    "ERR-003",
    cases=("add", "add_in_place", "matmul", "cat", "out"),
    needs=("multi_device",),
)
def operands_of_two_devices_are_refused(dev: Device, case: str) -> None:
    """An operator given operands on two devices raises and changes neither."""
    x = torch.ones(3, 3, device=dev.device(0))
    other = torch.full((3, 3), 2.0, device=dev.device(1))
    error = raised(lambda: _MIXED[case](x, other))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    dev.assert_equal(x, torch.ones(3, 3))
    dev.assert_equal(other, torch.full((3, 3), 2.0))


@check("error/mixed_message", "ERR-004", needs=("accelerator",))
def mixed_device_error_names_the_devices(dev: Device) -> None:
    """The error for mixed operands names the devices involved."""
    error = raised(lambda: torch.ones(3, device=dev.device()) + torch.ones(3))
    assert dev.type in str(error) and "cpu" in str(error), str(error)


_SCALARS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "python_number": lambda x: x + 2,
    "cpu_scalar_tensor": lambda x: x + torch.tensor(2.0),
    "cpu_scalar_first": lambda x: torch.tensor(2.0) + x,
    "cpu_scalar_in_place": lambda x: x.add_(torch.tensor(2.0)),
}


@check("error/cpu_scalar", "ERR-005", cases=_SCALARS)
def cpu_scalars_mix_with_device_tensors(dev: Device, case: str) -> None:
    """A number, or a CPU tensor without dimensions, is accepted beside a device tensor."""
    result = _SCALARS[case](torch.ones(3, device=dev.device()))
    assert result.device.type == dev.type
    dev.assert_equal(result, torch.full((3,), 3.0))
