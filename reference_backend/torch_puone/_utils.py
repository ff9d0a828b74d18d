# SPDX-License-Identifier: BSD-3-Clause
"""Device arguments. torch.load looks for this module by its name, `torch.puone._utils`."""

from __future__ import annotations

import torch
from torch.types import Device

from . import _C
from ._registration import NAME


def _get_device_index(device: Device, optional: bool = False) -> int:
    """The index that `device` stands for; range is checked by whoever uses it.

    An int is taken as it is. "puone" and None stand for the current device if `optional`.
    """
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if device is not None:
        if not isinstance(device, torch.device):
            raise TypeError(
                f"Expected an int, str or torch.device, but got {type(device).__name__}"
            )
        if device.type != NAME:
            raise ValueError(f"Expected a {NAME} device, but got: {device}")
        if device.index is not None:
            return device.index
    if not optional:
        raise ValueError(f"Expected a {NAME} device with an index, or an int, but got: {device}")
    # Without a device the answer does not matter, and torch.load has the better message.
    return _C.current_device() if _C.device_count() > 0 else 0
