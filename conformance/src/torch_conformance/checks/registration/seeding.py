# SPDX-License-Identifier: BSD-3-Clause
"""The functions of the module `torch.<type>` for seeds and random states."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.registration._members import Member, none, verify_member


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.uint8 and not value.is_cuda


_SEEDING: dict[str, Member] = {
    "manual_seed_all": (lambda m: m.manual_seed_all(7), none),
    "get_rng_state": (lambda m: m.get_rng_state(), _is_bytes),
    "get_rng_state_of": (lambda m: m.get_rng_state(0), _is_bytes),
    "set_rng_state": (lambda m: m.set_rng_state(m.get_rng_state()), none),
    "in_bad_fork": (lambda m: m._is_in_bad_fork(), lambda v: v is False),
}
_SEEDING_MORE: dict[str, Member] = {
    "manual_seed": (lambda m: m.manual_seed(7), none),
    "seed": (lambda m: m.seed(), none),
    "seed_all": (lambda m: m.seed_all(), none),
    "initial_seed": (lambda m: m.initial_seed(), _is_seed),
    "get_rng_state_all": (
        lambda m: m.get_rng_state_all(),
        lambda v: len(v) >= 1 and all(_is_bytes(state) for state in v),
    ),
    "set_rng_state_all": (lambda m: m.set_rng_state_all(m.get_rng_state_all()), none),
    "default_generators": (
        lambda m: m.default_generators,
        lambda v: len(v) >= 1 and all(isinstance(g, torch.Generator) for g in v),
    ),
}


def _random_state_kept(dev: Device) -> AbstractContextManager[None]:
    """Puts the random state back, where the module can; each function of it has a case."""
    if all(hasattr(dev.bare_module, name) for name in ("get_rng_state", "set_rng_state")):
        return torch.random.fork_rng(devices=range(dev.count), device_type=dev.type)
    return nullcontext()


@check("registration/seeding", "REG-015", cases=tuple(_SEEDING), needs=("accelerator", "generator"))
def module_offers_what_torch_seeds_through(dev: Device, case: str) -> None:
    """torch.<type> offers the functions through which torch.manual_seed and fork_rng reach it."""
    with _random_state_kept(dev):
        verify_member(dev, _SEEDING, case)


@check(
    "registration/seeding_more",
    "REG-016",
    cases=tuple(_SEEDING_MORE),
    needs=("accelerator", "generator"),
)
def module_offers_the_rest_of_seeding(dev: Device, case: str) -> None:
    """torch.<type> offers the further random functions users know from other devices."""
    with _random_state_kept(dev):
        verify_member(dev, _SEEDING_MORE, case)
