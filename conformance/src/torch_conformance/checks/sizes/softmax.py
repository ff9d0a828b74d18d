# SPDX-License-Identifier: BSD-3-Clause
"""Softmaxes are complete, as their gradients, along each dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import ROWS

_SOFTMAX_SHAPES = (
    ((3, 65_537), 1),
    ((65_537, 3), 0),
    ((ROWS, 5), 1),
    ((129, 1031), 1),
    ((1031, 65), 0),
    ((33, 129, 65), 1),
    ((257, 65), 1),
    ((1, 131_075), 1),
)
_SOFTMAXES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "softmin": lambda x, dim: functional.softmin(x, dim),
    "glu": lambda x, dim: functional.glu(torch.cat([x, x.flip(dim)], dim), dim),
}


@check("sizes/softmax", "SIZE-010", cases=_SOFTMAXES, breadth=STANDARD)
def softmaxes_are_complete(dev: Device, case: str) -> None:
    """A softmax and its gradient are complete for long rows, long columns and many of each."""

    def program(m: Inputs) -> list[Any]:
        return [
            m.gradients(lambda x, dim=dim: _SOFTMAXES[case](x, dim), m.steps(*shape) / 2)
            for shape, dim in _SOFTMAX_SHAPES
        ]

    agree_with_double(dev, program, rtol=1e-4, slack=2e-5)
