# SPDX-License-Identifier: BSD-3-Clause
"""An operator that is called in place has its gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, agree, check, index, leaf, noise, zeros_index
from torch_conformance.checks.contract._calls import Between

#: An in-place call on `x`, with another tensor `y` of its shape; both have gradients.
_IN_PLACE: dict[str, Between] = {
    "add": lambda x, y: x.add_(y, alpha=-1.75),
    "sub": lambda x, y: x.sub_(y, alpha=2.5),
    "sub_number": lambda x, y: x.sub_(1.5, alpha=2.5),
    "mul": lambda x, y: x.mul_(y),
    "mul_row": lambda x, y: x.mul_(y[:1]),
    "div": lambda x, y: x.div_(y.abs() + 1),
    "div_trunc": lambda x, y: x.div_(0.3, rounding_mode="trunc"),
    "pow_number": lambda x, y: x.abs_().add_(1).pow_(2.5),
    "pow": lambda x, y: x.abs_().add_(1).pow_(y),
    "addcmul": lambda x, y: x.addcmul_(y, y.sin(), value=-0.7),
    "addcdiv": lambda x, y: x.addcdiv_(y, y.abs() + 1, value=1.7),
    "lerp": lambda x, y: x.lerp_(y, 0.3),
    "lerp_beyond": lambda x, y: x.lerp_(y, 1.6),
    "lerp_tensor": lambda x, y: x.lerp_(y, y.sigmoid()),
    "clamp": lambda x, y: x.clamp_(-0.4, 0.6),
    "clamp_min": lambda x, y: x.clamp_(min=-0.2),
    "clamp_max": lambda x, y: x.clamp_(max=0.2),
    "clamp_crossed": lambda x, y: x.clamp_(0.6, -0.4),
    "clamp_tensors": lambda x, y: x.clamp_(y - 0.5, y + 0.5),
    "leaky_relu": lambda x, y: functional.leaky_relu_(x, 0.3),
    "elu": lambda x, y: functional.elu_(x, 1.7),
    "elu_scaled": lambda x, y: torch.ops.aten.elu_(x, 1.7, 0.6, 0.4),
    "celu": lambda x, y: torch.celu_(x, 2.5),
    "selu": lambda x, y: torch.selu_(x),
    "hardtanh": lambda x, y: functional.hardtanh_(x, -0.3, 0.7),
    "relu6": lambda x, y: functional.relu6(x, inplace=True),
    "threshold": lambda x, y: functional.threshold(x, 0.4, -3.0, inplace=True),
    "rrelu_evaluation": lambda x, y: functional.rrelu_(x, 0.1, 0.5, False),
    "hardswish": lambda x, y: functional.hardswish(x, inplace=True),
    "hardsigmoid": lambda x, y: functional.hardsigmoid(x, inplace=True),
    "silu": lambda x, y: functional.silu(x, inplace=True),
    "mish": lambda x, y: functional.mish(x, inplace=True),
    "relu": lambda x, y: x.relu_(),
    "abs": lambda x, y: x.abs_(),
    "square": lambda x, y: x.square_(),
    "sqrt": lambda x, y: x.abs_().add_(1).sqrt_(),
    "rsqrt": lambda x, y: x.abs_().add_(1).rsqrt_(),
    "reciprocal": lambda x, y: x.abs_().add_(1).reciprocal_(),
    "exp": lambda x, y: x.exp_(),
    "expm1": lambda x, y: x.expm1_(),
    "log": lambda x, y: x.abs_().add_(1).log_(),
    "log1p": lambda x, y: x.abs_().log1p_(),
    "sin": lambda x, y: x.sin_(),
    "tanh": lambda x, y: x.tanh_(),
    "sigmoid": lambda x, y: x.sigmoid_(),
    "logit": lambda x, y: x.mul_(0.1).add_(0.5).logit_(0.45),
    "atan2": lambda x, y: x.atan2_(y),
    "hypot": lambda x, y: x.hypot_(y),
    "xlogy": lambda x, y: x.xlogy_(y.abs() + 1),
    "fmod": lambda x, y: x.fmod_(0.4),
    "remainder": lambda x, y: x.remainder_(y.abs() + 1),
    "nan_to_num": lambda x, y: x.div_((x > 0).float()).nan_to_num_(2.0, 3.0, -4.0),
    "masked_fill": lambda x, y: x.masked_fill_(y > 0, -3.0),
    "masked_scatter": lambda x, y: x.masked_scatter_(y > 0, y.cos()),
    "index_fill": lambda x, y: x.index_fill_(1, index(x, 3, 0), 2.5),
    "index_add": lambda x, y: x.index_add_(1, index(x, 3, 0, 3), y[:, :3], alpha=1.5),
    "index_copy": lambda x, y: x.index_copy_(1, index(x, 3, 0), y[:, :2]),
    "index_put": lambda x, y: x.index_put_((index(x, 2, 0),), y[:2]),
    "index_put_added": lambda x, y: x.index_put_((index(x, 2, 2),), y[:2], accumulate=True),
    "scatter": lambda x, y: x.scatter_(1, index(x, 3, 0, 1, 2).expand(4, 4), y),
    "scatter_add": lambda x, y: x.scatter_add_(1, zeros_index(x, 4, 4), y),
    "copy": lambda x, y: x.copy_(y[:1]),
    "fill": lambda x, y: x.fill_(y.sum()),
    "zero": lambda x, y: x[1:].zero_(),
    "cumsum": lambda x, y: x.cumsum_(1),
    "cumprod": lambda x, y: x.cumprod_(0),
    "tril": lambda x, y: x.tril_(1),
    "triu": lambda x, y: x.triu_(-1),
    "renorm": lambda x, y: x.renorm_(2, 1, 0.5),
    "addmm": lambda x, y: x.addmm_(y, y.t() @ y, beta=0.5, alpha=-2),
    "addmv": lambda x, y: x[0].addmv_(y.t() @ y, y[1], beta=0.5, alpha=-2),
    "addr": lambda x, y: x.addr_(y[:, 0], y[0], beta=0.5, alpha=-2),
    "addbmm": lambda x, y: x.addbmm_(y[None], (y.t() @ y)[None], beta=0.5, alpha=-2),
    "baddbmm": lambda x, y: x[None].baddbmm_(y[None], (y.t() @ y)[None], beta=0.5, alpha=-2),
    "foreach_addcmul": lambda x, y: torch._foreach_addcmul_([x], [y], [y], value=-0.7),
    "foreach_lerp": lambda x, y: torch._foreach_lerp_([x], [y], 0.3),
}

#: What the call changes, a result of 6 x 6: its memory, or a part of it by a view.
_TARGETS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x[:4, :4].mul(1),
    lambda x: x.t()[1:5, 1:5],
)


@check("contract/in_place_gradient", "CONTRACT-006", cases=_IN_PLACE)
def in_place_calls_have_gradients(dev: Device, case: str) -> None:
    """Called in place with arguments of its own, also on a view, an operator has its gradients."""

    def program(device: torch.device) -> list[Tensor]:
        results = []
        for target in _TARGETS:
            x, y = leaf(device, 6, 6), leaf(device, 4, 4, seed=1)
            whole = x * 1.25
            changed = target(whole)
            _IN_PLACE[case](changed, y)
            results += [*_gradients(changed, x, y), *_gradients(whole, x, y)]
        return results

    agree(dev, program, rtol=1e-5, atol=1e-5)


def _gradients(output: Tensor, *inputs: Tensor) -> list[Tensor]:
    """The output and its gradients, zero for what it does not depend on; the graph stays."""
    weight = noise(output.shape, seed=9).to(output.device)
    found = torch.autograd.grad(
        output, inputs, weight, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return [output, *found]
