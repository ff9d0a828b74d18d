# SPDX-License-Identifier: BSD-3-Clause
"""Sorts, selections and searches of long tensors are complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import FULL, STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import MILLION, ROWS, Work

_SORTED = (
    ((65_537,), 0),
    ((2, 131_075), 1),
    ((65_537, 2), 0),
    ((ROWS, 3), 1),
    ((3, ROWS), 0),
    ((257, 1031), 1),
)

_ORDERED: dict[str, Callable[[Tensor, int], Any]] = {
    "sort": lambda x, d: list(x.sort(d)),
    "descending": lambda x, d: list(x.sort(d, descending=True)),
    "argsort": lambda x, d: x.argsort(d),
    "kthvalue": lambda x, d: list(x.kthvalue(x.size(d) // 3 + 1, d)),
    "topk_few": lambda x, d: list(x.topk(2, d)),
    "topk_least": lambda x, d: list(x.topk(2, d, largest=False)),
    "topk_many": lambda x, d: list(x.topk(x.size(d) // 2 + 1, d)),
}


@check("sizes/sort", "SIZE-005", cases=_ORDERED, breadth=STANDARD)
def long_rows_are_ordered(dev: Device, case: str) -> None:
    """Sorts and selections of long rows, long columns and many of each are complete."""
    agree_with_double(
        dev, lambda m: [_ORDERED[case](m.distinct(*shape), dim) for shape, dim in _SORTED]
    )


_ORDER_KINDS = ("sort", "topk_few")


@check("sizes/sort_million", "SIZE-005", cases=_ORDER_KINDS, breadth=STANDARD)
def a_million_elements_are_ordered(dev: Device, case: str) -> None:
    """A sort and a selection of a million elements are complete."""
    agree_with_double(dev, lambda m: _ORDERED[case](m.distinct(MILLION), 0))


@check(
    "sizes/sort_million",
    "SIZE-005",
    cases=[name for name in _ORDERED if name not in _ORDER_KINDS],
    breadth=FULL,
)
def a_million_elements_are_ordered_in_other_ways(dev: Device, case: str) -> None:
    """The other sorts and selections of a million elements are complete."""
    agree_with_double(dev, lambda m: _ORDERED[case](m.distinct(MILLION), 0))


@check(
    "sizes/sort_stable",
    "SIZE-005",
    dtypes=("uint8", "bool", "int16", "int32", "int64", "float16", "float32", "float64"),
    breadth=STANDARD,
)
def equal_elements_of_long_rows_keep_their_order(dev: Device, dtype: torch.dtype) -> None:
    """A stable sort of long rows of few values keeps the order of equal elements."""

    def program(m: Inputs) -> list[Tensor]:
        x = m.index(2, 65_537, below=5).to(m.dtype)
        return [
            *x.sort(dim=1, stable=True),
            *x.t().sort(dim=0, descending=True, stable=True),
            *x.view(-1).sort(stable=True),
        ]

    agree_with_double(dev, program, dtype)


_SEARCHES: dict[str, Work] = {
    "unique": lambda m: list(
        m.index(131_075, below=70_001).unique(return_inverse=True, return_counts=True)
    ),
    "unique_consecutive": lambda m: list(
        (m.order(131_075).sort().values // 3).unique_consecutive(True, True)
    ),
    "searchsorted": lambda m: [
        torch.searchsorted(m.of(torch.arange(0, 400_003, 3)), m.distinct(400_003)),
        torch.searchsorted(m.of(torch.arange(0, 400_003, 3)), m.distinct(400_003), right=True),
    ],
    "bucketize": lambda m: torch.bucketize(m.steps(400_003), m.of(torch.arange(-8, 8, 0.0625))),
    "isin": lambda m: torch.isin(m.order(66_001), m.order(66_001, seed=1)[:33_001]),
    "bincount": lambda m: [
        torch.bincount(m.index(131_075, below=7)),
        torch.bincount(m.index(131_075, below=70_001), m.steps(131_075)),
    ],
    "histc": lambda m: torch.histc(m.steps(131_075), 1024, -8, 8),
    "mode": lambda m: m.index(129, 1031, below=3000).mode(1).values,
    "quantile": lambda m: torch.quantile(m.distinct(65_537), m.of([0, 0.25, 0.5, 1.0])),
}


@check("sizes/search", "SIZE-005", cases=_SEARCHES, breadth=STANDARD)
def long_tensors_are_searched(dev: Device, case: str) -> None:
    """Searches and counts find all of more than 2^16 different values."""
    agree_with_double(dev, _SEARCHES[case])
