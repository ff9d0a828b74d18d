# SPDX-License-Identifier: BSD-3-Clause
"""Numbers have the distribution that is asked for, in each data type, and do not correlate."""

from __future__ import annotations

import math

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._statistics import MANY, host_values, near


@check(
    "generator/uniform",
    "GEN-018",
    needs=("generator",),
    dtypes=("float16", "bfloat16", "float32", "float64"),
)
def uniform_numbers_fill_the_half_open_interval(dev: Device, dtype: torch.dtype) -> None:
    """rand lies in [0, 1), with the mean, variance and range of the uniform distribution."""
    torch.manual_seed(2)
    values = torch.rand(MANY, dtype=dtype, device=dev.device())
    assert values.dtype == dtype
    host = host_values(values)
    assert float(host.min()) >= 0.0
    assert float(host.max()) < 1.0
    slack = torch.finfo(dtype).eps
    assert abs(float(host.mean()) - 0.5) <= 6 * 0.2887 / math.sqrt(MANY) + slack
    assert abs(float(host.var()) - 1 / 12) < 0.01
    counts = torch.histc(host, 16, 0.0, 1.0)
    assert float(counts.min()) > 0.8 * MANY / 16
    assert float(counts.max()) < 1.2 * MANY / 16


@check(
    "generator/normal", "GEN-018", needs=("generator",), dtypes=("float16", "float32", "float64")
)
def normal_numbers_have_the_moments_of_the_normal_distribution(
    dev: Device, dtype: torch.dtype
) -> None:
    """randn has mean 0, variance 1, no skew and the kurtosis of the normal distribution."""
    torch.manual_seed(2)
    host = host_values(torch.randn(MANY, dtype=dtype, device=dev.device()))
    assert bool(host.isfinite().all())
    assert near(float(host.mean()), 0.0, 1.0)
    assert abs(float(host.var()) - 1.0) < 0.05
    assert abs(float((host**3).mean())) < 0.12
    assert abs(float((host**4).mean()) - 3.0) < 0.3


@check("generator/correlation", "GEN-018", needs=("generator",), cases=("rand", "randn"))
def neighbouring_numbers_are_not_correlated(dev: Device, case: str) -> None:
    """The first autocorrelations of a draw, and between two draws, are near zero."""
    torch.manual_seed(2)
    draw = getattr(torch, case)
    first, second = (host_values(draw(MANY, device=dev.device())) for _ in range(2))
    centred, other = first - first.mean(), second - second.mean()
    variance = float((centred**2).mean())
    for lag in (1, 2, 4, 32, 256):
        correlation = float((centred[lag:] * centred[:-lag]).mean()) / variance
        assert abs(correlation) < 0.05, f"lag {lag}"
    assert abs(float((centred * other).mean())) / variance < 0.05, "between two draws"


@check("generator/bernoulli", "GEN-018", needs=("generator",))
def bernoulli_honours_its_probability(dev: Device) -> None:
    """bernoulli gives 0 and 1 with the asked rate; 0 and 1 are exact."""
    torch.manual_seed(2)
    for p in (0.0, 0.25, 0.9, 1.0):
        host = host_values(torch.empty(MANY, device=dev.device()).bernoulli_(p))
        assert set(host.unique().tolist()) <= {0.0, 1.0}
        assert near(float(host.mean()), p, math.sqrt(p * (1 - p)))
    chances = torch.tensor([0.0, 1.0], device=dev.device()).repeat(100)
    assert torch.equal(torch.bernoulli(chances).cpu(), chances.cpu())


@check("generator/randint", "GEN-018", needs=("generator",))
def randint_covers_its_range(dev: Device) -> None:
    """randint takes every value of [low, high) and no other, evenly."""
    torch.manual_seed(2)
    values = torch.randint(-3, 5, (MANY,), device=dev.device())
    assert values.dtype == torch.int64
    counts = torch.bincount(values.cpu() + 3, minlength=8)
    assert counts.numel() == 8
    assert int(counts.min()) > 0.85 * MANY / 8
    wide = torch.randint(0, 2**40, (1000,), device=dev.device())
    assert int(wide.max()) >= 2**32, "the high bits are never set"


@check("generator/randperm", "GEN-018", needs=("generator",))
def randperm_is_a_permutation(dev: Device) -> None:
    """randperm(n) holds each of 0..n-1 once, in an order that is not the identity."""
    torch.manual_seed(2)
    for n in (0, 1, 2, 1000):
        values = torch.randperm(n, device=dev.device()).cpu()
        assert torch.equal(values.sort().values, torch.arange(n))
    assert not torch.equal(values, torch.arange(1000))


@check("generator/multinomial", "GEN-018", needs=("generator",))
def multinomial_honours_weights(dev: Device) -> None:
    """multinomial never draws weight 0, follows the weights, and can draw without replacement."""
    torch.manual_seed(2)
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0], device=dev.device())
    drawn = torch.multinomial(weights, MANY, replacement=True).cpu()
    counts = torch.bincount(drawn, minlength=5)
    assert counts[0] == 0
    assert counts[3] == 0
    assert abs(int(counts[4]) / MANY - 0.5) < 0.03
    assert sorted(torch.multinomial(weights, 3).tolist()) == [1, 2, 4]


@check("generator/exponential", "GEN-018", needs=("generator",))
def exponential_numbers_are_positive(dev: Device) -> None:
    """exponential_(rate) is positive and finite with mean 1/rate."""
    torch.manual_seed(2)
    host = host_values(torch.empty(MANY, device=dev.device()).exponential_(2.0))
    assert float(host.min()) > 0.0
    assert bool(host.isfinite().all())
    assert near(float(host.mean()), 0.5, 0.5)
