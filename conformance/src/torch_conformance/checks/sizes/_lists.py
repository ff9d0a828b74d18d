# SPDX-License-Identifier: BSD-3-Clause
"""Long lists of tensors, and operators on them, in full precision and in half of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Inputs
from torch_conformance.checks.sizes._sizes import Work


def listed(m: Inputs, seed: int = 0) -> list[Tensor]:
    """More tensors than one launch takes, of which some are empty and some are long."""
    sizes = [(7 * i) % 31 for i in range(700)] + [65_537, 0, 131_075, 1, 0]
    whole = m.steps(sum(sizes), seed=seed)
    return [part.clone() for part in whole.split(sizes)]


def _in_place(function: Callable[..., None], *arguments: Any) -> Work:
    def program(m: Inputs) -> list[Tensor]:
        changed = listed(m)
        function(changed, *(a(m) if callable(a) else a for a in arguments))
        return changed

    return program


def second(m: Inputs) -> list[Tensor]:
    """As many tensors of the same sizes, with other numbers."""
    return listed(m, 1)


def _numbers_of_list(m: Inputs) -> list[float]:
    return [float(i % 13 - 6) for i in range(len(listed(m)))]


LISTS: dict[str, Work] = {
    "add": _in_place(torch._foreach_add_, second),
    "add_scalar": _in_place(torch._foreach_add_, 1.5),
    "add_scalars": _in_place(torch._foreach_add_, _numbers_of_list),
    "mul": _in_place(torch._foreach_mul_, second),
    "mul_scalars": _in_place(torch._foreach_mul_, _numbers_of_list),
    "addcmul": _in_place(torch._foreach_addcmul_, second, listed, 2.0),
    "addcdiv": lambda m: torch._foreach_addcdiv(
        listed(m), second(m), torch._foreach_add(torch._foreach_abs(listed(m)), 1.0)
    ),
    "lerp": _in_place(torch._foreach_lerp_, second, 0.25),
    "copy": _in_place(torch._foreach_copy_, second),
    "zero": _in_place(torch._foreach_zero_),
    "neg": lambda m: torch._foreach_neg(listed(m)),
    "sqrt": lambda m: torch._foreach_sqrt(torch._foreach_abs(listed(m))),
    "maximum": lambda m: torch._foreach_maximum(listed(m), second(m)),
    "norm": lambda m: [*torch._foreach_norm(listed(m)), *torch._foreach_norm(listed(m), 1)],
    "unscale": lambda m: _unscaled(m, 1.0),
    "unscale_infinity": lambda m: _unscaled(m, torch.inf),
    "clip": lambda m: _clipped(m),
}


def _unscaled(m: Inputs, last: float) -> list[Tensor]:
    """Gradients of which the last element is `last`, divided by 4; and whether one was infinite."""
    grads = listed(m)
    grads[-2][-1] = last
    found = torch.zeros(1, device=m.device)
    scale = torch.full((1,), 0.25, device=m.device)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    return [found > 0, *grads]


def _clipped(m: Inputs) -> list[Tensor]:
    leaves = listed(m)
    for leaf, grad in zip(leaves, second(m), strict=True):
        leaf.grad = grad
    norm = torch.nn.utils.clip_grad_norm_(leaves, 1.0, foreach=True)
    return [norm, *(leaf.grad for leaf in leaves if leaf.grad is not None)]
