# SPDX-License-Identifier: BSD-3-Clause
"""Generators that share a state draw one sequence, have one seed, and outlive each other."""

from __future__ import annotations

from itertools import permutations

import torch

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks._random_state import same


def _sharing(dev: Device, index: int = 0) -> list[torch.Generator]:
    """Two generators of one device, in the middle of different sequences, that share a state."""
    first, second = (torch.Generator(device=dev.device(index)).manual_seed(k) for k in (6, 7))
    torch.rand(5, device=dev.device(index), generator=first)
    try:
        second.graphsafe_set_state(first.graphsafe_get_state())
    except (NotImplementedError, RuntimeError) as error:
        if isinstance(error, NotImplementedError) or "not supported" in str(error):
            dev.unsupported("generators do not share their states")
        raise
    return [first, second]


@check("generator/shared_state:draws", "GEN-024", needs=("generator",))
def generators_of_one_state_draw_one_sequence(dev: Device) -> None:
    """Two generators that share a state go on where the other one stopped, in turns."""
    pair = _sharing(dev)
    alone = pair[0].clone_state()
    for generator in (*pair, *reversed(pair)):
        drawn = torch.rand(8, device=dev.device(), generator=generator)
        assert same(drawn, torch.rand(8, device=dev.device(), generator=alone))


@check("generator/shared_state:seed", "GEN-024", needs=("generator",))
def generators_of_one_state_have_one_seed(dev: Device) -> None:
    """A seed or a state that one of two generators of one state gets is the other one's, too."""
    for setting, other in permutations(_sharing(dev)):
        setting.manual_seed(41)
        assert other.initial_seed() == 41
        state = setting.get_state()
        drawn = torch.rand(8, device=dev.device(), generator=other)
        setting.set_state(state)
        assert torch.equal(other.get_state(), state)
        assert same(torch.rand(8, device=dev.device(), generator=other), drawn)


@check("generator/shared_state:other_type", "GEN-024", needs=("generator",))
def a_state_of_the_cpu_is_not_shared(dev: Device) -> None:
    """A generator refuses the state of a generator of the CPU, and draws as before."""
    first, second = _sharing(dev)
    alone = first.clone_state()
    error = raised(lambda: second.graphsafe_set_state(torch.Generator()))
    assert isinstance(error, (RuntimeError, TypeError)), f"{type(error).__name__}: {error}"
    for generator in (first, second):
        drawn = torch.rand(8, device=dev.device(), generator=generator)
        assert same(drawn, torch.rand(8, device=dev.device(), generator=alone))


@check("generator/shared_state:clone", "GEN-024", needs=("generator",))
def clones_of_a_shared_state_are_their_own(dev: Device) -> None:
    """A clone of a generator that shares its state does not share it."""
    first, second = _sharing(dev)
    clone = second.clone_state()
    before = clone.get_state()
    torch.rand(8, device=dev.device(), generator=first)
    assert torch.equal(clone.get_state(), before), "the clone moved with the others"
    kept = first.get_state()
    torch.rand(8, device=dev.device(), generator=clone)
    assert torch.equal(second.get_state(), kept), "the others moved with the clone"


@check("generator/shared_state:outlives", "GEN-024", needs=("generator",))
def a_shared_state_outlives_the_generator_it_came_from(dev: Device) -> None:
    """A generator goes on when the one that it shared the state with is gone, or shares another."""
    first, second = _sharing(dev)
    alone = first.clone_state()
    first.graphsafe_set_state(torch.Generator(device=dev.device()).graphsafe_get_state())
    torch.rand(8, device=dev.device(), generator=first)
    del first
    drawn = torch.rand(8, device=dev.device(), generator=second)
    assert same(drawn, torch.rand(8, device=dev.device(), generator=alone))


@check("generator/shared_state:last_device", "GEN-024", needs=("generator", "multi_device"))
def generators_of_the_last_device_share_a_state(dev: Device) -> None:
    """On the last device two generators share a state, which belongs to this device."""
    index = dev.count - 1
    first, second = _sharing(dev, index)
    assert first.graphsafe_get_state().device == first.device == dev.device(index)
    alone = first.clone_state()
    drawn = torch.rand(8, device=dev.device(index), generator=second)
    assert same(drawn, torch.rand(8, device=dev.device(index), generator=alone))
