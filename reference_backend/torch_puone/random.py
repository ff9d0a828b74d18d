# SPDX-License-Identifier: BSD-3-Clause
"""Random number generators of the devices. Seeding before the first use of a device is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import torch
from torch.types import Device

from . import _C
from ._lazy import _lazy_call, _lazy_init
from ._registration import NAME
from ._utils import _get_device_index


class _DefaultGenerators(Sequence[torch.Generator]):
    """The default generator of each device; looks at the devices only when it is looked at."""

    def __len__(self) -> int:
        return _C.device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[torch.Generator, ...]: ...
    def __getitem__(self, index: int | slice) -> torch.Generator | tuple[torch.Generator, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(len(self))[index])
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"there are {len(self)} {NAME} devices, and {index} is not one of them"
            )
        _lazy_init()
        return _C.default_generator(index % len(self))


default_generators = _DefaultGenerators()


def _get_generator(device: Device = None) -> torch.Generator:
    """The default generator of the device."""
    _lazy_init()
    return default_generators[_get_device_index(device, optional=True)]


def get_rng_state(device: Device = NAME) -> torch.Tensor:
    """State of the device's generator, as a CPU byte tensor."""
    return _get_generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """State of every device's generator."""
    return [get_rng_state(index) for index in range(len(default_generators))]


def set_rng_state(new_state: torch.Tensor, device: Device = NAME) -> None:
    """Set the state of the device's generator to one that `get_rng_state()` gave."""
    # A copy: the caller may change the tensor before a queued call reads it.
    state = new_state.detach().clone(memory_format=torch.contiguous_format)

    def set_state() -> None:
        _get_generator(device).set_state(state)

    _lazy_call(set_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the state of every device's generator."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; without a device, do nothing."""
    value = int(seed)
    _lazy_call(lambda: _seed_with(_get_generator(), value), seed=True)


def manual_seed_all(seed: int) -> None:
    """Seed every device's generator; without a device, do nothing."""
    value = int(seed)

    def seed_every_device() -> None:
        for generator in default_generators:
            _seed_with(generator, value)

    _lazy_call(seed_every_device, seed_all=True)


def seed() -> None:
    """Seed the current device's generator with a random number."""
    _lazy_call(lambda: _seed_at_random(_get_generator()), seed=True)


def seed_all() -> None:
    """Seed every device's generator with the same random number."""

    def seed_every_device() -> None:
        if len(default_generators) > 0:
            value = default_generators[0].seed()
            for generator in default_generators:
                _seed_with(generator, value)

    _lazy_call(seed_every_device, seed_all=True)


def initial_seed() -> int:
    """Seed of the current device's generator. Initialises the device."""
    return _get_generator().initial_seed()


def _seed_with(generator: torch.Generator, value: int) -> None:
    generator.manual_seed(value)


def _seed_at_random(generator: torch.Generator) -> None:
    generator.seed()
