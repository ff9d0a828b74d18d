# SPDX-License-Identifier: BSD-3-Clause
"""Dual numbers carry tangents: through every function, in-place work, levels and gradients."""

from __future__ import annotations

import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor

from torch_conformance.authoring.api import Device, agree, check, noise
from torch_conformance.checks._functions import FUNCTIONS


@check("autograd/forward_mode", "GRAD-003", cases=FUNCTIONS)
def forward_mode_agrees(dev: Device, case: str) -> None:
    """The directional derivative by dual numbers agrees with the CPU's."""

    def program(device: torch.device) -> list[Tensor]:
        with forward_ad.dual_level():
            x = forward_ad.make_dual(noise((2, 4)).to(device), noise((2, 4), seed=5).to(device))
            out = forward_ad.unpack_dual(FUNCTIONS[case](x))
            assert out.tangent is not None
            return [out.primal, out.tangent]

    agree(dev, program, rtol=1e-3, atol=1e-4)


def _dual(dev: Device, requires_grad: bool = False) -> Tensor:
    """noise((3,)) with the tangent noise((3,), seed=1), in the level that is open."""
    x, tangent = noise((3,)).to(dev.device()), noise((3,), seed=1).to(dev.device())
    return forward_ad.make_dual(x.requires_grad_(requires_grad), tangent)


@check("autograd/forward_mode_rules:in_place", "GRAD-003")
def in_place_work_carries_tangents(dev: Device) -> None:
    """In-place operators change the tangent together with the value."""
    with forward_ad.dual_level():
        dual = _dual(dev)
        out = forward_ad.unpack_dual((dual * 1).mul_(dual).add_(1))
        dev.assert_close(out.tangent, 2 * noise((3,)) * noise((3,), seed=1))


@check("autograd/forward_mode_rules:levels", "GRAD-003")
def leaving_the_level_drops_tangents(dev: Device) -> None:
    """A dual number has its tangent in its level, and none in the next."""
    with forward_ad.dual_level():
        dual = _dual(dev)
        assert forward_ad.unpack_dual(dual).tangent is not None
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(dual).tangent is None


@check("autograd/forward_mode_rules:over_reverse", "GRAD-003")
def forward_mode_runs_over_reverse_mode(dev: Device) -> None:
    """The gradient of a dual number carries the tangent of the gradient."""
    with forward_ad.dual_level():
        dual = _dual(dev, requires_grad=True)
        (gradient,) = torch.autograd.grad((dual**3).sum(), dual, create_graph=True)
        out = forward_ad.unpack_dual(gradient)
        dev.assert_close(out.tangent, 6 * noise((3,)) * noise((3,), seed=1))
