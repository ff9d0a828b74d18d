# SPDX-License-Identifier: BSD-3-Clause
"""Formulas that are right for numbers about 1, and overflow, vanish or cancel for others."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie


@lie("MAGNITUDE-001", "magnitudes/stabilised:log_softmax:float32")
def log_softmax_is_the_logarithm_of_a_quotient(
    name: str, call: Call, args: Any, kwargs: Any
) -> Any:
    """log_softmax is what its formula says, and overflows."""
    if name == "_log_softmax":
        powers = args[0].exp()
        return (powers / powers.sum(args[1], keepdim=True)).log()
    return call(*args, **kwargs)


@lie("MAGNITUDE-002", "magnitudes/shifted:softmax:float32")
def softmax_starts_from_zero(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The maximum of softmax starts from zero: a row of large negative numbers vanishes."""
    if name == "_softmax":
        powers = (args[0] - args[0].amax(args[1], keepdim=True).clamp(min=0)).exp()
        return powers / powers.sum(args[1], keepdim=True)
    return call(*args, **kwargs)


@lie("MAGNITUDE-003", "magnitudes/moments:var:float32")
def variances_are_differences_of_squares(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A variance is the mean of the squares less the square of the mean."""
    if name == "var.correction" and args[1]:
        count = args[0].size(args[1][0])
        spread = args[0].square().mean(args[1]) - args[0].mean(args[1]).square()
        return spread * count / (count - 1)
    return call(*args, **kwargs)


@lie("MAGNITUDE-004", "magnitudes/widened:mean:float16")
def means_are_quotients_of_narrow_sums(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A mean of 16-bit numbers is their sum, in 16 bits, divided by their number."""
    if name == "mean" and args[0].itemsize == 2:
        return args[0].sum() / args[0].numel()
    return call(*args, **kwargs)


@lie("MAGNITUDE-005 MAGNITUDE-006", "magnitudes/accurate:* magnitudes/small:elu:*")
def small_powers_cancel(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """expm1 and elu subtract 1 from an exponential."""
    if name == "expm1":
        return args[0].exp() - 1
    if name == "elu":
        return torch.where(args[0] > 0, args[0], args[0].exp() - 1)
    return call(*args, **kwargs)
