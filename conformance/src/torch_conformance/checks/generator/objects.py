# SPDX-License-Identifier: BSD-3-Clause
"""Generators as objects: how they are made and copied, and what they tell of themselves."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._random_state import rng_state, same


@check("generator/object", "GEN-014", needs=("generator",))
def the_generator_object_tells_its_device_and_seed(dev: Device) -> None:
    """device, manual_seed (returns self), initial_seed and seed() behave as documented."""
    generator = torch.Generator(device=dev.device())
    assert isinstance(generator, torch.Generator)
    assert generator.device.type == dev.type
    assert generator.manual_seed(41) is generator
    assert generator.initial_seed() == 41
    chosen = generator.seed()
    assert generator.initial_seed() == chosen
    assert chosen != 41
    torch.rand(3, device=dev.device(), generator=generator)
    assert generator.initial_seed() == chosen, "drawing changed the initial seed"


@check("generator/new_generators", "GEN-014", needs=("generator",))
def new_generators_are_deterministic_and_separate(dev: Device) -> None:
    """Two new generators draw the same numbers without a seed, and do not share state."""
    first, second = (torch.Generator(device=dev.device()) for _ in range(2))
    assert first.initial_seed() == second.initial_seed()
    drawn = torch.rand(8, device=dev.device(), generator=first)
    torch.rand(8, device=dev.device(), generator=first)
    assert same(torch.rand(8, device=dev.device(), generator=second), drawn)


@check("generator/object_forms", "GEN-014", needs=("generator",))
def a_generator_is_made_from_every_form_of_device(dev: Device) -> None:
    """torch.Generator takes a string, a torch.device, with and without an index."""
    for form in (dev.type, dev.device(), str(dev.device())):
        assert torch.Generator(device=form).device.type == dev.type
    if dev.has("multi_device"):
        assert torch.Generator(device=dev.device(1)).device == dev.device(1)


@check("generator/clone_state", "GEN-014", needs=("generator",))
def clone_state_gives_a_generator_of_its_own(dev: Device) -> None:
    """clone_state copies seed and position; the two then go separate ways."""
    generator = torch.Generator(device=dev.device()).manual_seed(6)
    torch.rand(5, device=dev.device(), generator=generator)
    other = generator.clone_state()
    expected = torch.rand(8, device=dev.device(), generator=generator)
    torch.rand(8, device=dev.device(), generator=generator)
    assert other.initial_seed() == 6
    assert same(torch.rand(8, device=dev.device(), generator=other), expected)
    last = torch.Generator(device=dev.device(dev.count - 1) if dev.is_accelerator else "cpu")
    assert last.clone_state().device == last.device


@check("generator/device_object", "GEN-014", needs=("generator", "multi_device"))
def generators_of_two_devices_are_independent(dev: Device) -> None:
    """Drawing by a generator of one device changes no generator of another, whatever is current."""
    last = dev.count - 1
    first, second = (torch.Generator(device=dev.device(i)).manual_seed(9) for i in (0, last))
    assert (first.device.index, second.device.index) == (0, last)
    before = second.get_state()
    torch.rand(9, device=dev.device(0), generator=first)
    assert torch.equal(second.get_state(), before), "it moved with the other device's"
    kept, default = first.get_state(), rng_state(dev, last)
    drawn = torch.rand(9, device=dev.device(last), generator=second)
    assert torch.equal(first.get_state(), kept), "it moved with the other device's"
    assert torch.equal(rng_state(dev, last), default), "the default generator moved"
    second.set_state(before)
    with dev.device(last):
        assert same(torch.rand(9, device=dev.device(last), generator=second), drawn)
    assert second.clone_state().device == second.device


_COPIES: dict[str, Callable[[torch.Generator], torch.Generator]] = {
    "pickle": lambda generator: pickle.loads(pickle.dumps(generator)),
    "deepcopy": copy.deepcopy,
}


@check("generator/deepcopy", "GEN-017", needs=("generator",), cases=_COPIES)
def generators_can_be_copied_as_objects(dev: Device, case: str) -> None:
    """A pickled or deep-copied generator continues as the original would."""
    generator = torch.Generator(device=dev.device()).manual_seed(12)
    torch.rand(3, device=dev.device(), generator=generator)
    other = _COPIES[case](generator)
    expected = torch.rand(8, device=dev.device(), generator=generator)
    assert other.device.type == dev.type
    assert same(torch.rand(8, device=dev.device(), generator=other), expected)
