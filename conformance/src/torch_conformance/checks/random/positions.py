# SPDX-License-Identifier: BSD-3-Clause
"""Draws advance the state, by what their arguments decide, and not at all if they are empty."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch.nn import functional

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._random_operators import ALL, DRAW_NEEDS
from torch_conformance.checks._random_state import default_generator, rng_state
from torch_conformance.checks.random._draws import LARGE, LARGE_NEEDS


@check("random/advance", "RAND-004", needs=("generator",), cases=tuple(ALL), case_needs=DRAW_NEEDS)
def every_draw_advances_the_state_alike(dev: Device, case: str) -> None:
    """A draw moves the state, by an amount that only its arguments decide."""
    torch.manual_seed(31)
    states = [rng_state(dev)]
    for _ in range(2):
        ALL[case](dev.device(), None)
        states.append(rng_state(dev))
    assert not torch.equal(states[0], states[1])
    assert not torch.equal(states[1], states[2])
    torch.manual_seed(31)
    ALL[case](dev.device(), None)
    assert torch.equal(rng_state(dev), states[1])


@check(
    "random/offset",
    "RAND-004",
    needs=("generator", "generator_offset"),
    cases=("rand", "randn", "randn_float64", "randint", "bernoulli", "exponential", "dropout"),
    case_needs=LARGE_NEEDS,
)
def offsets_grow_by_a_fixed_amount(dev: Device, case: str) -> None:
    """The offset grows by the same amount for the same draw, wherever it starts."""
    generator = default_generator(dev)
    torch.manual_seed(32)
    offsets = [generator.get_offset()]
    for _ in range(3):
        LARGE[case](dev.device())
        offsets.append(generator.get_offset())
    steps = {after - before for before, after in pairwise(offsets)}
    assert len(steps) == 1 and steps.pop() > 0, f"offsets {offsets}"


_EMPTY: dict[str, Callable[[torch.device], Any]] = {
    "rand": lambda d: torch.rand(0, device=d),
    "randn": lambda d: torch.randn(3, 0, device=d),
    "randint": lambda d: torch.randint(0, 9, (0,), device=d),
    "uniform": lambda d: torch.empty(0, device=d).uniform_(),
    "normal": lambda d: torch.empty(0, device=d).normal_(),
    "normal_tensors": lambda d: torch.normal(torch.empty(0, device=d), torch.empty(0, device=d)),
    "exponential": lambda d: torch.empty(0, device=d).exponential_(),
    "bernoulli": lambda d: torch.bernoulli(torch.empty(0, device=d)),
    "bernoulli_inplace": lambda d: torch.empty(0, device=d).bernoulli_(0.5),
    "random": lambda d: torch.empty(0, device=d).random_(0, 9),
    "randperm": lambda d: torch.randperm(0, device=d),
    "dropout": lambda d: functional.dropout(torch.empty(0, 4, device=d), 0.5),
    "rand_like": lambda d: torch.rand_like(torch.empty(0, device=d)),
    "poisson": lambda d: torch.poisson(torch.empty(0, device=d)),
}


@check("random/empty", "RAND-005", needs=("generator",), cases=tuple(_EMPTY))
def drawing_nothing_changes_nothing(dev: Device, case: str) -> None:
    """A draw of no elements does not advance the state."""
    torch.manual_seed(41)
    before = rng_state(dev)
    _EMPTY[case](dev.device())
    assert torch.equal(rng_state(dev), before)
