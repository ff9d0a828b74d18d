# SPDX-License-Identifier: BSD-3-Clause
"""A device of mycelya-torch that needs no account and no other machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def rent() -> tuple[Any, torch.device]:
    """A machine of the provider `mock`, which computes on the CPU, and its device.

    The device lives as long as its machine.
    """
    from mycelya_torch import RemoteMachine

    machine = RemoteMachine("mock")
    return machine, machine.device("cpu")
