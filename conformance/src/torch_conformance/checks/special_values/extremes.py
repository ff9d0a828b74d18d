# SPDX-License-Identifier: BSD-3-Clause
"""Functions of very large and very small numbers, infinities and NaN have the right values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, Inputs, check, tensors
from torch_conformance.checks.special_values._values import (
    FLOATS,
    INF,
    NAN,
    Binary,
    Unary,
    Work,
)

#: Of the range of each type: what does not overflow when it is squared in a wider one.
_EXTREME = {
    torch.float16: (6e4, 6.104e-05, 3e3, 1e-3),
    torch.bfloat16: (1e30, 1e-30, 1e10, 1e-10),
    torch.float32: (1e30, 1e-30, 1e10, 1e-10),
    torch.float64: (1e300, 1e-300, 1e30, 1e-30),
}


def _extremes(m: Inputs, dtype: torch.dtype) -> Tensor:
    numbers = [*_EXTREME[dtype], 1.0, 0.0, INF]
    values = torch.tensor([sign * n for n in numbers for sign in (1, -1)] + [NAN], dtype=dtype)
    return m.of(values)


def _not_small(x: Tensor) -> Tensor:
    return torch.where(x.abs() < 1, torch.ones_like(x), x)


_NAMES = (
    *("abs", "neg", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
    *("reciprocal", "square", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "sigmoid", "erfc", "floor", "ceil", "round", "trunc", "relu", "isnan"),
    *("isinf", "isfinite", "isposinf", "isneginf", "signbit", "logical_not", "sin", "cos", "tan"),
)
_OF_EXTREMES: dict[str, Unary] = {
    **{name: getattr(torch, name) for name in _NAMES},
    **{
        name: getattr(functional, name)
        for name in (
            *("silu", "softplus", "mish", "logsigmoid", "hardtanh", "relu6", "hardswish"),
            *("hardsigmoid", "elu", "celu", "selu", "leaky_relu", "softshrink", "hardshrink"),
            "softsign",
        )
    },
    **{
        name: getattr(torch.special, name)
        for name in ("entr", "erfinv", "gammaln", "i0e", "i1e", "logit", "ndtr", "psi")
    },
    # The CPU's vectors compute erf of small numbers as zero, and gelu of infinity as NaN.
    "erf": lambda x: _not_small(x).erf(),
    "gelu": lambda x: functional.gelu(_not_small(x).nan_to_num(NAN, 9, -9)),
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "bool": lambda x: x.bool(),
    "nan_to_num": lambda x: x.nan_to_num(1.0, 2.0, 3.0),
    "threshold": lambda x: functional.threshold(x, 1e-3, 7.0),
    "xlogy": lambda x: torch.xlogy(torch.zeros_like(x), x),
}


@check("special_values/extreme", "SPECIAL-004", cases=_OF_EXTREMES, dtypes=FLOATS)
def functions_of_extreme_values_neither_overflow_nor_vanish(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """A function of very large and very small numbers, infinities and NaN has the right value."""
    _agree_relatively(dev, lambda m: _OF_EXTREMES[case](_extremes(m, dtype)), dtype)


def _agree_relatively(dev: Device, work: Work, dtype: torch.dtype) -> None:
    """Compare with double precision; small results must be as precise as large ones."""
    expected = tensors(work(Inputs(torch.device("cpu"), torch.float64)))
    actual = tensors(work(Inputs(dev.device(), dtype)))
    for got, wanted in zip(actual, expected, strict=True):
        if not wanted.is_floating_point():
            dev.assert_equal(got, wanted)
            continue
        rtol = max(dev.tolerance(got.dtype)[0], 8 * torch.finfo(got.dtype).eps)
        tiny = torch.finfo(got.dtype).smallest_normal
        dev.assert_close(got, wanted.to(got.dtype), rtol=rtol, atol=tiny)


_OF_EXTREME_PAIRS: dict[str, Binary] = {
    name: getattr(torch, name)
    for name in (
        *("add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "pow"),
        *("atan2", "copysign", "hypot", "logaddexp", "eq", "ne", "lt", "le", "gt", "ge", "xlogy"),
        *("logical_and", "logical_or", "logical_xor", "heaviside"),
    )
}


@check("special_values/extreme_pair", "SPECIAL-004", cases=_OF_EXTREME_PAIRS, dtypes=FLOATS)
def operators_on_extreme_values_neither_overflow_nor_vanish(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """An operator on pairs of large and small numbers, infinities and NaN has the right value."""

    def work(m: Inputs) -> Any:
        x = _extremes(m, dtype)
        return _OF_EXTREME_PAIRS[case](x[:, None], x)

    _agree_relatively(dev, work, dtype)


#: Neighbours of these, towards each other, are found by their bits.
_STEPPED = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0, 1.5, INF, -INF, NAN)


@check("special_values/nextafter", "SPECIAL-004", dtypes=FLOATS)
def neighbours_are_the_next_numbers(dev: Device, dtype: torch.dtype) -> None:
    """nextafter gives the next number of the type, around zero, powers of two and the limits."""
    info = torch.finfo(dtype)
    least, tiny = info.smallest_normal * info.eps, info.smallest_normal
    edges = [sign * n for n in (least, 2 * least, tiny, tiny - least, info.max) for sign in (1, -1)]
    x = torch.tensor([*_STEPPED, *edges], dtype=torch.float64).to(dtype)
    there = x.to(dev.device())
    dev.assert_equal(torch.nextafter(there[:, None], there), torch.nextafter(x[:, None], x))
