# SPDX-License-Identifier: BSD-3-Clause
"""Operators that name one of several equal elements may name any of them, and nothing else."""

from __future__ import annotations

from typing import Any

import torch

from torch_conformance.authoring import compare
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.ties import ordered, resolved

LINE = torch.tensor([[2.0, 1.0, 2.0, 1.0]])


def same(name: str, sample: Sample, positions: list[Any], others: list[Any]) -> bool:
    """Whether two answers are one once ties are resolved."""
    values = [
        resolved(name, sample, (torch.zeros(1), torch.tensor(found)))
        for found in (positions, others)
    ]
    return compare.difference(*values, rtol=0, atol=0) is None


def test_any_of_equal_elements_is_right() -> None:
    sample = Sample(LINE)
    assert same("sort", sample, [[1, 3, 0, 2]], [[3, 1, 0, 2]])
    assert same("topk", Sample(LINE, (2,)), [[0, 2]], [[2, 0]])
    assert same("kthvalue", Sample(LINE, (1, 1, True)), [[1]], [[3]])
    assert same("mode", Sample(LINE, (1,)), [1], [3])


def test_other_elements_or_one_element_twice_are_wrong() -> None:
    sample = Sample(LINE)
    assert not same("sort", sample, [[1, 3, 0, 2]], [[1, 0, 3, 2]])
    assert not same("sort", sample, [[1, 3, 0, 2]], [[1, 1, 0, 2]])
    assert not same("kthvalue", Sample(LINE, (1, 1)), [1], [0])


def test_gradients_may_change_places_only_between_equal_elements() -> None:
    def same_gradients(line: torch.Tensor, ours: list[Any], theirs: list[Any]) -> bool:
        sample = Sample(line, (1,))
        found = [ordered("mode", sample, [torch.tensor(x)]) for x in (ours, theirs)]
        return compare.difference(*found, rtol=0, atol=0) is None

    assert same_gradients(LINE, [[0.0, 3.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 3.0]])
    assert not same_gradients(LINE, [[0.0, 3.0, 0.0, 0.0]], [[3.0, 0.0, 0.0, 0.0]])
    assert not same_gradients(LINE, [[0.0, 3.0, 0.0, 0.0]], [[0.0, 3.0, 0.0, 3.0]])
    assert not same_gradients(LINE, [[0.0, 3.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 4.0]])
    columns = torch.tensor([[2.0, 1.0], [1.0, 1.0]])
    assert not same_gradients(columns, [[0.0, 3.0], [4.0, 0.0]], [[0.0, 4.0], [3.0, 0.0]])


def test_a_stable_sort_has_one_answer() -> None:
    sample = Sample(LINE, kwargs={"stable": True})
    assert not same("sort", sample, [[1, 3, 0, 2]], [[3, 1, 0, 2]])
    assert same("argmax", Sample(LINE), [[0]], [[0]])
    assert not same("argmax", Sample(LINE), [[0]], [[2]])
