# SPDX-License-Identifier: BSD-3-Clause
"""Operators and optimizers on lists of many tensors change each element of each."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_conformance.authoring.api import STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._lists import LISTS, listed, second


@check("sizes/list", "SIZE-011", cases=LISTS, breadth=STANDARD)
def lists_are_complete(dev: Device, case: str) -> None:
    """An operator on 700 tensors computes each element of each, with the scalar of its own."""
    agree_with_double(dev, LISTS[case], rtol=1e-5)


_STEPPED: dict[str, Callable[[list[Tensor]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, 0.1, amsgrad=True, foreach=True),
    "adamw_fused": lambda p: torch.optim.AdamW(p, 0.1, fused=True),
    "sgd_fused": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True),
}


@check("sizes/optimizer", "SIZE-011", cases=_STEPPED, breadth=STANDARD)
def optimizers_step_each_of_many_parameters(dev: Device, case: str) -> None:
    """Two steps of an optimizer over 700 parameters change each element of each."""

    def program(m: Inputs) -> list[Tensor]:
        parameters = [x.requires_grad_() for x in listed(m)]
        optimizer = _STEPPED[case](parameters)
        for _ in range(2):
            for parameter, grad in zip(parameters, second(m), strict=True):
                parameter.grad = grad + 0.25
            optimizer.step()
        return parameters

    try:
        agree_with_double(dev, program, rtol=1e-4)
    except RuntimeError as error:
        if "fused" not in str(error):
            raise
        dev.unsupported(f"PyTorch has no fused optimizer for the device: {error}")
