# SPDX-License-Identifier: BSD-3-Clause
"""Numbers have the distribution that is named, continuous, discrete or complex."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._statistics import MANY, assert_chi_square
from torch_conformance.checks.random._draws import FLOATING


def _assert_kolmogorov(values: Tensor, cdf: Callable[[Tensor], Tensor], slack: float) -> None:
    """The largest distance of the empirical from the true distribution is one of chance."""
    __tracebackhide__ = True
    count = values.numel()
    expected = cdf(values.sort().values)
    steps = torch.arange(count + 1, dtype=torch.float64) / count
    distance = max(
        float((steps[1:] - expected).abs().max()), float((expected - steps[:-1]).abs().max())
    )
    limit = 2.6 / math.sqrt(count) + slack
    assert distance < limit, f"Kolmogorov-Smirnov distance {distance:.4f}, allowed {limit:.4f}"


_CONTINUOUS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "uniform": (lambda x: x.uniform_(-2, 6), lambda v: (v + 2) / 8),
    "normal": (lambda x: x.normal_(1, 3), lambda v: torch.special.ndtr((v - 1) / 3)),
    "exponential": (lambda x: x.exponential_(0.5), lambda v: -torch.expm1(-0.5 * v)),
    "cauchy": (lambda x: x.cauchy_(1, 2), lambda v: ((v - 1) / 2).atan() / math.pi + 0.5),
    "log_normal": (
        lambda x: x.log_normal_(0.5, 0.8),
        lambda v: torch.special.ndtr((v.log() - 0.5) / 0.8),
    ),
}


@check(
    "random/distribution",
    "RAND-011",
    needs=("generator",),
    cases=tuple(_CONTINUOUS),
    dtypes=FLOATING,
)
def continuous_distributions_are_the_ones_named(dev: Device, case: str, dtype: torch.dtype) -> None:
    """The Kolmogorov-Smirnov distance to the distribution is one of chance."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float16", "bfloat16", "float64"})
    fill, cdf = _CONTINUOUS[case]
    torch.manual_seed(61)
    values = fill(torch.empty(MANY, dtype=dtype, device=dev.device())).cpu().double()
    # Rounding to the type moves a value by up to eps of its size; densities here are below 1.
    _assert_kolmogorov(values, cdf, 1.5 * torch.finfo(dtype).eps)


def _poisson_weights(rate: float, count: int) -> Tensor:
    k = torch.arange(count, dtype=torch.float64)
    return torch.exp(k * math.log(rate) - rate - torch.lgamma(k + 1))


def _binomial_weights(trials: int, chance: float) -> Tensor:
    return torch.tensor(
        [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
    )


#: A draw of small whole numbers, and the weight of each; larger numbers count as the last.
_DISCRETE: dict[str, tuple[Callable[[torch.device], Tensor], Tensor]] = {
    "bernoulli": (
        lambda d: torch.empty(MANY, device=d).bernoulli_(0.3),
        torch.tensor([0.7, 0.3]),
    ),
    "bernoulli_tensor": (
        lambda d: torch.bernoulli(torch.full((MANY,), 0.9, device=d)),
        torch.tensor([0.1, 0.9]),
    ),
    "randint": (lambda d: torch.randint(0, 37, (MANY,), device=d), torch.ones(37)),
    "random_of_truth": (
        lambda d: torch.empty(MANY, dtype=torch.bool, device=d).random_(),
        torch.ones(2),
    ),
    "randint_of_truth": (
        lambda d: torch.randint(0, 2, (MANY,), dtype=torch.bool, device=d),
        torch.ones(2),
    ),
    "geometric": (
        lambda d: torch.empty(MANY, device=d).geometric_(0.3) - 1,
        torch.tensor([0.3 * 0.7**k for k in range(15)] + [0.7**15]),
    ),
    "poisson": (
        lambda d: torch.poisson(torch.full((MANY,), 3.0, device=d)),
        torch.cat([_poisson_weights(3.0, 12), 1 - _poisson_weights(3.0, 12).sum(0, True)]),
    ),
    "poisson_large": (
        lambda d: (torch.poisson(torch.full((MANY,), 50.0, device=d)) - 30).clamp(0, 40),
        torch.cat(
            [
                _poisson_weights(50.0, 31).sum(0, True),
                _poisson_weights(50.0, 70)[31:],
                1 - _poisson_weights(50.0, 70).sum(0, True),
            ]
        ),
    ),
    "binomial": (
        lambda d: torch.binomial(
            torch.full((MANY,), 8.0, device=d), torch.full((MANY,), 0.4, device=d)
        ),
        _binomial_weights(8, 0.4),
    ),
    "multinomial": (
        lambda d: torch.multinomial(torch.tensor([0.0, 1.0, 5.0, 2.0, 0.0], device=d), MANY, True),
        torch.tensor([0.0, 1.0, 5.0, 2.0, 0.0]),
    ),
    "multinomial_wide": (
        lambda d: torch.multinomial(torch.arange(300.0, device=d), MANY, True) // 30,
        torch.arange(300.0).view(10, 30).sum(1),
    ),
    "multinomial_first": (
        lambda d: torch.multinomial(torch.tensor([1.0, 2.0, 5.0], device=d).expand(MANY, 3), 2)[
            :, 0
        ],
        torch.tensor([1.0, 2.0, 5.0]),
    ),
    "randperm_first": (
        lambda d: torch.stack([torch.randperm(6, device=d)[0] for _ in range(1500)]),
        torch.ones(6),
    ),
    "randperm_shift": (
        lambda d: (torch.randperm(20_000, device=d) - torch.arange(20_000, device=d)) % 16,
        torch.ones(16),
    ),
}


@check("random/counts", "RAND-011", needs=("generator",), cases=tuple(_DISCRETE))
def discrete_distributions_are_the_ones_named(dev: Device, case: str) -> None:
    """The chi-square statistic of the counts is one of chance."""
    draw, weights = _DISCRETE[case]
    torch.manual_seed(62)
    values = draw(dev.device()).cpu().long().clamp(max=len(weights) - 1)
    assert int(values.min()) >= 0
    assert_chi_square(torch.bincount(values, minlength=len(weights)), weights)


@check("random/complex", "RAND-011", needs=("generator", "complex64"))
def complex_normal_numbers_have_variance_one(dev: Device) -> None:
    """randn of a complex type has independent parts of variance one half; rand fills the square."""
    torch.manual_seed(64)
    values = torch.randn(MANY, dtype=torch.complex64, device=dev.device()).cpu()
    for part in (values.real, values.imag):
        _assert_kolmogorov(part.double(), lambda v: torch.special.ndtr(v * math.sqrt(2)), 1e-6)
    product = float((values.real * values.imag).mean())
    assert abs(product) < 6 * 0.5 / math.sqrt(MANY)
