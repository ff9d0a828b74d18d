# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: how many numbers are drawn, and their mean."""

from __future__ import annotations

import math

import torch

#: How many numbers are drawn to look at their distribution.
MANY = 40_000


def near(value: float, expected: float, deviation: float, count: int = MANY) -> bool:
    """Whether a mean of `count` values with that deviation is within six standard errors."""
    return abs(value - expected) <= 6 * deviation / math.sqrt(count)


def host_values(values: torch.Tensor) -> torch.Tensor:
    """The values on the CPU, in float64."""
    return values.cpu().double()
