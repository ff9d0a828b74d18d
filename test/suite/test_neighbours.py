# SPDX-License-Identifier: BSD-3-Clause
"""A derivative beside a kink may be that of either side, and no other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from torch_conformance.opinfo.neighbours import right_nearby
from torch_conformance.opinfo.sample import Sample

HALF = torch.bfloat16


def gradient_of_relu(sample: Sample) -> list[Tensor]:
    """Beyond 1, of which a rounding is 1/128."""
    result = (sample.input - 1).relu()
    return list(torch.autograd.grad(result, sample.input, torch.ones_like(result)))


def right(at: list[float], actual: list[float], dtype: torch.dtype = HALF) -> bool:
    sample = Sample(torch.tensor(at, dtype=dtype, requires_grad=True))
    ours = [torch.tensor(actual, dtype=dtype)]
    return right_nearby(gradient_of_relu, sample, ours, lambda _: (0.016, 1e-5))


@pytest.mark.parametrize("side", [0.0, 1.0])
def test_at_a_kink_the_derivative_of_either_side_is_right(side: float) -> None:
    assert right([1.0, 3.0], [side, 1.0])


def test_a_rounding_is_that_of_the_dtype() -> None:
    assert right([1.0078125], [0.0])  # one place beside the kink
    assert not right([1.0078125], [0.0], torch.float32)


@pytest.mark.parametrize("wrong", [-0.5, 1.5, float("nan"), float("inf")])
def test_at_a_kink_nothing_else_is_right(wrong: float) -> None:
    assert not right([1.0, 3.0], [wrong, 1.0])


def test_away_from_a_kink_there_is_one_derivative() -> None:
    assert right([0.5, 3.0], [0.0, 1.0])
    assert not right([0.5, 3.0], [1.0, 1.0])
    assert not right([0.5, 3.0], [0.0, 0.0])


def test_where_digits_cancel_those_that_are_left_may_be_any() -> None:
    def cancelled(sample: Sample) -> list[Tensor]:
        return [sample.input - sample.args[0]]

    sample = Sample(torch.tensor([100.0], dtype=HALF), (torch.tensor([99.5], dtype=HALF),))
    for ours, is_right in ((0.0, True), (1.0, True), (4.0, False)):
        found = [torch.tensor([ours], dtype=HALF)]
        assert right_nearby(cancelled, sample, found, lambda _: (0.016, 1e-5)) is is_right


def test_complex_numbers_are_compared_by_their_parts() -> None:
    def same(sample: Sample) -> list[Tensor]:
        return [sample.input]

    sample = Sample(torch.tensor([1 + 1j], dtype=torch.complex64))
    close, far = (torch.tensor([x], dtype=torch.complex64) for x in (1 + 1j, 1 + 2j))
    assert right_nearby(same, sample, [close], lambda _: (1e-6, 1e-6))
    assert not right_nearby(same, sample, [far], lambda _: (1e-6, 1e-6))


def test_results_of_other_shapes_or_operators_without_double_precision_are_not_believed() -> None:
    def refuses(sample: Sample) -> list[Tensor]:
        raise RuntimeError("not implemented for 'Double'")

    def grant(dtype: torch.dtype) -> tuple[float, float]:
        return 1.0, 1.0

    sample = Sample(torch.tensor([1.0]))
    assert not right_nearby(refuses, sample, [torch.tensor([1.0])], grant)
    assert not right_nearby(lambda s: [s.input], sample, [torch.tensor([1.0, 1.0])], grant)
    assert not right_nearby(lambda s: [s.input, s.input], sample, [torch.tensor([1.0])], grant)
