# SPDX-License-Identifier: BSD-3-Clause
"""Zeros have the sign that IEEE 754 gives them, and negative ones are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, Inputs, check, tensors
from torch_conformance.checks.special_values._values import FLOATS, INF, Unary, Work


def _same_zeros(dev: Device, dtype: torch.dtype, work: Work) -> None:
    """What is zero in double precision is zero of the same sign on the device."""
    expected = tensors(work(Inputs(torch.device("cpu"), torch.float64)))
    actual = tensors(work(Inputs(dev.device(), dtype)))
    for got, wanted in zip(actual, expected, strict=True):
        zero = wanted == 0
        values = dev.cpu(got)[zero]
        assert zero.any(), "the CPU computes no zero"
        assert bool((values == 0).all()), f"{values[values != 0].tolist()} instead of zero"
        wrong = values.signbit() != wanted[zero].signbit()
        assert not wrong.any(), f"zeros of the other sign at {zero.nonzero()[wrong].tolist()}"


_ODD: dict[str, Unary] = {
    name: getattr(torch, name)
    for name in (
        *("neg", "sqrt", "floor", "ceil", "trunc", "round", "sin", "tan", "asin", "atan", "sinh"),
        *(
            "tanh",
            "asinh",
            "atanh",
            "expm1",
            "log1p",
            "erf",
            "erfinv",
            "deg2rad",
            "positive",
            "abs",
        ),
        "square",
    )
}


def _of_zeros(function: Unary) -> Work:
    return lambda m: function(m.of([-0.0, 0.0]))


#: Of (-0.0, 0.0) and numbers that are rounded to zero.
_SIGNED_ZEROS: dict[str, Work] = {
    **{name: _of_zeros(function) for name, function in _ODD.items()},
    "rounded": lambda m: [
        m.of([-0.25, 0.25, -0.5, 0.5]).round(),
        m.of([-0.25, -0.75]).ceil(),
        m.of([-0.25, 0.75]).trunc(),
    ],
    "reciprocal": lambda m: [m.of([-INF, INF]).reciprocal(), 1 / m.of([-INF, INF])],
    "add": lambda m: _pairs(m, torch.add),
    "sub": lambda m: _pairs(m, torch.sub),
    "mul": lambda m: _pairs(m, torch.mul),
    "div": lambda m: m.of([-0.0, 0.0])[:, None] / m.of([1, -1, INF, -INF]),
    "scalar": lambda m: [m.of([-0.0, 0.0]) * -2, m.of([0.0, -0.0]) - 0.0, -0.0 - m.of([0.0, -0.0])],
    "fmod": lambda m: m.of([-0.0, 0.0, -6.0, 6.0])[:, None].fmod(m.of([3, -3, INF])),
    "atan2": lambda m: torch.atan2(m.of([-0.0, 0.0]), m.of([1.0, 2.0])),
    "copysign": lambda m: torch.copysign(m.of([0.0, -0.0])[:, None], m.of([-0.0, 0.0, -1, 1])),
    "power": lambda m: m.of([-0.0, 0.0])[:, None].pow(m.of([1.0, 2.0, 3.0, 5.0])),
    "ldexp": lambda m: torch.ldexp(m.of([-0.0, 0.0]), m.of([3.0, 3.0])),
    "clamp": lambda m: m.of([-0.0, 0.0]).clamp(-1, 1),
    "leaky_relu": lambda m: functional.leaky_relu(m.of([-0.0, 0.0]), 0.5),
    "lists": lambda m: torch._foreach_mul([m.of([-0.0, 0.0]), m.of([0.0])], -1.0),
}


def _pairs(m: Inputs, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    values = m.of([-0.0, 0.0, 1.0, -1.0])
    return function(values[:, None], values)


@check("special_values/zero", "SPECIAL-001", cases=_SIGNED_ZEROS, dtypes=FLOATS)
def zeros_have_their_sign(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A result that is exactly zero has the sign that IEEE 754 gives it."""
    _same_zeros(dev, dtype, _SIGNED_ZEROS[case])


#: Writing a negative zero is not zeroing memory.
_WRITTEN_ZEROS: dict[str, Work] = {
    "fill": lambda m: m.whole(33).fill_(-0.0),
    "fill_tensor": lambda m: m.whole(33).fill_(m.of(-0.0)),
    "full": lambda m: torch.full((33,), -0.0, dtype=m.dtype, device=m.device),
    "full_like": lambda m: torch.full_like(m.whole(33), -0.0),
    "new_full": lambda m: m.whole(33).new_full((3,), -0.0),
    "assigned": lambda m: _assigned(m.whole(33), slice(1, 30, 2), -0.0)[1:30:2],
    "assigned_index": lambda m: _assigned(m.whole(33), m.order(33), -0.0),
    "masked_fill": lambda m: m.whole(33).masked_fill(m.whole(33) < 9, -0.0),
    "index_fill": lambda m: m.whole(33).index_fill(0, m.order(33), -0.0),
    "scatter": lambda m: m.whole(33).scatter(0, m.order(33), -0.0),
    "where": lambda m: torch.where(m.whole(33) < 9, -0.0, m.whole(33)),
    "pad": lambda m: functional.pad(m.whole(3), (5, 5), value=-0.0)[:5],
    "tensor": lambda m: torch.tensor([-0.0, 0.0], dtype=m.dtype, device=m.device),
    "foreach": lambda m: torch._foreach_mul([m.of([0.0]), m.of([0.0])], [-1.0, 1.0]),
}


def _assigned(target: Tensor, index: Any, value: float) -> Tensor:
    target[index] = value
    return target


@check("special_values/written_zero", "SPECIAL-001", cases=_WRITTEN_ZEROS, dtypes=FLOATS)
def negative_zeros_are_written(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A fill with negative zero writes negative zeros."""
    _same_zeros(dev, dtype, _WRITTEN_ZEROS[case])
