# SPDX-License-Identifier: BSD-3-Clause
"""Random integers cover their range evenly, and never leave it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._statistics import assert_chi_square

_BOUNDS = {
    "one": (0, 1),
    "two": (-1, 1),
    "three": (0, 3),
    "byte": (-100, 156),
    "beyond_int32": (2**31 - 2, 2**31 + 2),
    "negative_wide": (-(2**33), 2**33),
    "widest": (-(2**62), 2**62),
}


@check("random/integers", "RAND-008", needs=("generator",), cases=tuple(_BOUNDS))
def integers_cover_their_range_and_never_leave_it(dev: Device, case: str) -> None:
    """randint(low, high) stays in [low, high), takes both ends, and has no gaps or bias."""
    low, high = _BOUNDS[case]
    torch.manual_seed(52)
    values = torch.randint(low, high, (40_000,), device=dev.device()).cpu()
    assert int(values.min()) >= low
    assert int(values.max()) < high
    span = high - low
    bins = min(span, 64)
    places = ((values - low) // (span // bins)).clamp(max=bins - 1)
    if span <= 256:
        assert int(values.min()) == low and int(values.max()) == high - 1
    assert_chi_square(torch.bincount(places, minlength=bins), torch.ones(bins))


@check("random/integer_bias", "RAND-008", needs=("generator",))
def wide_ranges_are_not_biased(dev: Device) -> None:
    """randint over three quarters of 2**32 is even: no remainder of 32 random bits is taken."""
    torch.manual_seed(53)
    values = torch.randint(0, 3 * 2**30, (30_000,), device=dev.device()).cpu()
    assert_chi_square(torch.bincount(values // 2**30, minlength=3), torch.ones(3))


_FULL = {
    "uint8": 255,
    "int8": 127,
    "int16": 2**15 - 1,
    "int32": 2**31 - 1,
    "int64": 2**63 - 1,
    "float16": 2**11,
    "bfloat16": 2**8,
    "float32": 2**24,
    "float64": 2**53,
    "bool": 1,
}


@check("random/full_range", "RAND-008", needs=("generator",), dtypes=tuple(_FULL))
def random_without_bounds_fills_the_type(dev: Device, dtype: torch.dtype) -> None:
    """random_() draws from 0 to the largest integer that the type holds exactly."""
    name = str(dtype).removeprefix("torch.")
    dev.require(*{name} & {"float16", "bfloat16", "float64"})
    torch.manual_seed(54)
    values = torch.empty(20_000, dtype=dtype, device=dev.device()).random_().cpu()
    largest = _FULL[name]
    assert int(values.min()) >= 0
    assert int(values.max()) <= largest
    assert int(values.max()) >= largest * 0.99
    assert int(values.min()) <= largest * 0.01


_INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32")
_BETWEEN: dict[str, Callable[[Tensor], Tensor]] = {
    "from_to": lambda x: x.random_(3, 17) - 3,
    "to": lambda x: x.random_(14),
    "like": lambda x: torch.randint_like(x, 3, 17) - 3,
    "like_below": lambda x: torch.randint_like(x, 14),
}


@check("random/between", "RAND-008", needs=("generator",), cases=_BETWEEN, dtypes=_INTEGERS)
def bounds_are_honoured_in_every_type(dev: Device, case: str, dtype: torch.dtype) -> None:
    """random_ and randint_like take each of 14 numbers equally often in every data type."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float16", "bfloat16"})
    torch.manual_seed(67)
    values = _BETWEEN[case](torch.zeros(14_007, dtype=dtype, device=dev.device())).cpu().long()
    assert int(values.min()) >= 0 and int(values.max()) < 14
    assert_chi_square(torch.bincount(values, minlength=14), torch.ones(14))
