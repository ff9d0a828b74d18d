# SPDX-License-Identifier: BSD-3-Clause
"""Scans carry their state over each block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from torch_conformance.authoring.api import FULL, STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import MILLION, REDUCED


def _signs(m: Inputs, shape: tuple[int, ...]) -> Tensor:
    return m.whole(*shape, limit=1) * 2 + 1 - 2 * m.whole(*shape, limit=1).abs()


_SCANS: dict[str, Callable[[Inputs, tuple[int, ...], int], Any]] = {
    "cumsum": lambda m, shape, d: m.steps(*shape).cumsum(d),
    "cumsum_of_integers": lambda m, shape, d: m.order(*shape).cumsum(d),
    "cumsum_of_truths": lambda m, shape, d: (m.whole(*shape) > 0).cumsum(d),
    "cumprod": lambda m, shape, d: _signs(m, shape).cumprod(d),
    "cummax": lambda m, shape, d: list(m.distinct(*shape).cummax(d)),
    "cummin": lambda m, shape, d: list(m.distinct(*shape).cummin(d)),
    "logcumsumexp": lambda m, shape, d: m.steps(*shape).logcumsumexp(d),
}


@check("sizes/scan", "SIZE-004", cases=_SCANS, breadth=STANDARD)
def scans_carry_over_each_block(dev: Device, case: str) -> None:
    """A scan of long rows, long columns and many of each carries its state over each block."""
    agree_with_double(
        dev, lambda m: [_SCANS[case](m, shape, dim) for shape, dim in REDUCED], rtol=2e-5
    )


_SCAN_KINDS = ("cumsum", "cummax")


@check("sizes/scan_million", "SIZE-004", cases=_SCAN_KINDS, breadth=STANDARD)
def scans_carry_over_a_million(dev: Device, case: str) -> None:
    """One scan of each kind carries its state over a million elements."""
    agree_with_double(dev, lambda m: _SCANS[case](m, (MILLION,), 0), rtol=2e-5)


@check(
    "sizes/scan_million",
    "SIZE-004",
    cases=[name for name in _SCANS if name not in _SCAN_KINDS],
    breadth=FULL,
)
def other_scans_carry_over_a_million(dev: Device, case: str) -> None:
    """The other scans carry their state over a million elements."""
    agree_with_double(dev, lambda m: _SCANS[case](m, (MILLION,), 0), rtol=2e-5)
