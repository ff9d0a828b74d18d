# SPDX-License-Identifier: BSD-3-Clause
"""What chapters share: vectors that queued work writes to, and what they are compared with."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device

#: Elements of a vector.
N = 4096


def zeros(dev: Device, index: int = 0) -> torch.Tensor:
    """A vector of zeros on a device."""
    return torch.zeros(N, device=dev.device(index))


def full(value: float) -> torch.Tensor:
    """A vector of one value on the CPU, to compare with."""
    return torch.full((N,), float(value))
