# SPDX-License-Identifier: BSD-3-Clause
"""Mixed data types: of tensors, of Python numbers, and of tensors without dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, ramp

#: Operators of two tensors, and whether they take complex ones.
_BINARY: dict[str, tuple[Callable[[Any, Any], Tensor], bool]] = {
    "add": (torch.add, True),
    "mul": (torch.mul, True),
    "true_divide": (torch.true_divide, True),
    "maximum": (torch.maximum, False),
    "eq": (torch.eq, True),
    "lt": (torch.lt, False),
    "where": (lambda a, b: torch.where(a.bool(), a, b), True),
    "cat": (lambda a, b: torch.cat([a, b]), True),
}


@check("operator/promotion", "OP-004", cases=_BINARY)
def mixed_dtypes_promote_as_on_the_cpu(dev: Device, case: str) -> None:
    """Two tensors of every pair of data types give the CPU's data type and values."""
    function, takes_complex = _BINARY[case]
    types = [d for d in dev.dtypes("all") if takes_complex or not d.is_complex]
    for first in types:
        for second in types:
            a, b = ramp((6,), first, positive=True), ramp((6,), second, positive=True) + 0
            expected = function(a, b)
            actual = function(a.to(dev.device()), b.to(dev.device()))
            assert actual.dtype == expected.dtype, f"{first} with {second}"
            dev.assert_close(actual, expected)


_NUMBERS: dict[str, Any] = {"int": 3, "float": 2.5, "bool": True, "complex": 1 + 2j}


@check("operator/wrapped_number", "OP-004", cases=_NUMBERS)
def python_numbers_do_not_decide_the_dtype(dev: Device, case: str) -> None:
    """A tensor with a Python number promotes by category only, on either side of the operator."""
    number = _NUMBERS[case]
    if isinstance(number, complex):
        dev.require("complex128")
    for dtype in dev.dtypes("all"):
        x = ramp((5,), dtype, positive=True)
        if dtype is torch.bfloat16 and torch.result_type(x, number) not in dev.dtypes("all"):
            continue  # since torch 2.15 it meets complex numbers in one that even the CPU lacks
        y = x.to(dev.device())
        for function in (torch.add, torch.mul, torch.eq):
            expected = function(x, number)
            assert function(y, number).dtype == expected.dtype, dtype
            dev.assert_close(function(y, number), expected)
        dev.assert_close(number * y, number * x)
        dev.assert_close(number + y, number + x)


def _half(dev: Device) -> tuple[Tensor, Tensor]:
    """The same float16 numbers on the CPU and on the device."""
    dev.require("float16")
    x = ramp((5,), torch.float16)
    return x, x.to(dev.device(), copy=True)


@check("operator/zero_dim:device", "OP-004")
def zero_dim_tensors_mix_with_larger_ones(dev: Device) -> None:
    """A 0-dim float32 tensor on the device does not widen a float16 tensor."""
    x, y = _half(dev)
    scalar = torch.tensor(2.5, dtype=torch.float32)
    dev.assert_close(y * scalar.to(dev.device()), x * scalar)


@check("operator/zero_dim:host", "OP-004")
def zero_dim_host_tensors_mix_with_device_tensors(dev: Device) -> None:
    """0-dim tensors of the host mix with a device tensor on either side and do not widen it."""
    x, y = _half(dev)
    for scalar in (torch.tensor(2.5), torch.tensor(3), torch.tensor(True)):
        for function in (torch.add, torch.mul, torch.true_divide):
            result = function(y, scalar)
            assert result.device == y.device
            dev.assert_close(result, function(x, scalar))
    dev.assert_close(torch.tensor(2.5) - y, torch.tensor(2.5) - x)


@check("operator/zero_dim:both", "OP-004")
def zero_dim_tensors_of_device_and_host_mix(dev: Device) -> None:
    """The sum of a 0-dim device tensor and a 0-dim host tensor is on the device."""
    result = torch.tensor(1.5, device=dev.device()) + torch.tensor(2)
    assert result.device.type == dev.type
    dev.assert_equal(result, torch.tensor(3.5))


@check("operator/zero_dim:wider", "OP-004")
def zero_dim_tensors_of_wider_dtype_do_not_widen(dev: Device) -> None:
    """A 0-dim int64 tensor on the device widens neither a float16 nor a 0-dim float32 tensor."""
    _, y = _half(dev)
    scalar = torch.tensor(2, dtype=torch.int64, device=dev.device())
    assert (y + scalar).dtype == torch.float16
    assert (scalar + torch.tensor(1.5, device=dev.device())).dtype == torch.float32


@check("operator/zero_dim:host_in_place", "OP-004")
def zero_dim_host_tensors_change_device_tensors_in_place(dev: Device) -> None:
    """In-place operators take 0-dim tensors of the host."""
    x, y = _half(dev)
    y.add_(torch.tensor(1.0)).mul_(torch.tensor(2))
    dev.assert_close(y, (x + 1) * 2)
