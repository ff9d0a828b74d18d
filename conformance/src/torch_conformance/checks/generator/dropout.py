# SPDX-License-Identifier: BSD-3-Clause
"""Dropout zeroes at its rate, and backward and checkpoints use the mask of forward."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._statistics import MANY, host_values, near


@check("generator/dropout", "GEN-020", needs=("generator",))
def dropout_zeroes_at_its_rate_and_scales_the_rest(dev: Device) -> None:
    """dropout(p) zeroes with probability p, scales by 1/(1-p), and is the identity in eval."""
    torch.manual_seed(2)
    x = torch.ones(MANY, device=dev.device())
    host = host_values(functional.dropout(x, 0.25))
    kept = host[host != 0]
    assert near(kept.numel() / MANY, 0.75, 0.433)
    assert torch.allclose(kept, torch.full_like(kept, 1 / 0.75), atol=1e-6)
    dev.assert_equal(functional.dropout(x, 0.25, training=False), torch.ones(MANY))
    dev.assert_equal(functional.dropout(x, 1.0), torch.zeros(MANY))
    dev.assert_equal(functional.dropout(x, 0.0), torch.ones(MANY))


@check("generator/dropout_backward", "GEN-020", needs=("generator",))
def the_backward_of_dropout_uses_the_forward_mask(dev: Device) -> None:
    """Gradients are zero exactly where dropout zeroed the value, and scaled alike elsewhere."""
    torch.manual_seed(2)
    x = torch.ones(1000, device=dev.device(), requires_grad=True)
    out = functional.dropout(x, 0.5)
    out.sum().backward()
    assert x.grad is not None
    dev.assert_equal(x.grad, out.detach().cpu())


def _checkpoint_replays(dev: Device, where: torch.device, *, reentrant: bool) -> None:
    """A checkpoint with dropout is recomputed with the mask of the forward pass."""
    torch.manual_seed(2)
    torch.rand(3, device=where)  # which other devices have not drawn
    x = torch.ones(1000, device=where, requires_grad=True)
    out: Any = checkpoint(lambda x: functional.dropout(x * 2, 0.5), x, use_reentrant=reentrant)
    torch.rand(7, device=where)
    torch.rand(7)
    out.sum().backward()
    assert x.grad is not None
    dev.assert_equal(x.grad, out.detach().cpu())


_REENTRANT = {"reentrant": True, "non_reentrant": False}


@check("generator/checkpoint", "GEN-021", needs=("generator",), cases=_REENTRANT)
def activation_checkpointing_replays_dropout(dev: Device, case: str) -> None:
    """torch.utils.checkpoint recomputes with the random state of the forward pass."""
    _checkpoint_replays(dev, dev.device(), reentrant=_REENTRANT[case])


@check("generator/checkpoint:other_device", "GEN-021", needs=("generator",))
def activation_checkpointing_replays_dropout_of_another_device(dev: Device) -> None:
    """torch.utils.checkpoint restores the random state of a device that is not current, too."""
    dev.require("multi_device")
    _checkpoint_replays(dev, dev.device(1), reentrant=False)
