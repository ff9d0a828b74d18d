# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: leaves of zeros and of ones."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device

#: The elements of a leaf of ones.
N = 4096


def zeros(dev: Device, count: int) -> Tensor:
    """A leaf of so many zeros."""
    return torch.zeros(count, device=dev.device(), requires_grad=True)


def ones(dev: Device, index: int | None = None) -> Tensor:
    """A leaf of N ones on a device."""
    return torch.ones(N, device=dev.device(index), requires_grad=True)
