# SPDX-License-Identifier: BSD-3-Clause
"""Positions of elements that equal others: PyTorch leaves open which of them an operator names."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torch_conformance.opinfo.sample import Sample

# Operators that say where what they found lies, with the place of `dim` among their arguments.
POSITIONS = {
    "argsort": 0,
    "kthvalue": 1,
    "median": 0,
    "mode": 0,
    "nanmedian": 0,
    "sort": 0,
    "topk": 1,
}


def resolved(name: str, sample: Sample, values: Any) -> Any:
    """The values of an operator with the elements that it names in the place of their positions."""
    if not _ambiguous(name, sample):
        return values
    if isinstance(values, Tensor):
        return _elements(name, sample, values) if name == "argsort" else values
    found, positions = values
    return found, _elements(name, sample, positions)


def ordered(name: str, sample: Sample, gradients: Any) -> Any:
    """The gradients with those of equal elements of the input's lines in ascending order.

    Which of the equal ones an operator names gets the gradient: that is open, and nothing else.
    """
    if not _ambiguous(name, sample):
        return gradients
    first, *others = gradients
    dim, line = _dimension(name, sample), sample.input.detach().cpu()
    by_gradient = first.argsort(dim=dim)
    by_element = line.gather(dim, by_gradient).argsort(dim=dim, stable=True)
    return [first.gather(dim, by_gradient.gather(dim, by_element)), *others]


def _ambiguous(name: str, sample: Sample) -> bool:
    """Whether the operator may name any of several equal elements of its input."""
    stable = bool(sample.kwargs.get("stable"))
    return name in POSITIONS and not stable and isinstance(sample.input, Tensor)


def _dimension(name: str, sample: Sample) -> int:
    place = POSITIONS[name]
    given = sample.args[place] if len(sample.args) > place else -1
    return int(sample.kwargs.get("dim", given))


def _elements(name: str, sample: Sample, positions: Tensor) -> tuple[Tensor, bool]:
    """The elements at the positions, and whether no position is named twice."""
    line, dim = sample.input.detach().cpu(), _dimension(name, sample)
    if line.dim() == 0:
        return line, bool(positions == 0)
    kept = positions if positions.dim() == line.dim() else positions.unsqueeze(dim)
    distinct = bool((kept.sort(dim).values.diff(dim=dim) != 0).all())
    return line.gather(dim, kept), distinct
