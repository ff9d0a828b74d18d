# SPDX-License-Identifier: BSD-3-Clause
"""An autograd.Function of one's own: several results, in-place work, jvp, one derivative only."""

from __future__ import annotations

from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor

from torch_conformance.authoring.api import Device, Program, agree, check, gradients, leaf, raised


class _Several(torch.autograd.Function):
    """Two results, one of them without a gradient; a constant argument; a saved result."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Any:
        y, sign = (x * factor).exp(), x.sign()
        ctx.mark_non_differentiable(sign)
        ctx.save_for_backward(y)
        ctx.factor = factor
        return y, sign

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (y,) = ctx.saved_tensors
        return gradients[0] * y * ctx.factor, None


class _Dirty(torch.autograd.Function):
    """Doubles its argument in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 2


class _Transformable(torch.autograd.Function):
    """A cube with a derivative in forward mode."""

    @staticmethod
    def forward(x: Tensor) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradients[0] * 3 * x**2

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        (x,) = ctx.saved_tensors
        return tangents[0] * 3 * x**2


class _Once(torch.autograd.Function):
    """Its backward cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 2


def _several(device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3)
    y, sign = _Several.apply(x, 0.5)
    assert not sign.requires_grad
    return [sign, *gradients(y, x)]


def _dirty(device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3)
    y = x * 1
    _Dirty.apply(y)
    return gradients(y, x)


def _double(device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3)
    (first,) = torch.autograd.grad(_Transformable.apply(x).sum(), x, create_graph=True)
    return [first, *torch.autograd.grad(first.sum(), x)]


def _forward_mode(device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3).detach()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        tangent = forward_ad.unpack_dual(_Transformable.apply(dual)).tangent
        assert tangent is not None
        return [tangent]


_OWN: dict[str, Program] = {
    "several": _several,
    "dirty": _dirty,
    "double": _double,
    "forward_mode": _forward_mode,
}


@check("autograd/function", "GRAD-013", cases=_OWN)
def functions_of_ones_own_agree(dev: Device, case: str) -> None:
    """autograd.Function with several results, in-place work, setup_context and jvp agrees."""
    agree(dev, _OWN[case], rtol=1e-4, atol=1e-5)


@check("autograd/function_once", "GRAD-013")
def a_backward_that_is_not_differentiable_says_so(dev: Device) -> None:
    """once_differentiable raises when its gradient is differentiated."""
    x = leaf(dev.device(), 3)
    (first,) = torch.autograd.grad(_Once.apply(x).sum(), x, create_graph=True)
    error = raised(lambda: torch.autograd.grad(first.sum(), x))
    assert isinstance(error, RuntimeError)
