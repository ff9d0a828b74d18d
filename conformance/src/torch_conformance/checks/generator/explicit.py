# SPDX-License-Identifier: BSD-3-Clause
"""A generator that is passed decides the numbers, and must be on the device of the tensor."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks._random_operators import DRAW_NEEDS, DRAWS
from torch_conformance.checks._random_state import rng_state, same


@check("generator/explicit", "GEN-012", needs=("generator",), cases=DRAWS, case_needs=DRAW_NEEDS)
def an_explicit_generator_is_used(dev: Device, case: str) -> None:
    """generator= decides the numbers and leaves the default generator alone."""
    generator = torch.Generator(device=dev.device()).manual_seed(3)
    before = rng_state(dev)
    first = DRAWS[case](dev.device(), generator)
    second = DRAWS[case](dev.device(), generator)
    assert torch.equal(rng_state(dev), before), "the default generator was advanced"
    torch.rand(9, device=dev.device())
    generator.manual_seed(3)
    assert same(DRAWS[case](dev.device(), generator), first)
    assert not same(first, second), "two draws in a row are equal"


@check(
    "generator/explicit_equals_default",
    "GEN-012",
    needs=("generator",),
    cases=DRAWS,
    case_needs=DRAW_NEEDS,
)
def explicit_and_default_generators_agree(dev: Device, case: str) -> None:
    """With the same seed an explicit generator draws what the default generator draws."""
    torch.manual_seed(55)
    expected = DRAWS[case](dev.device(), None)
    generator = torch.Generator(device=dev.device()).manual_seed(55)
    assert same(DRAWS[case](dev.device(), generator), expected)


@check(
    "generator/wrong_device",
    "GEN-013",
    needs=("generator", "accelerator"),
    cases=DRAWS,
    case_needs=DRAW_NEEDS,
)
def a_generator_of_another_device_is_refused(dev: Device, case: str) -> None:
    """A CPU generator for a device tensor, and the reverse, raise RuntimeError."""
    cpu, own = torch.Generator(), torch.Generator(device=dev.device())
    assert isinstance(
        raised(lambda: DRAWS[case](dev.device(), cpu), by=dev.synchronize), RuntimeError
    )
    assert isinstance(
        raised(lambda: DRAWS[case](torch.device("cpu"), own), by=dev.synchronize), RuntimeError
    )
