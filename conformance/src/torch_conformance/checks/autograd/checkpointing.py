# SPDX-License-Identifier: BSD-3-Clause
"""Checkpointing changes nothing but memory: its forms, random state, errors and autocast."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

from torch_conformance.authoring.api import Device, Program, agree, check, gradients, leaf, raised

#: The values of use_reentrant.
_REENTRANT = {"reentrant": True, "non_reentrant": False}


def _block(x: Tensor, w: Tensor) -> Tensor:
    return functional.dropout((x @ w).tanh(), 0.5)


# torch.utils.checkpoint asks for the state of autocast, and fails where there is none.
@check("autograd/checkpoint", "GRAD-006", needs=("autocast",), cases=_REENTRANT)
def checkpointing_changes_nothing_but_memory(dev: Device, case: str) -> None:
    """Values and gradients are those without checkpointing, dropout and nesting included."""
    results = []
    for wrapped in (False, True):

        def inner(x: Tensor, w: Tensor, wrapped: bool = wrapped) -> Tensor:
            return checkpointed(_block, _block(x, w), w) if wrapped else _block(_block(x, w), w)

        def checkpointed(function: Any, *arguments: Tensor) -> Any:
            return checkpoint(function, *arguments, use_reentrant=_REENTRANT[case])

        x, w = leaf(dev.device(), 6, 5), leaf(dev.device(), 5, 5, seed=1)
        torch.manual_seed(3)
        out = checkpointed(inner, x, w) if wrapped else inner(x, w)
        after = torch.rand(3, device=dev.device())
        out.square().sum().backward()
        results.append([out.detach(), x.grad, w.grad, after])
    for plain, recomputed in zip(*results, strict=True):
        assert plain is not None and recomputed is not None
        dev.assert_equal(recomputed, plain.cpu())


@check("autograd/checkpoint_rng", "GRAD-014", needs=("generator",), cases=_REENTRANT)
def preserving_the_random_state_is_a_choice(dev: Device, case: str) -> None:
    """preserve_rng_state=True leaves the sequence after backward alone; False draws again."""
    for preserve in (True, False):
        x = torch.ones(200, device=dev.device(), requires_grad=True)
        torch.manual_seed(3)
        out: Any = checkpoint(
            lambda t: functional.dropout(t * 2, 0.5),
            x,
            use_reentrant=_REENTRANT[case],
            preserve_rng_state=preserve,
        )
        expected = torch.rand(4, device=dev.device()).cpu()
        torch.manual_seed(3)
        functional.dropout(x.detach(), 0.5)
        out.sum().backward()
        drawn = torch.rand(4, device=dev.device()).cpu()
        assert x.grad is not None
        same_mask = torch.equal(x.grad.cpu(), out.detach().cpu())
        assert same_mask == preserve
        assert torch.equal(drawn, expected) == preserve


def _sequential(device: torch.device) -> list[Tensor]:
    x = leaf(device, 4, 4)
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.ReLU()).to(device)
    return gradients(checkpoint_sequential(module, 2, x, use_reentrant=False), x)


def _early_stop(device: torch.device) -> list[Tensor]:
    x, ends = leaf(device, 4, 4), []

    def block(t: Tensor) -> Tensor:
        out = t.exp().sin()
        ends.append(out)
        return out

    with torch.utils.checkpoint.set_checkpoint_early_stop(True):
        results = gradients(checkpoint(block, x, use_reentrant=False), x)
    assert len(ends) == 1, "recomputation went on after the last tensor that was saved"
    return results


def _keywords(device: torch.device) -> list[Tensor]:
    x = leaf(device, 4, 4)
    out: Any = checkpoint(
        lambda t, *, scale: (t * scale).sin(), x, scale=x.detach(), use_reentrant=False
    )
    return gradients(out, x)


_CHECKPOINT_FORMS: dict[str, Program] = {
    "sequential": _sequential,
    "early_stop": _early_stop,
    "keywords": _keywords,
}


@check("autograd/checkpoint_forms", "GRAD-006", needs=("autocast",), cases=_CHECKPOINT_FORMS)
def checkpointing_has_its_forms(dev: Device, case: str) -> None:
    """checkpoint_sequential, early stopping and keyword arguments give the CPU's gradients."""
    agree(dev, _CHECKPOINT_FORMS[case], rtol=1e-4, atol=1e-5)


@check("autograd/checkpoint_differs", "GRAD-006", needs=("autocast",))
def a_recomputation_that_differs_is_noticed(dev: Device) -> None:
    """A function that saves tensors of other sizes when it runs again raises CheckpointError."""
    runs = []

    def unsteady(x: Tensor) -> Tensor:
        runs.append(0)
        return x.exp() if len(runs) == 1 else x[1:].exp()

    out: Any = checkpoint(unsteady, leaf(dev.device(), 3), use_reentrant=False)
    assert isinstance(raised(out.sum().backward), CheckpointError)


@check("autograd/checkpoint_autocast", "GRAD-006", needs=("autocast",), cases=_REENTRANT)
def recomputation_runs_under_the_autocast_of_forward(dev: Device, case: str) -> None:
    """A block checkpointed under autocast recomputes in low precision, outside of the region."""
    seen = []

    def block(x: Tensor) -> Tensor:
        out = x @ x
        seen.append(out.dtype)
        return out.sin()

    x = leaf(dev.device(), 4, 4)
    low = torch.get_autocast_dtype(dev.type)
    with torch.autocast(dev.type):
        out: Any = checkpoint(block, x, use_reentrant=_REENTRANT[case])
    out.float().sum().backward()
    assert seen == [low, low]
