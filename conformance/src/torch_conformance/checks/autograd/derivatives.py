# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of first, second and third order agree with the CPU and with finite differences."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, agree, check, leaf, noise
from torch_conformance.checks._functions import FUNCTIONS


@check("autograd/second", "GRAD-001", cases=FUNCTIONS)
def second_derivatives_agree(dev: Device, case: str) -> None:
    """The gradient of a function's squared gradient agrees with the CPU's."""

    def program(device: torch.device) -> list[Tensor]:
        x = leaf(device, 2, 4)
        out = FUNCTIONS[case](x)
        (first,) = torch.autograd.grad((out * out.detach().cos()).sum(), x, create_graph=True)
        return [first, *torch.autograd.grad(first.square().sum(), x)]

    agree(dev, program, rtol=1e-3, atol=1e-4)


@check("autograd/third", "GRAD-001", cases=("matmul", "softmax", "sigmoid", "linear", "layer_norm"))
def third_derivatives_agree(dev: Device, case: str) -> None:
    """Differentiating three times agrees with the CPU."""

    def program(device: torch.device) -> list[Tensor]:
        x = leaf(device, 2, 4)
        result = FUNCTIONS[case](x).sin().sum()
        for _ in range(3):
            (gradient,) = torch.autograd.grad(result, x, create_graph=True)
            result = gradient.square().sum()
        return [gradient]

    agree(dev, program, rtol=1e-3, atol=1e-3)


@check("autograd/gradcheck", "GRAD-002", needs=("float64",), cases=FUNCTIONS)
def gradients_agree_with_finite_differences(dev: Device, case: str) -> None:
    """gradcheck and, along a random direction, gradgradcheck pass in float64."""
    x = noise((2, 4), torch.float64).to(dev.device()).requires_grad_()
    assert torch.autograd.gradcheck(FUNCTIONS[case], (x,), fast_mode=True)
    assert torch.autograd.gradgradcheck(FUNCTIONS[case], (x,), fast_mode=True)
