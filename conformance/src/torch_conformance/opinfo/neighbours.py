# SPDX-License-Identifier: BSD-3-Clause
"""Whether a derivative is right for inputs that are a rounding away.

Beside a kink, and where all digits cancel, the last place of the inputs decides what the derivative
is, and the rounding of any step before it does the same. A device is right there if its result lies
among the exact ones of such inputs: it is backward stable (Higham, Accuracy and Stability of
Numerical Algorithms, 1.5). Asked only after every other comparison failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.opinfo.precision import in_double
from torch_conformance.opinfo.sample import Sample, tensors

# So many neighbours lie on the same side of a kink through a sample once in 256 cases.
NEIGHBOURS = 8

Tolerance = Callable[[torch.dtype], tuple[float, float]]


def right_nearby(
    act: Callable[[Sample], Any], sample: Sample, actual: Any, tolerance: Tolerance
) -> bool:
    """Whether each element is between the least and the largest exact one, within the tolerance."""
    generator = torch.Generator().manual_seed(0)
    samples = [in_double(sample), *(_neighbour(sample, generator) for _ in range(NEIGHBOURS))]
    try:
        exact = [list(tensors(act(one))) for one in samples]
    except Exception:
        return False  # Some operators have no double precision.
    found = list(tensors(actual))
    if any([t.shape for t in one] != [t.shape for t in found] for one in exact):
        return False
    return all(
        _between(ours, torch.stack(list(theirs)), *tolerance(ours.dtype))
        for ours, *theirs in zip(found, *exact, strict=True)
    )


def _neighbour(sample: Sample, generator: torch.Generator) -> Sample:
    """The sample in double precision, each number a unit of its last place larger or smaller."""

    def moved(tensor: Tensor) -> Tensor:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor
        signs = torch.randint(0, 2, tensor.shape, generator=generator) * 2 - 1
        wide = tensor.detach().to(torch.promote_types(tensor.dtype, torch.float64))
        wide = wide * (1 + signs * torch.finfo(tensor.dtype).eps)
        return wide.requires_grad_(tensor.requires_grad)

    return in_double(sample.map(moved))


def _between(actual: Tensor, exact: Tensor, rtol: float, atol: float) -> bool:
    """Whether the elements are in the ranges of the exact ones, which are stacked."""
    if actual.is_complex():
        actual, exact = torch.view_as_real(actual.resolve_conj()), torch.view_as_real(exact)
    low, high = exact.amin(0), exact.amax(0)
    slack = atol + rtol * torch.maximum(low.abs(), high.abs())
    inside = (actual >= low - slack) & (actual <= high + slack)
    return bool(inside.all())
