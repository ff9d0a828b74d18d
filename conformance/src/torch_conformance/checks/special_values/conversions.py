# SPDX-License-Identifier: BSD-3-Clause
"""Conversions wrap integers, cut off floating numbers, and round to even."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.special_values._integers import INTEGERS, limits, wrapped
from torch_conformance.checks.special_values._values import FLOATS, INF, NAN


@check("special_values/integer_cast", "SPECIAL-011", dtypes=INTEGERS)
def integers_are_converted_at_their_limits(dev: Device, dtype: torch.dtype) -> None:
    """The limits of an integer type are wrapped in other integers and rounded to even in floats."""
    x = limits(dtype)
    if dtype == torch.int64:
        x = torch.cat([x, torch.tensor([2**24 + 1, 2**53 + 1, 2**53 + 3, 2**11 + 1, 65519, 65520])])
    for other in dev.dtypes():
        expected = wrapped([x.tolist()], other)[0] if other in _INTEGRAL else x.to(other)
        dev.assert_equal(x.to(dev.device()).to(other), expected)


_INTEGRAL = [getattr(torch, name) for name in INTEGERS]


_UNSIGNED = ("uint16", "uint32", "uint64")


@check("special_values/unsigned_cast", "SPECIAL-015", dtypes=_UNSIGNED)
def wide_unsigned_integers_are_converted_at_their_limits(dev: Device, dtype: torch.dtype) -> None:
    """Unsigned integers of 16 bits and more become other numbers, and other numbers become them."""
    x, device = limits(dtype), dev.device()
    for other in (*dev.dtypes(), *(getattr(torch, name) for name in _UNSIGNED)):
        dev.assert_equal(x.to(device).to(other), x.to(other))
        small = torch.tensor([0, 1, 2, 100]).to(other)
        dev.assert_equal(small.to(device).to(dtype), small.to(dtype))


@check("special_values/float_cast", "SPECIAL-011", dtypes=FLOATS)
def floats_are_converted_at_the_limits(dev: Device, dtype: torch.dtype) -> None:
    """Numbers next to the limits of integers are cut off; what is not zero, NaN too, is true."""
    for other in dev.dtypes("integral"):
        info = torch.iinfo(other)
        top = torch.tensor(2.0 ** (info.bits - (1 if info.min else 0)), dtype=dtype)
        last = torch.nextafter(top, torch.zeros_like(top))
        numbers = [last if bool(top.isfinite()) else torch.tensor(6e4, dtype=dtype)]
        numbers += [torch.tensor(v, dtype=dtype) for v in (0.0, -0.0, 0.99, 1.5, 2.99)]
        if info.min:
            numbers += [-n for n in numbers]
        x = torch.stack(numbers)
        dev.assert_equal(x.to(dev.device()).to(other), x.double().trunc().to(other))
    x = torch.tensor([0.0, -0.0, 0.25, -0.25, NAN, INF, -INF], dtype=dtype)
    dev.assert_equal(x.to(dev.device()).bool(), torch.tensor([False] * 2 + [True] * 5))


#: Halfway and overflowing numbers of each narrower type.
_ROUNDED = {
    torch.float16: (65504, 65519.99, 65520, 65536, 2049, 2051, 2049.01, 1e-8, 2.9e-8, 3e-8, 6e-5),
    torch.bfloat16: (257, 259, 257.01, 3.3895e38, 3.3961e38, 1.00390625, 1.01171875),
    torch.float32: (16777217.0, 16777219.0, 3.4028235e38, 3.4028236e38, 1e-46, 7e-46, 8e-46),
}


@check("special_values/float_rounding", "SPECIAL-014", dtypes=("float32", "float64"))
def conversions_round_to_even(dev: Device, dtype: torch.dtype) -> None:
    """A conversion to a narrower type rounds halves to even, and what is too large to infinity."""
    for other, numbers in _ROUNDED.items():
        if other in dev.dtypes() and other != dtype:
            x = torch.tensor([n * sign for n in numbers for sign in (1, -1)], dtype=dtype)
            dev.assert_equal(x.to(dev.device()).to(other), x.to(other))
