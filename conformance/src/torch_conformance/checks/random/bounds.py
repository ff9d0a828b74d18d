# SPDX-License-Identifier: BSD-3-Clause
"""Numbers lie within their bounds and are finite."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.random._draws import FLOATING, drawn

_RANGES = {"unit": (0.0, 1.0), "mixed": (-3.0, 5.0), "one_two": (1.0, 2.0), "narrow": (0.5, 0.75)}


@check("random/uniform", "RAND-007", needs=("generator",), cases=tuple(_RANGES), dtypes=FLOATING)
def uniform_never_reaches_its_upper_bound(dev: Device, case: str, dtype: torch.dtype) -> None:
    """uniform_(low, high) lies in [low, high) in every data type, and comes near both ends."""
    low, high = _RANGES[case]
    values = drawn(dev, dtype, lambda x: x.uniform_(low, high))
    assert float(values.min()) >= low
    assert float(values.max()) < high
    near = (high - low) * 1e-3 + 2 * torch.finfo(dtype).eps * max(abs(low), abs(high))
    assert float(values.min()) < low + near
    assert float(values.max()) > high - near


@check(
    "random/exponential",
    "RAND-007",
    needs=("generator",),
    dtypes=("bfloat16", "float32", "float64"),
)
def exponential_is_never_zero_nor_infinite(dev: Device, dtype: torch.dtype) -> None:
    """exponential_ is positive and finite, for small and large rates."""
    for rate in (1e-3, 1.0, 1e3):
        values = drawn(dev, dtype, lambda x: x.exponential_(rate))  # noqa: B023 - called at once
        assert float(values.min()) > 0.0
        assert bool(values.isfinite().all())


@check("random/positive:geometric", "RAND-007", needs=("generator",))
def geometric_numbers_are_whole_and_positive(dev: Device) -> None:
    """geometric_ gives finite whole numbers from 1."""
    values = drawn(dev, torch.float32, lambda x: x.geometric_(0.2))
    assert bool((values == values.floor()).all())
    assert float(values.min()) == 1.0
    assert bool(values.isfinite().all())


@check("random/positive:log_normal", "RAND-007", needs=("generator",))
def log_normal_numbers_are_positive(dev: Device) -> None:
    """log_normal_ gives finite positive numbers."""
    values = drawn(dev, torch.float32, lambda x: x.log_normal_())
    assert float(values.min()) > 0.0
    assert bool(values.isfinite().all())


@check("random/finite", "RAND-007", needs=("generator",), dtypes=FLOATING)
def normal_numbers_are_finite(dev: Device, dtype: torch.dtype) -> None:
    """normal_ never meets the logarithm of zero, and its tails reach beyond four deviations."""
    values = drawn(dev, dtype, lambda x: x.normal_())
    assert bool(values.isfinite().all())
    assert 3.5 < float(values.abs().max()) < 8.0
