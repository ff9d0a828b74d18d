# SPDX-License-Identifier: BSD-3-Clause
"""A NaN or an infinity in an incoming gradient reaches what it reaches on the CPU, and no more."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, Inputs, agree_with_double, check
from torch_conformance.checks.special_values._values import INF, NAN, Unary

# Gradients are operands, too. A kernel that multiplies by 0 where others select spreads a NaN, one
# that drops what is not finite hides a diverged training from GradScaler.


def _gradients(
    m: Inputs, function: Callable[..., Tensor], *inputs: Tensor, ends: tuple[float, float]
) -> list[Tensor]:
    """The gradients of a function where an incoming one is NaN, and the first and the last are
    `ends`."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    output = function(*leaves)
    incoming = m.whole(*output.shape, seed=9)
    flat = incoming.view(-1)
    flat[0], flat[flat.numel() // 2], flat[-1] = ends[0], NAN, ends[1]
    return list(torch.autograd.grad(output, leaves, incoming))


_ELEMENTWISE: dict[str, Unary] = {
    "relu": functional.relu,
    "relu6": functional.relu6,
    "hardtanh": functional.hardtanh,
    "leaky_relu": functional.leaky_relu,
    "threshold": lambda x: functional.threshold(x, 1.0, 2.0),
    "hardshrink": functional.hardshrink,
    "softshrink": functional.softshrink,
    "elu": functional.elu,
    "selu": functional.selu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": functional.softplus,
    "hardsigmoid": functional.hardsigmoid,
    "clamp": lambda x: x.clamp(-1, 2),
    "clamp_min": lambda x: x.clamp(min=0),
    "clamp_max": lambda x: x.clamp(max=0),
    "floor": torch.floor,
    "abs": torch.abs,
    "where": lambda x: torch.where(x > 0, x, 3.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, 3.0),
    "glu": lambda x: functional.glu(x, 1),
}


@check("special_values/nan_gradient", "SPECIAL-005", cases=_ELEMENTWISE)
def incoming_gradients_are_selected_or_multiplied(dev: Device, case: str) -> None:
    """The gradient of a function of elements is NaN, infinite or 0 where the CPU's is."""
    function = _ELEMENTWISE[case]
    agree_with_double(
        dev, lambda m: _gradients(m, function, m.whole(7, 20), ends=(-INF, INF)), rtol=1e-5
    )


#: name -> (function, shapes of its inputs). Without padding: a NaN times the zeros around an input
#: is NaN or nothing, by the algorithm.
_Layer = tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]
_LAYERS: dict[str, _Layer] = {
    "sum": (lambda x: x.sum(1), ((5, 7),)),
    "mean": (lambda x: x.mean(0), ((5, 7),)),
    "cumsum": (lambda x: x.cumsum(1), ((5, 7),)),
    "amax": (lambda x: x.amax(1), ((5, 7),)),
    "max": (lambda x: x.max(1).values, ((5, 7),)),
    "topk": (lambda x: x.topk(2, 1).values, ((5, 7),)),
    "gather": (lambda x: x.gather(1, x.argsort(1)[:, :3]), ((5, 7),)),
    "index_select": (lambda x: x.index_select(0, x[:, 0].argsort()[:3]), ((5, 7),)),
    "tril": (lambda x: x.tril(), ((5, 7),)),
    "expand": (lambda x: x.expand(6, 5, 7), ((5, 7),)),
    "cat": (lambda x, y: torch.cat([x, y], 1), ((5, 7), (5, 2))),
    "matmul": (torch.matmul, ((5, 7), (7, 3))),
    "bmm": (torch.bmm, ((4, 5, 7), (4, 7, 3))),
    "linear": (functional.linear, ((5, 7), (3, 7), (3,))),
    "embedding": (lambda w: functional.embedding(w[:5, 0].argsort(), w, 2), ((6, 3),)),
    "conv": (lambda x, w: functional.conv2d(x, w), ((2, 3, 6, 9), (4, 3, 3, 3))),
    "conv_of_channels": (
        lambda x, w: functional.conv2d(x, w, groups=6),
        ((2, 6, 9, 21), (6, 1, 3, 3)),
    ),
    "conv_in_steps": (
        lambda x, w: functional.conv2d(x, w, stride=2, groups=6),
        ((2, 6, 9, 21), (12, 1, 3, 3)),
    ),
    "conv_transposed": (
        lambda x, w: functional.conv_transpose2d(x, w),
        ((2, 3, 6, 9), (3, 4, 3, 3)),
    ),
    "max_pool": (lambda x: functional.max_pool2d(x, 3, 2, 1), ((2, 3, 8, 9),)),
    "avg_pool": (lambda x: functional.avg_pool2d(x, 3, 2, 1), ((2, 3, 8, 9),)),
    "adaptive_max_pool": (lambda x: functional.adaptive_max_pool2d(x, 3), ((2, 3, 8, 9),)),
    "adaptive_avg_pool": (lambda x: functional.adaptive_avg_pool2d(x, 3), ((2, 3, 8, 9),)),
    "interpolate": (lambda x: functional.interpolate(x, scale_factor=2), ((2, 3, 4, 5),)),
    "pad": (lambda x: functional.pad(x, (1, 2)), ((5, 7),)),
    "reflection_pad": (lambda x: functional.pad(x, (1, 2), mode="reflect"), ((5, 7),)),
    "replication_pad": (lambda x: functional.pad(x, (1, 2), mode="replicate"), ((5, 7),)),
    "softmax": (lambda x: x.softmax(1), ((5, 7),)),
    "log_softmax": (lambda x: x.log_softmax(1), ((5, 7),)),
    "layer_norm": (lambda x, w: functional.layer_norm(x, (7,), w), ((5, 7), (7,))),
    "group_norm": (lambda x, w: functional.group_norm(x, 2, w), ((3, 4, 5), (4,))),
    "batch_norm": (
        lambda x, w: functional.batch_norm(x, None, None, w, training=True),
        ((5, 4, 3), (4,)),
    ),
    "mse_loss": (
        lambda x, y: functional.mse_loss(x, y, reduction="none"),
        ((5, 7), (5, 7)),
    ),
    "smooth_l1_loss": (
        lambda x, y: functional.smooth_l1_loss(x, y, reduction="none"),
        ((5, 7), (5, 7)),
    ),
    "nll_loss": (
        lambda x: functional.nll_loss(x, x.argmin(1), reduction="none", ignore_index=3),
        ((8, 6),),
    ),
    "attention": (
        lambda q, k, v: functional.scaled_dot_product_attention(q / 3, k, v),
        ((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 4)),
    ),
}


@check("special_values/nan_gradient_of", "SPECIAL-005", cases=_LAYERS)
def incoming_gradients_reach_the_elements_that_they_belong_to(dev: Device, case: str) -> None:
    """The gradients of a layer are NaN where the CPU's are, and right elsewhere."""
    function, shapes = _LAYERS[case]

    def program(m: Inputs) -> list[Tensor]:
        inputs = [m.steps(*shape, seed=seed) for seed, shape in enumerate(shapes)]
        return _gradients(m, function, *inputs, ends=(2.0, -1.0))

    agree_with_double(dev, program, rtol=1e-5)
