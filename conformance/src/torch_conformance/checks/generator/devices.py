# SPDX-License-Identifier: BSD-3-Clause
"""Every device has its own sequence, which the module and torch seed, keep, restore and isolate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._random_state import rng_state, same, set_rng_state


def _states(dev: Device) -> list[torch.Tensor]:
    """The states of the first devices' default generators."""
    return [rng_state(dev, index) for index in range(min(dev.count, 4))]


def _equal(first: list[torch.Tensor], second: list[torch.Tensor]) -> list[bool]:
    return [torch.equal(one, other) for one, other in zip(first, second, strict=True)]


def _draw_on_all(dev: Device) -> None:
    for index in range(min(dev.count, 4)):
        torch.rand(4, device=dev.device(index))


@check("generator/per_device", "GEN-009", needs=("generator", "multi_device"))
def every_device_has_its_own_sequence(dev: Device) -> None:
    """Drawing on one device changes neither the state nor the numbers of another."""
    torch.manual_seed(8)
    before = rng_state(dev, 1)
    expected = torch.rand(8, device=dev.device(1))
    torch.manual_seed(8)
    torch.rand(100, device=dev.device(0))
    assert torch.equal(rng_state(dev, 1), before)
    assert same(torch.rand(8, device=dev.device(1)), expected)


@check("generator/per_device_state", "GEN-009", needs=("generator", "multi_device"))
def the_state_is_set_on_the_device_named(dev: Device) -> None:
    """set_rng_state(state, index) sets that device and no other."""
    torch.manual_seed(8)
    state = rng_state(dev, 1)
    torch.rand(4, device=dev.device(0))
    torch.rand(4, device=dev.device(1))
    other = rng_state(dev, 0)
    set_rng_state(dev, state, 1)
    assert torch.equal(rng_state(dev, 1), state)
    assert torch.equal(rng_state(dev, 0), other)


@check("generator/every_device", "GEN-010", needs=("generator", "accelerator"))
def the_module_seeds_every_device(dev: Device) -> None:
    """<module>.manual_seed_all sets the default generator of every device."""
    assert dev.module is not None
    dev.module.manual_seed_all(31)
    first = _states(dev)
    _draw_on_all(dev)
    dev.module.manual_seed_all(31)
    assert all(_equal(_states(dev), first)), "the same seed gave another state"
    dev.module.manual_seed_all(32)
    assert not any(_equal(_states(dev), first)), "another seed gave the same state"


@check("generator/all_devices", "GEN-010", needs=("generator", "accelerator"))
def the_module_seeds_one_device_or_all(dev: Device) -> None:
    """<module>.manual_seed sets the default generator of the current device alone."""
    assert dev.module is not None
    dev.module.manual_seed_all(31)
    first = _states(dev)
    drawn = torch.rand(4, device=dev.device(0))
    dev.module.manual_seed_all(32)
    second = _states(dev)
    dev.module.manual_seed(31)
    now = _states(dev)
    assert torch.equal(now[0], first[0]), "manual_seed has not set the state"
    assert all(_equal(now[1:], second[1:])), "manual_seed is for one device"
    assert same(torch.rand(4, device=dev.device(0)), drawn)


@check("generator/module_initial_seed", "GEN-010", needs=("generator", "accelerator"))
def the_module_knows_its_seed(dev: Device) -> None:
    """<module>.initial_seed() is the seed that manual_seed has set."""
    assert dev.module is not None
    dev.module.manual_seed(31)
    torch.rand(4, device=dev.device(0))
    assert dev.module.initial_seed() == 31


@check("generator/module_state_all", "GEN-010", needs=("generator", "accelerator"))
def the_states_of_all_devices_can_be_kept(dev: Device) -> None:
    """get_rng_state_all gives one state for each device and set_rng_state_all restores them."""
    assert dev.module is not None
    torch.manual_seed(13)
    indices = range(min(dev.count, 4))
    for i in indices:
        for _ in range(i):  # every device has a position of its own
            torch.rand(4, device=dev.device(i))
    states = dev.module.get_rng_state_all()
    assert len(states) == dev.count
    first = [torch.rand(4, device=dev.device(i)).cpu() for i in indices]
    dev.module.set_rng_state_all(states)
    for i in indices:
        assert same(torch.rand(4, device=dev.device(i)), first[i])


#: name -> (a function of the device module, whether other devices keep their seed).
_SEEDERS: dict[str, tuple[Callable[[Any], None], bool]] = {
    "one": (lambda module: module.seed(), True),
    "all": (lambda module: module.seed_all(), False),
}


@check("generator/module_seed", "GEN-010", needs=("generator", "accelerator"), cases=_SEEDERS)
def the_module_can_seed_at_random(dev: Device, case: str) -> None:
    """<module>.seed() and seed_all() choose a new seed."""
    assert dev.module is not None
    seed, others_keep = _SEEDERS[case]
    dev.module.manual_seed_all(31)
    before = _states(dev)
    seed(dev.module)
    first = _states(dev)
    seed(dev.module)
    second = _states(dev)
    assert not torch.equal(first[0], before[0]), "the seed is not new"
    assert not torch.equal(first[0], second[0]), "the same seed was chosen again"
    kept = _equal(first[1:], before[1:])
    assert kept == [others_keep] * len(kept), f"seeds of the other devices kept: {kept}"


@check("generator/torch_seed", "GEN-001", needs=("generator",))
def torch_manual_seed_seeds_the_device(dev: Device) -> None:
    """torch.manual_seed reaches the default generator of every device of the backend."""
    torch.manual_seed(4321)
    first = _states(dev)
    _draw_on_all(dev)
    torch.manual_seed(4321)
    assert all(_equal(_states(dev), first)), "the same seed gave another state"
    torch.manual_seed(4322)
    assert not any(_equal(_states(dev), first)), "another seed gave the same state"


@check("generator/fork_rng", "GEN-011", needs=("generator",))
def fork_rng_isolates_the_device(dev: Device) -> None:
    """Inside torch.random.fork_rng draws and seeds do not reach the outside."""
    devices = [0] if dev.is_accelerator else []
    torch.manual_seed(17)
    torch.rand(3, device=dev.device())  # a state in mid-sequence
    state = rng_state(dev)
    expected = torch.rand(8, device=dev.device())
    set_rng_state(dev, state)
    with torch.random.fork_rng(devices=devices, device_type=dev.type):
        torch.manual_seed(18)
        for _ in range(5):
            torch.rand(50, device=dev.device())
    assert same(torch.rand(8, device=dev.device()), expected)
