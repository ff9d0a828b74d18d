# SPDX-License-Identifier: BSD-3-Clause
"""Copies convert from each data type to every other one as the CPU does."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

from torch_conformance.authoring.api import DTYPES, Device, check, ramp
from torch_conformance.checks.copy._copies import BASE, DIRECTIONS, UNTOUCHED


def _dtypes(dev: Device) -> list[torch.dtype]:
    return list(dev.dtypes("all"))


def _converts(
    dev: Device, dtype: torch.dtype, copy: Callable[[torch.Tensor, torch.dtype], torch.Tensor]
) -> None:
    """`copy` converts from a data type to every other one as the CPU does."""
    source = ramp((5, 6), dtype, positive=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex to real warns; that is a check of its own
        for target_dtype in _dtypes(dev):
            expected = torch.zeros(5, 6, dtype=target_dtype).copy_(source)
            actual = copy(source, target_dtype)
            assert actual.dtype == target_dtype
            dev.assert_equal(actual, expected)


@check("copy/cast", "COPY-011", cases=DIRECTIONS, dtypes=DTYPES)
def casting_copies_agree_with_the_cpu(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ from this data type to every other one converts as the CPU does."""
    source_on, target_on = DIRECTIONS[case](dev)

    def copy(source: torch.Tensor, to: torch.dtype) -> torch.Tensor:
        return torch.zeros(5, 6, dtype=to, device=target_on).copy_(source.to(source_on))

    _converts(dev, dtype, copy)


@check("copy/cast:to", "COPY-011", dtypes=DTYPES)
def conversions_agree_with_the_cpu(dev: Device, dtype: torch.dtype) -> None:
    """to() from this data type to every other one converts as the CPU does."""
    _converts(dev, dtype, lambda source, to: source.to(dev.device()).to(to))


@check("copy/cast_negative", "COPY-011", cases=DIRECTIONS)
def negative_numbers_are_cut_towards_zero(dev: Device, case: str) -> None:
    """Negative numbers convert between all signed types as on the CPU."""
    source_on, target_on = DIRECTIONS[case](dev)
    values = torch.tensor([-2.75, -0.5, -1.0, -100.25, 0.75, 3.0])
    signed = [dtype for dtype in _dtypes(dev) if dtype.is_signed and not dtype.is_complex]
    for source_dtype in signed:
        source = values.to(source_dtype)
        for target_dtype in signed:
            actual = torch.zeros(6, dtype=target_dtype, device=target_on)
            actual.copy_(source.to(source_on))
            dev.assert_equal(actual, source.to(target_dtype))


@check("copy/cast_wide", "COPY-011", cases=DIRECTIONS)
def whole_numbers_wrap_and_round(dev: Device, case: str) -> None:
    """Large integers wrap in narrower types and round to the nearest floating point number."""
    source_on, target_on = DIRECTIONS[case](dev)
    source = torch.tensor([2**24 + 1, 2**24 + 3, 2**53 + 1, -(2**31) - 5, 300, -129, 65535, 2**62])
    for dtype in _dtypes(dev):
        if dtype.is_complex:
            continue
        actual = torch.zeros(8, dtype=dtype, device=target_on).copy_(source.to(source_on))
        dev.assert_equal(actual, source.to(dtype))


@check("copy/cast_strided", "COPY-011", cases=DIRECTIONS)
def casting_copies_honour_strides(dev: Device, case: str) -> None:
    """Conversion and strides on both sides at once give what the CPU gives."""
    source_on, target_on = DIRECTIONS[case](dev)
    source = ramp(BASE, torch.int32)
    expected = torch.full((12, 16), float(UNTOUCHED))
    actual = expected.to(target_on, copy=True)
    expected[:, ::2].copy_(source.t())
    actual[:, ::2].copy_(source.to(source_on).t())
    dev.assert_equal(actual, expected)


@check("copy/cast_rounding", "COPY-011", dtypes=("float16", "bfloat16"))
def narrowing_rounds_to_nearest_even(dev: Device, dtype: torch.dtype) -> None:
    """float32 to a 16 bit type rounds ties to even and keeps NaN and infinity, on the device."""
    step = torch.finfo(dtype).eps
    values = [1 + step * k / 4 for k in range(17)] + [1e30, -1e30, float("inf"), float("nan")]
    source = torch.tensor(values, dtype=torch.float32)
    dev.assert_equal(source.to(dev.device()).to(dtype), source.to(dtype))


@check("copy/cast_bool", "COPY-011", cases=("h2d", "d2d"))
def conversion_to_bool_tests_for_non_zero(dev: Device, case: str) -> None:
    """Fractions, NaN and negative zero convert to bool as on the CPU."""
    source = torch.tensor([0.0, -0.0, 0.25, -3.0, float("nan"), float("inf")])
    source_on, target_on = DIRECTIONS[case](dev)
    actual = torch.zeros(6, dtype=torch.bool, device=target_on).copy_(source.to(source_on))
    dev.assert_equal(actual, source.to(torch.bool))


_TO_REAL: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "to": lambda source, target: source.to(target.dtype),
    "copy": lambda source, target: target.copy_(source),
}


@check("copy/complex_to_real_warns", "COPY-012", needs=("complex64",), cases=_TO_REAL)
def dropping_the_imaginary_part_warns(dev: Device, case: str) -> None:
    """A conversion from complex to real says that it discards the imaginary part."""
    source = ramp((3,), torch.complex64).to(dev.device())
    target = torch.zeros(3, device=dev.device())
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _TO_REAL[case](source, target)
            dev.synchronize()
    finally:
        torch.set_warn_always(always)
    assert any("imaginary" in str(entry.message) for entry in caught)
