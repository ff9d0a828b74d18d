# SPDX-License-Identifier: BSD-3-Clause
"""What chapters share: default generators, their states, equal numbers."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device


def default_generator(dev: Device, index: int = 0) -> torch.Generator:
    """The default generator of one device, for checks about that object.

    Few modules have it. `rng_state` looks at it by a function that PyTorch itself calls.
    """
    if dev.module is None:
        return torch.default_generator
    generator: torch.Generator = dev.module.default_generators[index]
    return generator


def rng_state(dev: Device, index: int = 0) -> torch.Tensor:
    """The state of one device's default generator, by the device module's own function."""
    state: torch.Tensor = (
        torch.get_rng_state() if dev.module is None else dev.module.get_rng_state(index)
    )
    return state


def set_rng_state(dev: Device, state: torch.Tensor, index: int = 0) -> None:
    """Set the state of one device's default generator."""
    if dev.module is None:
        torch.set_rng_state(state)
    else:
        dev.module.set_rng_state(state, index)


def same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers, wherever they are."""
    return torch.equal(first.cpu(), second.cpu())
