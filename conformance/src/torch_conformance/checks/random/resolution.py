# SPDX-License-Identifier: BSD-3-Clause
"""Numbers have all digits of their type, and each digit is random."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.random._draws import FLOATING, N, drawn


@check("random/resolution", "RAND-009", needs=("generator",), dtypes=FLOATING)
def uniform_numbers_use_the_digits_of_their_type(dev: Device, dtype: torch.dtype) -> None:
    """rand takes about as many values as its type resolves: at least 2**23 of them in float32."""
    values = drawn(dev, dtype, lambda x: x.uniform_())
    bits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 50}
    grid = 2.0 ** bits[str(dtype).removeprefix("torch.")]
    expected = grid * -math.expm1(-N / grid)  # distinct values if there are `grid` of them
    assert values.unique().numel() > expected - 6 * math.sqrt(expected) * 0.2 - 1


#: The binary places of uniform numbers, which hold one random bit each in every known generator.
_PLACES = {"float32": 23, "float64": 52}


@check("random/bits:uniform", "RAND-009", needs=("generator",), dtypes=_PLACES)
def every_bit_of_uniform_numbers_is_random(dev: Device, dtype: torch.dtype) -> None:
    """Each of the first 23 or 52 binary places of rand is 1 for half of the numbers."""
    values = drawn(dev, dtype, lambda x: x.uniform_())
    places = _PLACES[str(dtype).removeprefix("torch.")]
    _assert_balanced((values * 2.0**places).long(), places)


#: Samplers whose numbers have digits down to the last.
_DIGITS: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": lambda x: x.normal_(),
    "exponential": lambda x: x.exponential_(),
    "cauchy": lambda x: x.cauchy_(),
    "log_normal": lambda x: x.log_normal_(),
    "gamma": lambda x: torch._standard_gamma(x.fill_(2.0)),
}


@check("random/digits", "RAND-009", needs=("generator", "float64"), cases=_DIGITS)
def samplers_compute_in_float64(dev: Device, case: str) -> None:
    """Each of bits 4 to 20 of a float64 number is 1 for half of the numbers."""
    values = drawn(dev, torch.float64, _DIGITS[case])
    # The lowest bits are not even: results of a division or a logarithm are rounded.
    _assert_balanced(values.view(torch.int64) >> 4, 17)


def _assert_balanced(words: Tensor, bits: int) -> None:
    """Each of the lowest bits is set as often as by chance."""
    __tracebackhide__ = True
    rates = torch.stack([(words >> bit & 1).double().mean() for bit in range(bits)])
    allowed = 5.5 * 0.5 / math.sqrt(words.numel())
    apart = [f"{bit}: {rate:.4f}" for bit, rate in enumerate(rates) if abs(rate - 0.5) > allowed]
    assert not apart, f"bits that are not 1 for half of the numbers, {', '.join(apart)}"
