# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of random activations use the numbers that were drawn in forward."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check, noise

#: Random functions that multiply each element of an image by a random number.
_SCALING: dict[str, Callable[[Tensor], Tensor]] = {
    "rrelu": lambda x: functional.rrelu(x, 0.1, 0.6, training=True),
    "rrelu_in_place": lambda x: functional.rrelu_(x * 1, 0.1, 0.6, training=True),
    "dropout": lambda x: functional.dropout(x, 0.4),
    "dropout_in_place": lambda x: functional.dropout(x * 1, 0.4, inplace=True),
    "native_dropout": lambda x: torch.native_dropout(x, 0.4, True)[0],
    "dropout1d": lambda x: functional.dropout1d(x.flatten(2), 0.4).view(x.shape),
    "dropout2d": lambda x: functional.dropout2d(x, 0.4),
    "feature_dropout_in_place": lambda x: torch.feature_dropout_(x * 1, 0.4, True),
}


@check(
    "random/gradient",
    "RAND-016",
    needs=("generator",),
    cases=_SCALING,
    dtypes=("float32", "bfloat16"),
)
def gradients_use_the_numbers_of_forward(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A random activation multiplies value and gradient by the same number, each time it is asked.

    The inputs are strided one way and the other.
    """
    dev.require(*{str(dtype).removeprefix("torch.")} & {"bfloat16"})
    given, weight = noise((6, 5, 7, 3)).to(dtype), noise((6, 5, 7, 3), seed=1).to(dtype)
    torch.manual_seed(76)
    for image in (given, given.contiguous(memory_format=torch.channels_last)):
        x = image.to(dev.device()).requires_grad_()
        out = _SCALING[case](x)
        expected = dev.cpu(out.detach()).double() * weight.double()
        for _ in range(2):
            (gradient,) = torch.autograd.grad(out, x, weight.to(dev.device()), retain_graph=True)
            scaled = dev.cpu(gradient).double() * given.double()
            loose = 4 * torch.finfo(dtype).eps
            dev.assert_close(scaled, expected, rtol=loose, atol=loose * 1e-3)


#: Random functions that keep an element, scaled and shifted, or replace it by a constant.
_REPLACING: dict[str, Callable[[Tensor], Tensor]] = {
    "alpha_dropout": lambda x: functional.alpha_dropout(x, 0.4, training=True),
    "alpha_dropout_in_place": lambda x: torch.alpha_dropout_(x * 1, 0.4, True),
    "feature_alpha_dropout": lambda x: functional.feature_alpha_dropout(x, 0.4, training=True),
    "feature_alpha_dropout_in_place": lambda x: torch.feature_alpha_dropout_(x * 1, 0.4, True),
}


@check("random/gradient_replaced", "RAND-016", needs=("generator",), cases=_REPLACING)
def gradients_of_replaced_elements_are_zero(dev: Device, case: str) -> None:
    """Alpha dropout has the gradient zero for what it replaced, and its scale for the rest."""
    given = noise((16, 5, 7))
    x = given.to(dev.device()).requires_grad_()
    torch.manual_seed(77)
    out = _REPLACING[case](x)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    host, slope = dev.cpu(out.detach()), dev.cpu(gradient)
    kept = slope != 0
    assert 0.2 < float(kept.double().mean()) < 0.95
    assert host[~kept].unique().numel() == 1, "an element without a gradient was kept"
    scale = float(slope[kept][0])
    dev.assert_equal(slope[kept], torch.full_like(slope[kept], scale))
    shift = host[kept] - scale * given[kept]
    dev.assert_close(shift, shift[:1].expand_as(shift), rtol=1e-5, atol=1e-5)
