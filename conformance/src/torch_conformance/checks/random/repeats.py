# SPDX-License-Identifier: BSD-3-Clause
"""No number is drawn twice: not in one draw, in a row of draws, or by two samplers."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check


@check("random/overlap", "RAND-006", needs=("generator",))
def draws_of_any_size_never_overlap(dev: Device) -> None:
    """63 random bits at a time, no value returns in a row of draws of awkward sizes."""
    torch.manual_seed(42)
    drawn = [
        torch.empty(n, dtype=torch.int64, device=dev.device()).random_().cpu()
        for n in (1, 2, 3, 4, 5, 7, 255, 256, 257, 1023, 4097, 30_001, 1, 30_001)
    ]
    values = torch.cat(drawn)
    assert values.unique().numel() == values.numel(), "numbers are drawn twice"


_LONG = 400_000
_LONG_DRAWS: dict[str, Callable[..., Tensor]] = {"rand": torch.rand, "randn": torch.randn}


@check("random/large:int64", "RAND-006", needs=("generator",))
def a_large_tensor_of_integers_does_not_repeat_itself(dev: Device) -> None:
    """400,000 numbers of 63 random bits are all different."""
    torch.manual_seed(43)
    values = torch.empty(_LONG, dtype=torch.int64, device=dev.device()).random_().cpu()
    assert values.unique().numel() == _LONG


@check("random/large", "RAND-006", needs=("generator",), cases=_LONG_DRAWS)
def a_large_tensor_does_not_repeat_itself(dev: Device, case: str) -> None:
    """In 400,000 numbers no stretch returns at a distance by which kernels divide their work."""
    torch.manual_seed(43)
    values = _LONG_DRAWS[case](_LONG, device=dev.device()).cpu()
    for distance in (1, 4, 32, 128, 256, 1024, 4096, 8192, 65536, 131072, 262144, 100_000):
        equal = int((values[distance:] == values[:-distance]).sum())
        assert equal < 20, f"{equal} numbers return at distance {distance}"


#: Numbers so fine that of a hundred thousand no two are equal by chance.
_FINE: dict[str, Callable[[int, torch.device], Tensor]] = {
    "uniform": lambda n, d: torch.rand(n, dtype=torch.float64, device=d),
    "uniform_strided": lambda n, d: torch.empty(2 * n, dtype=torch.float64, device=d)[
        ::2
    ].uniform_(),
    "normal": lambda n, d: torch.randn(n, dtype=torch.float64, device=d),
    "normal_tensors": lambda n, d: torch.normal(_filled(n, 1.0, d), _filled(n, 2.0, d)),
    "exponential": lambda n, d: torch.empty(n, dtype=torch.float64, device=d).exponential_(),
    "cauchy": lambda n, d: torch.empty(n, dtype=torch.float64, device=d).cauchy_(),
    "log_normal": lambda n, d: torch.empty(n, dtype=torch.float64, device=d).log_normal_(),
    "gamma": lambda n, d: torch._standard_gamma(_filled(n, 2.0, d)),
    "random": lambda n, d: torch.empty(n, dtype=torch.int64, device=d).random_(),
    "randint": lambda n, d: torch.randint(-(2**62), 2**62, (n,), device=d),
}
_FINE_NEEDS = {name: "float64" for name in _FINE if name not in ("random", "randint")}

#: Each with a remainder by the 2, 4, ... numbers that a generator gives at a time.
_AWKWARD = (*range(1, 36), 63, 65, 127, 129, 255, 257, 511, 513, 1023, 1025, 4095, 4097, 65_537)


def _filled(n: int, value: float, device: torch.device) -> Tensor:
    return torch.full((n,), value, dtype=torch.float64, device=device)


@check("random/unique", "RAND-006", needs=("generator",), cases=_FINE, case_needs=_FINE_NEEDS)
def no_number_is_drawn_twice(dev: Device, case: str) -> None:
    """In a row of draws of every awkward size no number of 53 or more random bits returns."""
    torch.manual_seed(44)
    values = torch.cat([_FINE[case](n, dev.device()).cpu() for n in _AWKWARD])
    assert values.unique().numel() == values.numel(), "numbers are drawn twice"


#: Numbers of 24 random bits or less.
_COARSE: dict[str, Callable[[int, torch.device], Tensor]] = {
    "uniform": lambda n, d: torch.rand(n, device=d),
    "normal": lambda n, d: torch.randn(n, device=d),
    "exponential": lambda n, d: torch.empty(n, device=d).exponential_(),
    "cauchy": lambda n, d: torch.empty(n, device=d).cauchy_(),
    "randint": lambda n, d: torch.randint(0, 2**24, (n,), device=d),
    "random_int32": lambda n, d: torch.empty(n, dtype=torch.int32, device=d).random_(),
}


@check("random/unique_pairs", "RAND-006", needs=("generator",), cases=_COARSE)
def no_pair_of_numbers_is_drawn_twice(dev: Device, case: str) -> None:
    """In a row of draws of every awkward size no two neighbours return together."""
    torch.manual_seed(45)
    values = torch.cat([_COARSE[case](n, dev.device()).cpu() for n in _AWKWARD])
    whole = values.view(torch.int32) if values.element_size() == 4 else values
    pairs = whole[1:].long() * 2**32 + (whole[:-1].long() & 0xFFFFFFFF)
    assert pairs.unique().numel() == pairs.numel(), "pairs of numbers are drawn twice"


@check("random/samplers_in_turn", "RAND-012", needs=("generator", "float64"))
def samplers_in_turn_share_no_numbers(dev: Device) -> None:
    """Uniform, exponential and Cauchy numbers drawn in turn are not made of the same bits."""
    torch.manual_seed(46)
    places = []
    for n in (1001, 2003, 3001):
        places += [
            _FINE["uniform"](n, dev.device()).cpu(),
            -torch.expm1(-_FINE["exponential"](n, dev.device()).cpu()),
            _FINE["cauchy"](n, dev.device()).cpu().atan() / math.pi + 0.5,
        ]
    drawn = torch.cat(places)
    gaps = torch.cat([drawn, 1 - drawn]).sort().values.diff()
    assert float(gaps.min()) > 1e-14, "two samplers use the same bits"
