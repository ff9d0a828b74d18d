# SPDX-License-Identifier: BSD-3-Clause
"""Operators that draw random numbers are called with wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import zeros_index
from torch_conformance.checks.contract._calls import Write, ones

#: Element types that a random distribution does not fill.
_UNFILLED: dict[str, tuple[Callable[[Tensor], Any], tuple[torch.dtype, ...]]] = {
    "log_normal": (lambda x: x.log_normal_(), (torch.int32, torch.bool, torch.complex64)),
    "cauchy": (lambda x: x.cauchy_(), (torch.int32, torch.bool, torch.complex64)),
    "exponential": (lambda x: x.exponential_(), (torch.int32, torch.bool, torch.complex64)),
    "geometric": (lambda x: x.geometric_(0.5), (torch.bool, torch.complex64)),
    "normal": (lambda x: x.normal_(), (torch.int32, torch.bool)),
    "uniform": (lambda x: x.uniform_(), (torch.int32, torch.bool)),
    "bernoulli": (lambda x: x.bernoulli_(0.5), (torch.complex64,)),
    "random": (lambda x: x.random_(), (torch.complex64,)),
}


def _filling(fill: Callable[[Tensor], Any], dtype: torch.dtype) -> Callable[[Tensor], Any]:
    return lambda x: fill(x.to(dtype))


RANDOM: dict[str, Write] = {
    **{
        f"{name}_of_{str(dtype).removeprefix('torch.')}": _filling(fill, dtype)
        for name, (fill, dtypes) in _UNFILLED.items()
        for dtype in dtypes
    },
    "multinomial_of_nothing": lambda x: x[0, :0].multinomial(1, replacement=True),
    "multinomial_none": lambda x: x.abs().multinomial(0),
    "multinomial_many": lambda x: x.abs().multinomial(5),
    "binomial_of_integers": lambda x: torch.binomial(zeros_index(x, 3), ones(x, 3)),
    "bernoulli_probability": lambda x: x.bernoulli(2.0),
    "normal_deviation": lambda x: x.clone().normal_(0.0, -1.0),
    "uniform_bounds": lambda x: x.clone().uniform_(2.0, 1.0),
    "exponential_rate": lambda x: x.clone().exponential_(-1.0),
    "geometric_probability": lambda x: x.clone().geometric_(0.0),
    "cauchy_scale": lambda x: x.clone().cauchy_(0.0, -1.0),
    "log_normal_deviation": lambda x: x.clone().log_normal_(0.0, -1.0),
    "random_bounds": lambda x: x.clone().random_(5, 5),
    "random_limit": lambda x: x.clone().random_(0),
    "dropout_probability": lambda x: functional.dropout(x, 2.0),
    "randint_bounds": lambda x: torch.randint(5, 5, (2,), device=x.device),
    "randperm_count": lambda x: torch.randperm(-1, device=x.device),
    "native_dropout_probability": lambda x: torch.native_dropout(x, 1.5, True),
    "multinomial_of_integers": lambda x: zeros_index(x, 3).multinomial(1),
    "random_of_range": lambda x: x.to(torch.int8).random_(0, 300),
    "random_from": lambda x: x.to(torch.uint8).random_(-3, 3),
    "randperm_dtype": lambda x: torch.randperm(300, dtype=torch.uint8, device=x.device),
}
