# SPDX-License-Identifier: BSD-3-Clause
"""What chapters share: differentiable functions of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from torch_conformance.authoring.api import index

#: A differentiable function of one tensor of shape (2, 4), for derivatives of every kind.
Function = Callable[[Tensor], Tensor]


def _like(x: Tensor, *shape: int) -> Tensor:
    """Constant values of the dtype and device of `x`; not random, for torch.func's sake."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
    return (steps * 1.7 + 0.5).sin().to(x.device, x.dtype)


FUNCTIONS: dict[str, Function] = {
    "matmul": lambda x: x @ x.t(),
    "linear": lambda x: functional.linear(x, _like(x, 3, 4), _like(x, 3)).tanh(),
    "bmm": lambda x: torch.bmm(x.view(2, 2, 2), x.view(2, 2, 2).mT),
    "conv1d": lambda x: functional.conv1d(x.view(1, 2, 4), _like(x, 3, 2, 2)).square(),
    "conv2d": lambda x: functional.conv2d(x.view(1, 1, 2, 4), _like(x, 2, 1, 2, 2)).square(),
    "conv_transpose": lambda x: functional.conv_transpose1d(
        x.view(1, 2, 4), _like(x, 2, 3, 2)
    ).square(),
    "layer_norm": lambda x: functional.layer_norm(x, (4,), _like(x, 4), _like(x, 4)),
    "group_norm": lambda x: functional.group_norm(x, 2),
    "batch_norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "logsumexp": lambda x: x.logsumexp(1),
    "gelu": functional.gelu,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "sigmoid": torch.sigmoid,
    "pow": lambda x: x.abs().pow(2.5),
    "divide": lambda x: x / (x.square() + 1),
    "prod": lambda x: x.prod(1),
    "cumsum": lambda x: x.cumsum(1).square(),
    "cumprod": lambda x: x.cumprod(1),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "std": lambda x: x.std(1),
    "index": lambda x: x[:, index(x, 0, 2, 2)].square(),
    "gather": lambda x: x.gather(1, index(x, 3, 1).view(2, 1)).square(),
    "scatter_add": lambda x: (
        torch.zeros_like(x).scatter_add(1, index(x, 0, 1, 1, 3).expand(2, 4), x).square()
    ),
    "cat": lambda x: torch.cat([x, x.square()], 1).sin(),
    "where": lambda x: torch.where(x > 0, x.square(), x.sin()),
    "max": lambda x: x.max(1).values.square(),
    "sort": lambda x: x.sort(1).values.square(),
    "pool": lambda x: functional.avg_pool1d(x.view(1, 2, 4), 2).square(),
    "interpolate": lambda x: functional.interpolate(
        x.view(1, 2, 4), size=7, mode="linear"
    ).square(),
    "pad": lambda x: functional.pad(x, (1, 1), mode="reflect").square(),
    "as_strided": lambda x: x.as_strided((3, 2), (2, 1)).square(),
    "mse_loss": lambda x: functional.mse_loss(x, _like(x, 2, 4)),
    "cross_entropy": lambda x: functional.cross_entropy(x, index(x, 1, 3)),
    "attention": lambda x: _attention(x.view(1, 1, 4, 2)),
    "solve": lambda x: torch.linalg.solve(x.view(2, 2, 2).mT @ x.view(2, 2, 2) + _eye(x), _eye(x)),
    "det": lambda x: torch.linalg.det(x.view(2, 2, 2)),
}


def _attention(x: Tensor) -> Tensor:
    """By composition: fused kernels have no second derivative upstream either."""
    with sdpa_kernel(SDPBackend.MATH):
        return functional.scaled_dot_product_attention(x, x.sin(), x)


def _eye(x: Tensor) -> Tensor:
    return torch.eye(2, dtype=x.dtype, device=x.device).expand(2, 2, 2)
