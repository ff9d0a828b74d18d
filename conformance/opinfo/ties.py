# SPDX-License-Identifier: BSD-3-Clause
"""Positions of elements that equal others: PyTorch leaves open which of them an operator names."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from conformance.opinfo.sample import Sample

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
    if name not in POSITIONS or sample.kwargs.get("stable") or not isinstance(sample.input, Tensor):
        return values
    if isinstance(values, Tensor):
        return _elements(name, sample, values) if name == "argsort" else values
    found, positions = values
    return found, _elements(name, sample, positions)


def _elements(name: str, sample: Sample, positions: Tensor) -> tuple[Tensor, bool]:
    """The elements at the positions, and whether no position is named twice."""
    line, place = sample.input.detach().cpu(), POSITIONS[name]
    dim = sample.kwargs.get("dim", sample.args[place] if len(sample.args) > place else -1)
    if line.dim() == 0:
        return line, bool(positions == 0)
    kept = positions if positions.dim() == line.dim() else positions.unsqueeze(dim)
    distinct = bool((kept.sort(dim).values.diff(dim=dim) != 0).all())
    return line.gather(dim, kept), distinct
