# SPDX-License-Identifier: BSD-3-Clause
"""The right results of one sample, in more digits than those that are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_conformance.authoring.truth import WIDE
from torch_conformance.opinfo import reference
from torch_conformance.opinfo.sample import Sample, tensors

Act = Callable[[Sample], Any]


class Truth(NamedTuple):
    """The right results, and where they come from."""

    values: list[Tensor]
    source: str
    exact_in_double: bool = False
    """Whether they are right to the last place of float64, or computed in float64 themselves."""


def of(operator: str | None, act: Act, sample: Sample) -> Truth | None:
    """What should come out of a sample, or None if that cannot be computed.

    `operator` is its name if the results are those of the operator, not derivatives.
    """
    known = reference.values(operator, sample) if operator else None
    if known is not None:
        return Truth([known], "mpmath", exact_in_double=True)
    try:
        values = list(tensors(act(in_double(sample))))
    except Exception:
        return None  # Some operators have no double precision.
    return Truth(values, "the CPU in double precision")


def in_double(sample: Sample) -> Sample:
    """The same numbers in double precision; whole numbers only if there are no others."""
    whole = not any(t.is_floating_point() or t.is_complex() for t in sample.tensors())

    def wide(tensor: Tensor) -> Tensor:
        dtype = WIDE.get(tensor.dtype, torch.float64 if whole else tensor.dtype)
        return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)

    changed = sample.map(wide)
    return replace(
        changed,
        args=tuple(map(_wider, changed.args)),
        kwargs={name: _wider(value) for name, value in changed.kwargs.items()},
    )


def _wider(value: Any) -> Any:
    """A dtype that is asked for, in double precision; anything else as it is."""
    return WIDE.get(value, value) if isinstance(value, torch.dtype) else value
