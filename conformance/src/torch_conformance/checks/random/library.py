# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributions samples on the device, with gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check


def _same(first: Tensor, second: Tensor) -> bool:
    return torch.equal(first.cpu(), second.cpu())


_TORCH_DISTRIBUTIONS: dict[str, tuple[Callable[[Tensor], Any], float, float]] = {
    "normal": (lambda t: torch.distributions.Normal(t * 2, t * 3), 2.0, 3.0),
    "gamma": (lambda t: torch.distributions.Gamma(t * 3, t * 2), 1.5, math.sqrt(0.75)),
    "beta": (lambda t: torch.distributions.Beta(t * 2, t * 3), 0.4, 0.2),
    "poisson": (lambda t: torch.distributions.Poisson(t * 4), 4.0, 2.0),
    "student": (lambda t: torch.distributions.StudentT(t * 8), 0.0, math.sqrt(8 / 6)),
    "laplace": (lambda t: torch.distributions.Laplace(t, t), 1.0, math.sqrt(2)),
    "von_mises": (lambda t: torch.distributions.VonMises(t * 0, t * 4), 0.0, 0.54),
}


@check(
    "random/library",
    "RAND-014",
    needs=("generator",),
    cases=tuple(_TORCH_DISTRIBUTIONS),
    case_needs={"von_mises": "float64"},
)
def torch_distributions_sample_on_the_device(dev: Device, case: str) -> None:
    """Samples of torch.distributions are on the device, repeat with the seed, have the mean."""
    make, mean, deviation = _TORCH_DISTRIBUTIONS[case]
    distribution = make(torch.ones((), device=dev.device()))
    drawn = []
    for _ in range(2):
        torch.manual_seed(74)
        drawn.append(distribution.sample((4000,)))
    assert drawn[0].device.type == dev.type
    assert _same(*drawn)
    host = drawn[0].cpu().double()
    assert abs(float(host.mean()) - mean) < 6 * deviation / math.sqrt(4000)
    assert 0.8 * deviation < float(host.std()) < 1.2 * deviation


@check("random/reparametrised", "RAND-014", needs=("generator",), cases=("normal", "gamma", "beta"))
def samples_carry_gradients(dev: Device, case: str) -> None:
    """rsample differentiates with respect to its parameters, to the derivative of the mean."""
    t = torch.full((4000,), 3.0, device=dev.device(), requires_grad=True)
    one = torch.ones((), device=dev.device())
    torch.manual_seed(75)
    distribution: Any = {
        "normal": lambda: torch.distributions.Normal(t, one),
        "gamma": lambda: torch.distributions.Gamma(t, one),
        "beta": lambda: torch.distributions.Beta(t, one),
    }[case]()
    distribution.rsample().sum().backward()
    assert t.grad is not None
    expected = {"normal": 1.0, "gamma": 1.0, "beta": 1 / 16}[case]
    assert abs(float(t.grad.cpu().mean()) - expected) < 0.1 * expected
