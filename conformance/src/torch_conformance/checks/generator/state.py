# SPDX-License-Identifier: BSD-3-Clause
"""Draws on the device alone change the state, and a state that is restored replays the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks._random_operators import ALL, DRAW_NEEDS
from torch_conformance.checks._random_state import rng_state, same, set_rng_state


@check("generator/state", "GEN-004", needs=("generator",), cases=ALL, case_needs=DRAW_NEEDS)
def restoring_the_state_replays_the_numbers(dev: Device, case: str) -> None:
    """set_rng_state(get_rng_state()) replays, whatever the CPU generator did in between."""
    torch.manual_seed(77)
    torch.rand(3, device=dev.device())  # a state in mid-sequence
    state = rng_state(dev)
    first = ALL[case](dev.device(), None)
    if dev.is_accelerator:
        torch.rand(11)  # restores nothing of the CPU generator: only the device's own state counts
    set_rng_state(dev, state)
    assert same(first, ALL[case](dev.device(), None))


@check(
    "generator/cpu_untouched",
    "GEN-005",
    needs=("generator", "accelerator"),
    cases=ALL,
    case_needs=DRAW_NEEDS,
)
def drawing_on_the_device_leaves_the_cpu_generator(dev: Device, case: str) -> None:
    """A random operator on the device does not advance the CPU's generator."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    ALL[case](dev.device(), None)
    assert torch.equal(torch.get_rng_state(), before)


@check("generator/cpu_independent", "GEN-005", needs=("generator", "accelerator"))
def drawing_on_the_cpu_leaves_the_device_generator(dev: Device) -> None:
    """Random operators on the CPU do not change what the device draws next."""
    torch.manual_seed(5)
    expected = torch.rand(8, device=dev.device())
    torch.manual_seed(5)
    torch.rand(100)
    assert same(torch.rand(8, device=dev.device()), expected)


@check("generator/state_advances", "GEN-006", needs=("generator",))
def the_state_changes_when_numbers_are_drawn(dev: Device) -> None:
    """A draw changes the state; reading the state, or work that is not random, does not."""
    torch.manual_seed(5)
    before = rng_state(dev)
    torch.ones(4, device=dev.device()).add_(1)
    assert torch.equal(rng_state(dev), before)
    torch.rand(4, device=dev.device())
    assert not torch.equal(rng_state(dev), before)


@check("generator/state_type", "GEN-007", needs=("generator",))
def the_state_is_a_byte_tensor_on_the_cpu(dev: Device) -> None:
    """get_rng_state and Generator.get_state give a one-dimensional uint8 tensor on the CPU."""
    states = [rng_state(dev), torch.Generator(device=dev.device()).get_state()]
    with dev.device():  # a state must not be on the default device
        states += [rng_state(dev), torch.Generator(device=dev.device()).get_state()]
    for state in states:
        assert state.device.type == "cpu"
        assert state.dtype == torch.uint8
        assert state.dim() == 1
        assert state.numel() > 0


@check("generator/state_is_a_copy", "GEN-007", needs=("generator",))
def the_state_is_a_copy(dev: Device) -> None:
    """Writing into a state that was handed out does not change the generator."""
    generator = torch.Generator(device=dev.device()).manual_seed(3)
    state = generator.get_state()
    kept = state.clone()
    torch.rand(5, device=dev.device(), generator=generator)
    generator.get_state()
    assert torch.equal(state, kept), "a state that was handed out changed with the generator"
    generator.set_state(kept)
    state.fill_(0)
    assert torch.equal(generator.get_state(), kept)
    generator.set_state(kept)
    kept.fill_(0)
    assert generator.initial_seed() == 3


#: name -> what is made of a good state, with a place where a state must not be.
_BAD_STATES: dict[str, Callable[[torch.Tensor, torch.device], torch.Tensor]] = {
    "short": lambda good, elsewhere: good[:-1].clone(),
    "long": lambda good, elsewhere: torch.cat([good, good]),
    "empty": lambda good, elsewhere: good[:0].clone(),
    "dtype": lambda good, elsewhere: good.to(torch.float32),
    "device": lambda good, elsewhere: good.to(elsewhere),
}


@check("generator/bad_state", "GEN-008", needs=("generator",), cases=_BAD_STATES)
def a_malformed_state_is_refused(dev: Device, case: str) -> None:
    """A state of the wrong size or data type raises and leaves the generator as it was."""
    generator = torch.Generator(device=dev.device()).manual_seed(3)
    good = generator.get_state()
    elsewhere = dev.device() if dev.is_accelerator else torch.device("meta")
    bad = _BAD_STATES[case](good, elsewhere)
    error = raised(lambda: generator.set_state(bad))
    assert isinstance(error, (RuntimeError, TypeError))
    assert torch.equal(generator.get_state(), good)


@check("generator/state_between", "GEN-004", needs=("generator",))
def a_state_moves_between_generators(dev: Device) -> None:
    """The state of one generator, set in another of the same device type, continues there."""
    first = torch.Generator(device=dev.device()).manual_seed(21)
    torch.rand(5, device=dev.device(), generator=first)
    second = torch.Generator(device=dev.device())
    second.set_state(first.get_state())
    assert second.initial_seed() == 21
    for _ in range(2):
        expected = torch.randn(9, device=dev.device(), generator=first)
        assert same(torch.randn(9, device=dev.device(), generator=second), expected)


#: What is drawn before the state is taken: odd sizes, and numbers that are made in pairs.
_BEFORE: dict[str, Callable[[torch.device, torch.Generator], Any]] = {
    "one": lambda d, g: torch.rand(1, device=d, generator=g),
    "three": lambda d, g: torch.rand(3, device=d, generator=g),
    "normal_one": lambda d, g: torch.randn(1, device=d, generator=g),
    "normal_nineteen": lambda d, g: torch.randn(19, device=d, generator=g),
    "permutation": lambda d, g: torch.randperm(7, device=d, generator=g),
    "many": lambda d, g: torch.rand(65_537, device=d, generator=g),
}

_CONTINUED: dict[str, Callable[[torch.Generator], torch.Generator]] = {
    "set_state": lambda g: torch.Generator(device=g.device).set_state(g.get_state()),
    "clone_state": lambda g: g.clone_state(),
}


@check("generator/state_middle", "GEN-004", needs=("generator",), cases=_BEFORE)
def a_state_in_the_middle_continues(dev: Device, case: str) -> None:
    """A state, or a clone, taken after a draw of any size continues exactly there."""
    generator = torch.Generator(device=dev.device()).manual_seed(31)
    for _ in range(2):
        _BEFORE[case](dev.device(), generator)
        for name, copied in _CONTINUED.items():
            other = copied(generator)
            for draw in (torch.randn, torch.rand, torch.randn):
                expected = draw(5, device=dev.device(), generator=generator)
                actual = draw(5, device=dev.device(), generator=other)
                assert same(actual, expected), f"{name}: other numbers by {draw.__name__}"
