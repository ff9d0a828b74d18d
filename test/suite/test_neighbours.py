# SPDX-License-Identifier: BSD-3-Clause
"""A derivative beside a kink may be that of either side, and no other; so may what digits leave."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from torch_conformance.opinfo.neighbours import LOOKS, NEIGHBOURS, Neighbours
from torch_conformance.opinfo.sample import Sample

HALF = torch.bfloat16


def gradient_of_relu(sample: Sample) -> list[Tensor]:
    """Beyond 1, of which a rounding is 1/128."""
    result = (sample.input - 1).relu()
    return list(torch.autograd.grad(result, sample.input, torch.ones_like(result)))


def right(at: list[float], actual: list[float], dtype: torch.dtype = HALF) -> bool:
    sample = Sample(torch.tensor(at, dtype=dtype, requires_grad=True))
    return inside(gradient_of_relu, sample, torch.tensor(actual, dtype=dtype))


def inside(act: Any, sample: Sample, actual: Tensor) -> bool:
    """Whether each element is in its range."""
    *_, (low, high) = Neighbours(act, sample, actual.dtype).ranges(0)
    return bool(((actual >= low) & (actual <= high)).all())


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


def test_neighbours_are_computed_only_as_they_are_asked_for() -> None:
    calls = []

    def act(sample: Sample) -> list[Tensor]:
        calls.append(sample)
        return [sample.input * 3, sample.input / 7]

    found = Neighbours(act, Sample(torch.tensor([0.1, 0.7])), torch.float32)
    (narrow, _), (low, high) = next(found.ranges(0)), next(found.ranges(1))
    assert len(calls) == 1 + LOOKS[0]
    *_, (lowest, highest) = found.ranges(1)
    assert len(calls) == 1 + NEIGHBOURS
    assert bool((lowest <= low).all()) and bool((high <= highest).all())
    assert torch.equal(next(found.ranges(0))[0], narrow)
    assert len(calls) == 1 + NEIGHBOURS


def test_where_digits_cancel_those_that_are_left_may_be_any() -> None:
    def cancelled(sample: Sample) -> list[Tensor]:
        return [sample.input - sample.args[0]]

    sample = Sample(torch.tensor([100.0], dtype=HALF), (torch.tensor([99.5], dtype=HALF),))
    for ours, is_right in ((0.0, True), (1.0, True), (4.0, False)):
        assert inside(cancelled, sample, torch.tensor([ours], dtype=HALF)) is is_right


def test_the_rounding_of_a_step_counts_though_no_input_decides() -> None:
    def rest(sample: Sample) -> list[Tensor]:
        return [sample.input / 3 - sample.input * (1 / 3)]

    sample = Sample(torch.tensor([100.0]))
    assert inside(rest, sample, torch.tensor([4e-6]))
    assert not inside(rest, sample, torch.tensor([1e-4]))


def test_tensors_that_hold_no_numbers_are_not_moved() -> None:
    def zeros(sample: Sample) -> list[Tensor]:
        return [torch._efficientzerotensor(2) + sample.input]

    assert inside(zeros, Sample(torch.tensor([1.0, 2.0])), torch.tensor([1.0, 2.0]))


def test_complex_numbers_have_ranges_of_their_parts() -> None:
    sample = Sample(torch.tensor([1 + 1j], dtype=torch.complex64))
    low, high = next(Neighbours(lambda s: [s.input], sample, torch.complex64).ranges(0))
    assert low.shape == high.shape == (1, 2)


def test_results_of_other_shapes_or_operators_without_double_precision_have_no_range() -> None:
    def refuses(sample: Sample) -> list[Tensor]:
        raise RuntimeError("not implemented for 'Double'")

    sample, calls = Sample(torch.tensor([1.0])), iter(range(1, 100))
    for act in (refuses, lambda s: [s.input.expand(next(calls))]):
        assert list(Neighbours(act, sample, torch.float32).ranges(0)) == []


def test_what_is_rounded_inside_of_an_operator_counts() -> None:
    """`1 - exp(x)` of a large probability, which is computed inside of one kernel."""

    def backward(sample: Sample) -> list[Tensor]:
        grad = torch.ones_like(sample.input)
        return [torch._log_softmax_backward_data(grad, sample.input, 0, sample.input.dtype)]

    sample = Sample(torch.tensor([-1e-5], dtype=torch.float32))
    rounded = 1 - sample.input.exp()
    assert abs(float(rounded) - 1e-5) > 1e-9
    assert inside(backward, sample, rounded)
    assert not inside(backward, sample, rounded + 1e-5)
