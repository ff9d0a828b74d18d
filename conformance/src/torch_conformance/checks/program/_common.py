# SPDX-License-Identifier: BSD-3-Clause
"""What random programs share: their seeds, the sizes of their tensors, and the current device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from torch_conformance.authoring.api import Device

VALUES = 5
STREAMS = 3
#: Elements of each value of a program.
SIZES = (1, 37, 1000, 70_001)
#: Results stay below it, so that nothing overflows.
MASK = 0xFFFF
SEEDS = tuple(str(seed) for seed in range(12))


@contextmanager
def restored(dev: Device) -> Iterator[None]:
    """The first device is current, as before."""
    before = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(0)
    try:
        yield
    finally:
        dev.synchronize()
        torch.accelerator.set_device_index(before)
