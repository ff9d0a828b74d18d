# SPDX-License-Identifier: BSD-3-Clause
"""What chapters share: random operators, and what a few of them need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

Draw = Callable[[torch.device, torch.Generator | None], torch.Tensor]

_N = 64


def _empty(device: torch.device, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(_N, dtype=dtype, device=device)


def _pairs(device: torch.device) -> torch.Tensor:
    """As many channels as other draws have elements."""
    return torch.ones(1, _N, 2, device=device)


def _attended(x: torch.Tensor) -> torch.Tensor:
    """Attention with dropout on its weights."""
    return functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


def _recurrent(device: torch.device, kind: Callable[..., Any], **options: Any) -> torch.Tensor:
    """Two layers with dropout between them; their weights are all alike and not random."""
    layers = kind(2, 8, num_layers=2, dropout=0.5, device=device, **options)
    for parameter in layers.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    out: torch.Tensor = layers(torch.ones(8, 1, 2, device=device))[0]
    return out.detach()


#: What a few of the random operators need beside a generator.
DRAW_NEEDS = {"rand_float16": "float16"}

#: Random operators that take a generator. 64 elements: two draws are not equal by chance.
DRAWS: dict[str, Draw] = {
    "rand": lambda d, g: torch.rand(_N, device=d, generator=g),
    "randn": lambda d, g: torch.randn(_N, device=d, generator=g),
    "randint": lambda d, g: torch.randint(0, 1000, (_N,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(_N, device=d, generator=g),
    "uniform": lambda d, g: _empty(d).uniform_(-1, 3, generator=g),
    "normal": lambda d, g: _empty(d).normal_(1, 2, generator=g),
    "normal_tensors": lambda d, g: torch.normal(_empty(d), _empty(d) + 2, generator=g),
    "exponential": lambda d, g: _empty(d).exponential_(0.5, generator=g),
    "cauchy": lambda d, g: _empty(d).cauchy_(generator=g),
    "log_normal": lambda d, g: _empty(d).log_normal_(generator=g),
    "geometric": lambda d, g: _empty(d).geometric_(0.05, generator=g),
    "random": lambda d, g: _empty(d, torch.int64).random_(0, 1000, generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(_empty(d) + 0.5, generator=g),
    "bernoulli_inplace": lambda d, g: _empty(d).bernoulli_(0.5, generator=g),
    "multinomial": lambda d, g: torch.multinomial(_empty(d) + 1, _N, True, generator=g),
    "poisson": lambda d, g: torch.poisson(_empty(d) + 40, generator=g),
    "rand_out": lambda d, g: torch.rand(_N, generator=g, out=_empty(d)),
    "rand_float16": lambda d, g: torch.rand(_N, device=d, generator=g, dtype=torch.float16),
    "randint_below": lambda d, g: torch.randint(1000, (_N,), device=d, generator=g),
    "random_all": lambda d, g: _empty(d, torch.int64).random_(generator=g),
    "random_below": lambda d, g: _empty(d, torch.int64).random_(1000, generator=g),
    "normal_numbers": lambda d, g: torch.normal(1.0, 2.0, (_N,), device=d, generator=g),
    "normal_mean": lambda d, g: torch.normal(_empty(d), 2.0, generator=g),
    "normal_deviation": lambda d, g: torch.normal(1.0, _empty(d) + 2, generator=g),
    "bernoulli_number": lambda d, g: torch.bernoulli(_empty(d), 0.5, generator=g),
    "bernoulli_chances": lambda d, g: _empty(d).bernoulli_(_empty(d) + 0.5, generator=g),
    "multinomial_once": lambda d, g: torch.multinomial(_empty(d) + 1, _N, generator=g),
    "binomial": lambda d, g: torch.binomial(_empty(d) + 100, _empty(d) + 0.5, generator=g),
    "gamma": lambda d, g: torch._standard_gamma(_empty(d) + 3, generator=g),
    "dirichlet": lambda d, g: torch._sample_dirichlet(_empty(d) + 2, generator=g),
    "uniform_functional": lambda d, g: torch.ops.aten.uniform(_empty(d), generator=g),
    "normal_functional": lambda d, g: torch.ops.aten.normal_functional(_empty(d), generator=g),
    "exponential_functional": lambda d, g: torch.ops.aten.exponential(_empty(d), generator=g),
    "cauchy_functional": lambda d, g: torch.ops.aten.cauchy(_empty(d), generator=g),
    "log_normal_functional": lambda d, g: torch.ops.aten.log_normal(_empty(d), generator=g),
    "geometric_functional": lambda d, g: torch.ops.aten.geometric(_empty(d), 0.05, generator=g),
    "random_functional": lambda d, g: torch.ops.aten.random(
        _empty(d, torch.int64), 1000, generator=g
    ),
    "rrelu_with_noise": lambda d, g: torch.ops.aten.rrelu_with_noise(
        _empty(d) - 1, _empty(d), training=True, generator=g
    ),
    "rrelu_with_noise_inplace": lambda d, g: torch.ops.aten.rrelu_with_noise_(
        _empty(d) - 1, _empty(d), training=True, generator=g
    ),
    "rrelu_with_noise_functional": lambda d, g: torch.ops.aten.rrelu_with_noise_functional(
        _empty(d) - 1, _empty(d), training=True, generator=g
    )[0],
}

#: Random operators that always use the default generator.
IMPLICIT: dict[str, Draw] = {
    "rand_like": lambda d, g: torch.rand_like(_empty(d)),
    "randn_like": lambda d, g: torch.randn_like(_empty(d)),
    "randint_like": lambda d, g: torch.randint_like(_empty(d), 0, 1000),
    "dropout": lambda d, g: functional.dropout(_empty(d) + 1, 0.5),
    "alpha_dropout": lambda d, g: functional.alpha_dropout(_empty(d) + 1, 0.5, training=True),
    "dropout1d": lambda d, g: functional.dropout1d(torch.ones(_N, 2, device=d), 0.5),
    "rrelu": lambda d, g: functional.rrelu(_empty(d) - 1, training=True),
    "gumbel_softmax": lambda d, g: functional.gumbel_softmax(_empty(d)),
    "trunc_normal": lambda d, g: torch.nn.init.trunc_normal_(_empty(d)),
    "rrelu_inplace": lambda d, g: torch.rrelu_(_empty(d) - 1, training=True),
    "dropout_inplace": lambda d, g: torch.dropout_(_empty(d) + 1, 0.5, True),
    "alpha_dropout_inplace": lambda d, g: torch.alpha_dropout_(_empty(d) + 1, 0.5, True),
    "feature_dropout_inplace": lambda d, g: torch.feature_dropout_(_pairs(d), 0.5, True),
    "feature_alpha_dropout": lambda d, g: torch.feature_alpha_dropout(_pairs(d), 0.5, True),
    "feature_alpha_dropout_inplace": lambda d, g: torch.feature_alpha_dropout_(
        _pairs(d), 0.5, True
    ),
    "native_dropout": lambda d, g: torch.native_dropout(_empty(d) + 1, 0.5, True)[0],
    "attention_dropout": lambda d, g: _attended(_empty(d).view(1, 1, 8, 8) + 1),
    "lstm_dropout": lambda d, g: _recurrent(d, torch.nn.LSTM),
    "gru_dropout": lambda d, g: _recurrent(d, torch.nn.GRU),
    "rnn_tanh_dropout": lambda d, g: _recurrent(d, torch.nn.RNN),
    "rnn_relu_dropout": lambda d, g: _recurrent(d, torch.nn.RNN, nonlinearity="relu"),
}

ALL = {**DRAWS, **IMPLICIT}
