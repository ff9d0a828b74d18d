# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of one draw, of draws in a row and of different seeds are independent."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._statistics import MANY, assert_chi_square


def _constant(value: float, device: torch.device) -> Tensor:
    return torch.full((20_000,), value, device=device)


#: Samplers that draw until a number is accepted; no two of their numbers are often equal.
_REJECTING: dict[str, Callable[[torch.device], Tensor]] = {
    "gamma": lambda d: torch._standard_gamma(_constant(1.5, d)),
    "gamma_below_one": lambda d: torch._standard_gamma(_constant(0.5, d)),
    "dirichlet": lambda d: torch._sample_dirichlet(_constant(2.0, d).view(-1, 2))[:, 0],
    "poisson": lambda d: torch.poisson(_constant(4e6, d)),
    "binomial": lambda d: torch.binomial(_constant(1.6e7, d), _constant(0.5, d)),
}


@check("random/rejection", "RAND-012", needs=("generator",), cases=_REJECTING)
def rejected_numbers_are_not_drawn_again(dev: Device, case: str) -> None:
    """Samplers that reject numbers leave the sequence behind the last that they may have used."""
    torch.manual_seed(47)
    drawn = [_REJECTING[case](dev.device()).cpu().double() for _ in range(4)]
    for first in range(4):
        for second in range(first):
            equal = int((drawn[first] == drawn[second]).sum())
            assert equal < 40, f"{equal} numbers of draw {second} return in draw {first}"
    _assert_independent(drawn)


#: A draw, and its distribution function, which maps what is drawn evenly to [0, 1].
_DRAWN_EVENLY: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]] = {
    "rand": (torch.rand, lambda v: v),
    "randn": (torch.randn, torch.special.ndtr),
}


@check("random/pairs", "RAND-012", needs=("generator",), cases=_DRAWN_EVENLY)
def pairs_of_numbers_fill_the_square(dev: Device, case: str) -> None:
    """Two numbers of one draw at any small or power-of-two distance are independent."""
    draw, cdf = _DRAWN_EVENLY[case]
    torch.manual_seed(63)
    places = (cdf(draw(MANY, device=dev.device()).cpu()) * 8).long().clamp(0, 7)
    for distance in (1, 2, 3, 4, 8, 32, 256, 1024, 16384):
        pairs = places[distance:] * 8 + places[:-distance]
        assert_chi_square(torch.bincount(pairs, minlength=64), torch.ones(64))


def _assert_independent(draws: list[Tensor]) -> None:
    """Fail if draws of normal numbers are correlated more than by chance."""
    __tracebackhide__ = True
    correlation = torch.corrcoef(torch.stack(draws)) - torch.eye(len(draws))
    assert float(correlation.abs().max()) < 5.5 / math.sqrt(draws[0].numel())


#: Draws of many random bits, and where 16 of them begin: those of words of 32 bits among them.
_WORDS: dict[str, tuple[Callable[[torch.device], Tensor], tuple[int, ...]]] = {
    "float64": (
        lambda d: (torch.rand(20_000, dtype=torch.float64, device=d).cpu() * 2**53).long(),
        (0, 5, 16, 21, 32, 37),
    ),
    "int64": (
        lambda d: torch.empty(20_000, dtype=torch.int64, device=d).random_().cpu(),
        (0, 15, 16, 31, 32, 47),
    ),
}


@check(
    "random/shared_bits",
    "RAND-012",
    needs=("generator",),
    cases=_WORDS,
    case_needs={"float64": "float64"},
)
def neighbours_share_no_bits(dev: Device, case: str) -> None:
    """No 16 bits of a number are those of a neighbour more often than by chance."""
    draw, places = _WORDS[case]
    torch.manual_seed(74)
    numbers = draw(dev.device())
    words = {place: numbers >> place & 0xFFFF for place in places}
    for distance, one, other in product((1, 2, 3), places, places):
        alike = int((words[one][distance:] == words[other][:-distance]).sum())
        assert alike < 20, f"{alike} of {len(numbers)} share bits {one} and {other} from {distance}"


@check("random/seeds:neighbours", "RAND-012", needs=("generator",))
def sequences_of_different_seeds_are_independent(dev: Device) -> None:
    """Seeds n and n + 1 give numbers that are not correlated."""
    drawn = []
    for seed in range(1000, 1006):
        torch.manual_seed(seed)
        drawn.append(torch.randn(8192, device=dev.device()).cpu())
    _assert_independent(drawn)


@check("random/seeds:after_draws", "RAND-012", needs=("generator",))
def draws_in_a_row_are_independent(dev: Device) -> None:
    """Draws in a row after one seed give numbers that are not correlated."""
    torch.manual_seed(1000)
    _assert_independent([torch.randn(8192, device=dev.device()).cpu() for _ in range(6)])
