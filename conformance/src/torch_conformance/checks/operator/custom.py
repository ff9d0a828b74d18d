# SPDX-License-Identifier: BSD-3-Clause
"""Operators of torch.library with a kernel for the device."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, ramp
from torch_conformance.checks.operator._programs import scoped_library


def _define_twice(library: torch.library.Library, key: str) -> str:
    """Define an operator that doubles, with a kernel for a key or device type; return its name."""
    library.define("twice(Tensor x) -> Tensor")
    name = "conformance_check::twice"
    torch.library.impl(name, key, lambda t: t * 2, lib=library)
    return name


def _twice(dev: Device, x: Tensor) -> Tensor:
    result: Tensor = torch.ops.conformance_check.twice(x)
    assert result.device.type == dev.type
    dev.assert_equal(result, ramp((3, 4)) * 2)
    return result


@check("operator/custom:composite", "OP-023")
def operators_for_all_devices_run(dev: Device) -> None:
    """An operator made with torch.library for all devices runs on the device."""
    with scoped_library() as library:
        _define_twice(library, "default")
        _twice(dev, ramp((3, 4)).to(dev.device()))


@check("operator/custom:device_kernel", "OP-023")
def operators_of_the_device_run(dev: Device) -> None:
    """An operator made with torch.library for the device type runs on the device."""
    with scoped_library() as library:
        _define_twice(library, dev.type)
        _twice(dev, ramp((3, 4)).to(dev.device()))


@check("operator/custom:autograd", "OP-023")
def operators_of_the_device_differentiate(dev: Device) -> None:
    """The gradient registered for an operator of the device type is the one that is computed."""
    x = ramp((3, 4)).to(dev.device()).requires_grad_()
    with scoped_library() as library:
        name = _define_twice(library, dev.type)
        torch.library.register_autograd(name, lambda ctx, g: g * 5, lib=library)
        _twice(dev, x).sum().backward()
    assert x.grad is not None
    dev.assert_equal(x.grad, torch.full((3, 4), 5.0))
