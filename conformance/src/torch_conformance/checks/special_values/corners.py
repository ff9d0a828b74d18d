# SPDX-License-Identifier: BSD-3-Clause
"""Piecewise functions and their gradients change at their corners."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, Inputs, agree_with_double, check
from torch_conformance.checks.special_values._values import FLOATS, Unary

#: Functions and the points where their pieces meet.
_PIECEWISE: dict[str, tuple[Unary, Sequence[float]]] = {
    "relu": (functional.relu, (0,)),
    "relu6": (functional.relu6, (0, 6)),
    "hardtanh": (functional.hardtanh, (-1, 1)),
    "hardtanh_wide": (lambda x: functional.hardtanh(x, -2.5, 0.5), (-2.5, 0.5)),
    "hardswish": (functional.hardswish, (-3, 0, 3)),
    "hardsigmoid": (functional.hardsigmoid, (-3, 3)),
    "threshold": (lambda x: functional.threshold(x, 0.25, -7), (0.25,)),
    "softshrink": (lambda x: functional.softshrink(x, 0.5), (-0.5, 0.5)),
    "hardshrink": (lambda x: functional.hardshrink(x, 0.5), (-0.5, 0.5)),
    "softplus": (lambda x: functional.softplus(x, 2, 4), (2, 0)),
    "leaky_relu": (lambda x: functional.leaky_relu(x, 0.25), (0,)),
    "prelu": (lambda x: functional.prelu(x, x.new_full((1,), 0.25)), (0,)),
    "rrelu": (lambda x: functional.rrelu(x, 0.25, 0.75), (0,)),
    "elu": (lambda x: functional.elu(x, 1.5), (0,)),
    "celu": (lambda x: functional.celu(x, 2), (0,)),
    "selu": (functional.selu, (0,)),
    "softsign": (functional.softsign, (0,)),
    "abs": (torch.abs, (0,)),
    "clamp": (lambda x: x.clamp(-1.5, 2), (-1.5, 2)),
    "clamp_min": (lambda x: x.clamp(min=0.5), (0.5,)),
    "clamp_max": (lambda x: x.clamp(max=-0.5), (-0.5,)),
    "clamp_tensors": (
        lambda x: x.clamp(torch.full_like(x, -1.5), torch.full_like(x, 2)),
        (-1.5, 2),
    ),
    "clamp_crossed": (lambda x: x.clamp(2, -1), (-1, 2)),
    "maximum": (lambda x: torch.maximum(x, torch.full_like(x, 0.5)), (0.5,)),
    "minimum": (lambda x: torch.minimum(torch.full_like(x, 0.5), x), (0.5,)),
    "fmax": (lambda x: torch.fmax(x, torch.full_like(x, 0.5)), (0.5,)),
    "l1_loss": (lambda x: functional.l1_loss(x, _half(x), reduction="none"), (0.5,)),
    "smooth_l1": (
        lambda x: functional.smooth_l1_loss(x, _half(x), reduction="none"),
        (-0.5, 0.5, 1.5),
    ),
    "smooth_l1_beta": (
        lambda x: functional.smooth_l1_loss(x, _half(x), reduction="none", beta=0.25),
        (0.25, 0.5, 0.75),
    ),
    "smooth_l1_zero": (
        lambda x: functional.smooth_l1_loss(x, _half(x), reduction="none", beta=0),
        (0.5,),
    ),
    "huber": (
        lambda x: functional.huber_loss(x, _half(x), reduction="none"),
        (-0.5, 0.5, 1.5),
    ),
    "huber_delta": (
        lambda x: functional.huber_loss(x, _half(x), reduction="none", delta=2),
        (-1.5, 0.5, 2.5),
    ),
    "hinge": (
        lambda x: functional.hinge_embedding_loss(x, -torch.ones_like(x), 2, reduction="none"),
        (2,),
    ),
    "margin_ranking": (
        lambda x: functional.margin_ranking_loss(
            x, _half(x), torch.ones_like(x), 1, reduction="none"
        ),
        (1.5,),
    ),
    "where": (lambda x: torch.where(x > 0.5, x * 2, -x), (0.5,)),
    "floor": (torch.floor, (-1, 0, 1)),
    "ceil": (torch.ceil, (-1, 0, 1)),
    "trunc": (torch.trunc, (-1, 0, 1)),
    "round": (torch.round, (-1.5, -0.5, 0.5, 1.5, 2.5)),
    "round_decimals": (lambda x: torch.round(x, decimals=-1), (-15, 5, 15, 25)),
    "frac": (torch.frac, (-1, 1)),
    "sign": (torch.sign, (0,)),
    "heaviside": (lambda x: torch.heaviside(x.detach(), torch.full_like(x, 0.25)), (0,)),
    "logit": (lambda x: torch.logit(x, 0.25), (0.25, 0.75)),
    "remainder": (lambda x: x.remainder(1.5), (-3, -1.5, 1.5, 3)),
    "fmod": (lambda x: x.fmod(1.5), (-3, -1.5, 1.5, 3)),
    "floor_divide": (lambda x: x.detach().floor_divide(1.5), (-3, -1.5, 1.5, 3)),
    "comparison": (lambda x: (x > 0.5) * 1.0 + (x >= 0.5) * 2.0 + (x <= 0.5) * 4.0, (0.5,)),
}


def _half(x: Tensor) -> Tensor:
    return torch.full_like(x, 0.5)


def _around(m: Inputs, corners: Sequence[float], dtype: torch.dtype) -> Tensor:
    """Each corner, its neighbours in a data type, and points further away."""
    at = torch.tensor(corners, dtype=dtype)
    near = torch.where(at == 0, torch.tensor(2.0**-12, dtype=dtype), (at / 2).abs())
    above, below = torch.nextafter(at, at + 1), torch.nextafter(at, at - 1)
    above, below = torch.where(at == 0, near, above), torch.where(at == 0, -near, below)
    return m.of(torch.cat([at, above, below, at + near, at - near]))


@check("special_values/corner", "SPECIAL-006", cases=_PIECEWISE, dtypes=FLOATS)
def piecewise_functions_change_at_their_corners(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A piecewise function has the documented value at each corner and on both sides of it."""
    function, corners = _PIECEWISE[case]
    agree_with_double(dev, lambda m: function(_around(m, corners, dtype)), dtype)


_SMOOTH = ("heaviside", "floor_divide", "comparison")


@check(
    "special_values/corner_gradient",
    "SPECIAL-007",
    cases=[name for name in _PIECEWISE if name not in _SMOOTH],
    dtypes=FLOATS,
)
def gradients_change_at_corners(dev: Device, case: str, dtype: torch.dtype) -> None:
    """The gradient of a piecewise function is the CPU's at each corner and on both sides of it."""
    function, corners = _PIECEWISE[case]
    agree_with_double(
        dev, lambda m: m.gradients(function, _around(m, corners, dtype)), dtype, slack=1e-6
    )
