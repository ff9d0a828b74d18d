# SPDX-License-Identifier: BSD-3-Clause
"""What chapters share: how well drawn numbers agree with a distribution."""

from __future__ import annotations

import math

from torch import Tensor

#: How many numbers are drawn to look at their distribution.
MANY = 40_000


def near(value: float, expected: float, deviation: float, count: int = MANY) -> bool:
    """Whether a mean of `count` values with that deviation is within six standard errors."""
    return abs(value - expected) <= 6 * deviation / math.sqrt(count)


def host_values(values: Tensor) -> Tensor:
    """The values on the CPU, in float64."""
    return values.cpu().double()


def assert_chi_square(counts: Tensor, weights: Tensor) -> None:
    """Counts of categories agree with their weights; the limit is Wilson and Hilferty's."""
    __tracebackhide__ = True
    expected = weights.double() / weights.double().sum() * counts.sum()
    freedom = max(int((expected > 0).sum()) - 1, 0)
    assert int(counts[expected == 0].sum()) == 0, "a category of weight zero was drawn"
    if freedom == 0:
        return
    used = expected > 0
    statistic = float(((counts - expected)[used] ** 2 / expected[used]).sum())
    spread = 2 / (9 * freedom)
    limit = freedom * (1 - spread + 4.9 * math.sqrt(spread)) ** 3
    assert statistic < limit, f"chi-square {statistic:.1f}, allowed {limit:.1f}: {counts.tolist()}"
