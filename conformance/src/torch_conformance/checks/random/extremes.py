# SPDX-License-Identifier: BSD-3-Clause
"""What is certain, impossible or rare, and the rarest random bits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import FULL, Device, check

_SURE = 1 << 20
#: A draw of which the result is certain, and that result: a number, or what the draw is made of.
_CERTAIN: dict[str, tuple[Callable[[torch.device], Tensor], float]] = {
    "bernoulli_never": (lambda d: torch.empty(_SURE, device=d).bernoulli_(0.0), 0.0),
    "bernoulli_always": (lambda d: torch.empty(_SURE, device=d).bernoulli_(1.0), 1.0),
    "bernoulli_tensor_never": (lambda d: torch.bernoulli(torch.zeros(_SURE, device=d)), 0.0),
    "bernoulli_tensor_always": (lambda d: torch.bernoulli(torch.ones(_SURE, device=d)), 1.0),
    "bernoulli_into_integers": (
        lambda d: torch.empty(_SURE, dtype=torch.int64, device=d).bernoulli_(
            torch.ones(_SURE, device=d)
        ),
        1.0,
    ),
    "dropout_never": (lambda d: functional.dropout(torch.full((_SURE,), 3.0, device=d), 0.0), 3.0),
    "dropout_always": (lambda d: functional.dropout(torch.full((_SURE,), 3.0, device=d), 1.0), 0.0),
    "dropout_recorded_never": (
        lambda d: torch.native_dropout(torch.full((_SURE,), 3.0, device=d), 0.0, True)[0],
        3.0,
    ),
    "dropout_recorded_always": (
        lambda d: torch.native_dropout(torch.full((_SURE,), 3.0, device=d), 1.0, True)[0],
        0.0,
    ),
    "poisson": (lambda d: torch.poisson(torch.zeros(_SURE, device=d)), 0.0),
    "binomial_never": (
        lambda d: torch.binomial(torch.full((9999,), 40.0, device=d), torch.zeros(9999, device=d)),
        0.0,
    ),
    "binomial_always": (
        lambda d: torch.binomial(torch.full((9999,), 40.0, device=d), torch.ones(9999, device=d)),
        40.0,
    ),
    "normal": (lambda d: torch.empty(9999, device=d).normal_(1.5, 0.0), 1.5),
    "normal_tensors": (
        lambda d: torch.normal(torch.full((9999,), 1.5, device=d), torch.zeros(9999, device=d)),
        1.5,
    ),
    "uniform": (lambda d: torch.empty(9999, device=d).uniform_(1.5, 1.5), 1.5),
    "randint": (lambda d: torch.randint(7, 8, (9999,), device=d), 7.0),
    "random": (lambda d: torch.empty(9999, device=d).random_(7, 8), 7.0),
    "rrelu": (
        lambda d: functional.rrelu(torch.full((9999,), -2.0, device=d), 0.5, 0.5, True),
        -1.0,
    ),
    "multinomial_one_weight": (
        lambda d: torch.multinomial(torch.tensor([0.0, 0.0, 2.5, 0.0], device=d), 99_999, True),
        2.0,
    ),
    "multinomial_rows": (
        lambda d: torch.multinomial(torch.tensor([0.0, 1e-30, 0.0], device=d).expand(999, 3), 1),
        1.0,
    ),
}


@check("random/certain", "RAND-015", needs=("generator",), cases=_CERTAIN)
def what_is_certain_happens_always(dev: Device, case: str) -> None:
    """A draw that has one possible outcome has it each time, in up to a million draws."""
    draw, expected = _CERTAIN[case]
    torch.manual_seed(56)
    values = draw(dev.device()).cpu()
    wrong = int((values != expected).sum())
    assert wrong == 0, f"{wrong} of {values.numel()} numbers are not {expected}"


#: Weights of categories, of which those of zero are first, last and next to large ones.
_WEIGHTS = (0.0, 0.0, 1e-3, 0.0, 5.0, 0.0, 1e3, 0.0, 2.0, 0.0)

_MULTINOMIAL: dict[str, Callable[[Tensor], Tensor]] = {
    "with_replacement": lambda weights: torch.multinomial(weights, 300_000, True),
    "without": lambda weights: torch.multinomial(weights.expand(30_000, 10), 4),
    "rows": lambda weights: torch.multinomial(weights.expand(30_000, 10), 9, True),
}


@check("random/zero_weight", "RAND-015", needs=("generator",), cases=_MULTINOMIAL)
def categories_of_weight_zero_are_never_drawn(dev: Device, case: str) -> None:
    """multinomial draws no category of weight zero, wherever it stands among the others."""
    torch.manual_seed(57)
    drawn = _MULTINOMIAL[case](torch.tensor(_WEIGHTS, device=dev.device())).cpu()
    counts = torch.bincount(drawn.flatten(), minlength=len(_WEIGHTS))
    assert counts.numel() == len(_WEIGHTS)
    assert int(counts[torch.tensor(_WEIGHTS) == 0].sum()) == 0, f"drawn: {counts.tolist()}"


#: Draws of an event that happens once in 200,000 draws, in four million of them.
_RARE: dict[str, Callable[[torch.device, float], Tensor]] = {
    "number": lambda d, p: torch.empty(1 << 22, device=d).bernoulli_(p),
    "tensor": lambda d, p: torch.bernoulli(torch.full((1 << 22,), p, device=d)),
}


@check("random/rare", "RAND-011", needs=("generator",), cases=_RARE)
def rare_events_are_rare(dev: Device, case: str) -> None:
    """Chances of 5 in a million, and of all but those, are honoured."""
    for chance in (5e-6, 1 - 5e-6):
        torch.manual_seed(58)
        ones = int(_RARE[case](dev.device(), chance).sum(dtype=torch.int64))
        rare = min(ones, (1 << 22) - ones)
        assert 1 <= rare <= 55, f"{ones} of {1 << 22} draws with the chance {chance} are 1"


#: Draws with what must hold for each of 2**26 numbers: what one word of 32 random bits can break.
_EXTREME: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "uniform": (lambda x: x.uniform_(), lambda x: (x >= 0) & (x < 1)),
    "exponential": (lambda x: x.exponential_(), lambda x: (x > 0) & x.isfinite()),
    "normal": (lambda x: x.normal_(), lambda x: x.abs() < 8),
    "log_normal": (lambda x: x.log_normal_(), lambda x: (x > 0) & x.isfinite()),
    "cauchy": (lambda x: x.cauchy_(), torch.isfinite),
    "geometric": (lambda x: x.geometric_(0.5), lambda x: (x >= 1) & (x < 64)),
    "never": (lambda x: x.bernoulli_(0.0), lambda x: x == 0),
    "always": (lambda x: x.bernoulli_(1.0), lambda x: x == 1),
}


@check(
    "random/extreme", ("RAND-007", "RAND-015"), needs=("generator",), cases=_EXTREME, breadth=FULL
)
def the_rarest_random_bits_give_good_numbers(dev: Device, case: str) -> None:
    """Of 2**26 numbers none leaves its support: also not those of random bits 0 and 2**32 - 1."""
    draw, holds = _EXTREME[case]
    torch.manual_seed(59)
    for _ in range(4):
        values = draw(torch.empty(1 << 24, device=dev.device())).cpu()
        wrong = values[~holds(values)]
        assert wrong.numel() == 0, f"{wrong.numel()} numbers, the first of them {wrong[0]}"
