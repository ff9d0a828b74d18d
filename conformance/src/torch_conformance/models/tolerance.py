# SPDX-License-Identifier: BSD-3-Clause
"""How near two trainings of one model have to be: data, and the comparison that uses it.

Whole tensors are compared, by the norm of their difference: single elements of a gradient are sums
in which much cancels, and say little about the precision of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_conformance.authoring import compare
from torch_conformance.authoring.device import Device


@dataclass(frozen=True)
class Grant:
    """A multiple of the rtol that the suite or the descriptor gives a dtype, and why."""

    factor: float
    reason: str


#: By the dtype in which a model computes.
BY_DTYPE: dict[torch.dtype, Grant] = {
    torch.float32: Grant(
        20, "a few hundred operators in a row, in which roundings add up and feed back"
    ),
    torch.float16: Grant(20, "compared with float32; activations and gradients keep 11 bits"),
    torch.bfloat16: Grant(5, "compared with float32; activations and gradients keep 8 bits"),
}

_KINKS = (
    "an activation that rounding moves across the kink of ReLU or the choice of a maximum adds or"
    " removes a whole example's share of a gradient"
)

#: By model and dtype, where that of the dtype is too narrow: factors on top of it.
BY_MODEL: dict[tuple[str, torch.dtype], Grant] = {
    ("mlp", torch.float16): Grant(10, _KINKS),
    ("mlp", torch.bfloat16): Grant(3, _KINKS),
    ("dlrm", torch.bfloat16): Grant(4, _KINKS),
    ("resnet", torch.float32): Grant(3, "batch norm divides by deviations of few values"),
    ("resnet", torch.float16): Grant(15, _KINKS),
    ("resnet", torch.bfloat16): Grant(5, _KINKS),
}

#: Tensors are measured against the whole set they belong to where they are nearly nothing.
FLOOR = 0.05


def relative(dev: Device, model: str, dtype: torch.dtype = torch.float32) -> float:
    """The error granted to a model that computes in `dtype`, relative to the norm."""
    factor = BY_DTYPE[dtype].factor
    if (model, dtype) in BY_MODEL:
        factor *= BY_MODEL[model, dtype].factor
    return dev.tolerance(dtype)[0] * factor


def assert_near(
    dev: Device, actual: Mapping[str, Tensor], expected: Mapping[str, Tensor], granted: float
) -> None:
    """Fail unless every tensor is as near to the CPU's as granted."""
    __tracebackhide__ = True
    assert list(actual) == list(expected), f"{list(actual)} instead of {list(expected)}"
    floor = FLOOR * max((_norm(tensor) for tensor in expected.values()), default=0.0)
    for name, wanted in expected.items():
        found = dev.cpu(actual[name])
        compare.require_none(compare.metadata_difference(found, wanted, f" {name}"))
        scale = max(_norm(wanted), floor)
        error = _norm(found.double() - wanted.double())
        if not error <= granted * scale:  # A NaN is not near.
            norms = f"in norm {error / scale:.1e}, granted {granted:.1e}"
            apart = compare.difference(found, wanted, rtol=granted, where=f" {name}")
            if apart is None:
                raise AssertionError(norms)
            raise compare.DifferentError(f"{apart}\n{norms}", apart.mismatch)


def _norm(tensor: Tensor) -> float:
    return float(tensor.detach().double().norm())
