# SPDX-License-Identifier: BSD-3-Clause
"""Meaningless parameters are refused, and those in tensors count in their own places."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks._random_state import rng_state
from torch_conformance.checks._statistics import assert_chi_square

_REFUSED: dict[str, Callable[[torch.device], Any]] = {
    "uniform_reversed": lambda d: torch.empty(2, device=d).uniform_(2, 1),
    "normal_deviation": lambda d: torch.empty(2, device=d).normal_(0, -1),
    "bernoulli_above": lambda d: torch.empty(2, device=d).bernoulli_(1.5),
    "bernoulli_below": lambda d: torch.empty(2, device=d).bernoulli_(-0.5),
    "exponential_rate": lambda d: torch.empty(2, device=d).exponential_(0.0),
    "geometric_chance": lambda d: torch.empty(2, device=d).geometric_(1.5),
    "log_normal_deviation": lambda d: torch.empty(2, device=d).log_normal_(0, -1),
    "cauchy_sigma": lambda d: torch.empty(2, device=d).cauchy_(0, -1),
    "randint_empty": lambda d: torch.randint(3, 3, (2,), device=d),
    "random_beyond": lambda d: torch.empty(2, dtype=torch.uint8, device=d).random_(0, 300),
    "randperm_negative": lambda d: torch.randperm(-1, device=d),
    "multinomial_many": lambda d: torch.multinomial(torch.ones(2, device=d), 3),
    "multinomial_shape": lambda d: torch.multinomial(torch.ones(2, 2, 2, device=d), 1),
    "dropout_above": lambda d: functional.dropout(torch.ones(2, device=d), 1.5),
    "normal_integers": lambda d: torch.empty(2, dtype=torch.int64, device=d).normal_(),
}


@check("random/refused", "RAND-010", needs=("generator",), cases=tuple(_REFUSED))
def meaningless_parameters_are_refused(dev: Device, case: str) -> None:
    """Parameters that name no distribution raise, and nothing is drawn."""
    torch.manual_seed(55)
    before = rng_state(dev)
    assert isinstance(
        raised(lambda: _REFUSED[case](dev.device()), by=dev.synchronize),
        (RuntimeError, ValueError, NotImplementedError),
    )
    assert torch.equal(rng_state(dev), before)


_ROWS = 10_000
_MEANS = torch.tensor([-3.0, 0.0, 2.0, 50.0])
_DEVIATIONS = torch.tensor([0.5, 1.0, 2.0, 4.0])
_CHANCES = torch.tensor([0.1, 0.8, 0.4, 0.2])
_RATES = torch.tensor([3.0, 9.0, 11.0, 60.0])
_TRIALS = torch.tensor([2.0, 10.0, 100.0, 1000.0])


def _columns(parameters: Tensor, device: torch.device) -> Tensor:
    """The parameters of four columns, once in memory."""
    return parameters.to(device).expand(_ROWS, 4)


#: Draws of four columns with parameters of their own, and the columns' means and deviations.
_BY_COLUMN: dict[str, tuple[Callable[[torch.device], Tensor], Tensor, Tensor]] = {
    "normal": (
        lambda d: torch.normal(_columns(_MEANS, d), _columns(_DEVIATIONS, d)),
        _MEANS,
        _DEVIATIONS,
    ),
    "normal_strided": (
        lambda d: torch.normal(
            _columns(_MEANS, d).t().contiguous().t(), _columns(_DEVIATIONS, d).contiguous()
        ),
        _MEANS,
        _DEVIATIONS,
    ),
    "normal_mean": (
        lambda d: torch.normal(_columns(_MEANS, d), 2.0),
        _MEANS,
        torch.full((4,), 2.0),
    ),
    "normal_deviation": (
        lambda d: torch.normal(1.5, _columns(_DEVIATIONS, d)),
        torch.full((4,), 1.5),
        _DEVIATIONS,
    ),
    "normal_out": (
        lambda d: torch.normal(
            _columns(_MEANS, d), _columns(_DEVIATIONS, d), out=torch.empty(4, _ROWS, device=d).t()
        ),
        _MEANS,
        _DEVIATIONS,
    ),
    "bernoulli": (
        lambda d: torch.bernoulli(_columns(_CHANCES, d)),
        _CHANCES,
        (_CHANCES * (1 - _CHANCES)).sqrt(),
    ),
    "bernoulli_in_place": (
        lambda d: torch.empty(4, _ROWS, device=d).t().bernoulli_(_columns(_CHANCES, d)),
        _CHANCES,
        (_CHANCES * (1 - _CHANCES)).sqrt(),
    ),
    "poisson": (lambda d: torch.poisson(_columns(_RATES, d)), _RATES, _RATES.sqrt()),
    "binomial": (
        lambda d: torch.binomial(_columns(_TRIALS, d), _columns(_CHANCES, d)),
        _TRIALS * _CHANCES,
        (_TRIALS * _CHANCES * (1 - _CHANCES)).sqrt(),
    ),
    "gamma": (
        lambda d: torch._standard_gamma(_columns(_DEVIATIONS, d)),
        _DEVIATIONS,
        _DEVIATIONS.sqrt(),
    ),
    "dirichlet": (
        lambda d: torch._sample_dirichlet(_columns(_DEVIATIONS, d)),
        _DEVIATIONS / 7.5,
        (_DEVIATIONS / 7.5 * (1 - _DEVIATIONS / 7.5) / 8.5).sqrt(),
    ),
    "rrelu": (
        lambda d: functional.rrelu(_columns(-_DEVIATIONS, d).contiguous(), 0.2, 0.8, True),
        -0.5 * _DEVIATIONS,
        0.6 / math.sqrt(12) * _DEVIATIONS,
    ),
}


@check("random/by_column", "RAND-011", needs=("generator",), cases=_BY_COLUMN)
def every_element_has_its_own_parameters(dev: Device, case: str) -> None:
    """Parameters in tensors, of any strides, decide the numbers in their own places."""
    draw, means, deviations = _BY_COLUMN[case]
    torch.manual_seed(65)
    values = draw(dev.device()).cpu().double()
    assert values.shape == (_ROWS, 4)
    apart = (values.mean(0) - means).abs() / deviations
    assert float(apart.max()) < 6 / math.sqrt(_ROWS), f"means {values.mean(0)}, not {means}"
    ratios = values.std(0) / deviations
    assert float((ratios - 1).abs().max()) < 0.1, f"deviations {values.std(0)}, not {deviations}"


@check("random/by_row", "RAND-011", needs=("generator",))
def every_row_of_weights_is_drawn_from(dev: Device) -> None:
    """multinomial draws each row of its result by the weights of that row."""
    weights = torch.tensor([[1.0, 2.0, 0.0, 5.0], [0.5, 0.0, 3.0, 0.1], [9.0, 1.0, 1.0, 1.0]])
    torch.manual_seed(66)
    drawn = torch.multinomial(weights.to(dev.device()), _ROWS, True).cpu()
    for row, chances in zip(drawn, weights, strict=True):
        assert_chi_square(torch.bincount(row, minlength=4), chances)
