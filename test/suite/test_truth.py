# SPDX-License-Identifier: BSD-3-Clause
"""Programs whose answer is computed in double precision, and their inputs."""

from __future__ import annotations

import pytest
import torch

from torch_conformance.authoring.api import Device, Inputs, agree_with_double
from torch_conformance.authoring.compare import DifferentError
from torch_conformance.spec import descriptor

CPU = torch.device("cpu")


@pytest.fixture
def dev() -> Device:
    """The CPU as the device under test."""
    return Device(descriptor.find("cpu"), capabilities=frozenset({"float16", "bfloat16"}))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_inputs_in_double_precision_are_the_same_numbers(dtype: torch.dtype) -> None:
    narrow, wide = Inputs(CPU, dtype), Inputs(CPU, torch.float64, dtype)
    assert torch.equal(narrow.steps(1031).double(), wide.steps(1031))
    assert torch.equal(narrow.distinct(1031).double(), wide.distinct(1031))
    assert torch.equal(narrow.of([0.1, 1e-9]).double(), wide.of([0.1, 1e-9]))


def test_inputs_do_not_share_memory_with_earlier_ones() -> None:
    inputs = Inputs(CPU, torch.float32)
    inputs.steps(7).fill_(99)
    inputs.order(7).zero_()
    assert float(inputs.steps(7).max()) < 8
    assert inputs.order(7).sort().values.tolist() == list(range(7))


def test_indices_have_the_first_and_the_last_number() -> None:
    found = Inputs(CPU, torch.float32).index(3, 5, below=70_001)
    assert found.view(-1)[:2].tolist() == [0, 70_000]
    assert int(found.min()) >= 0
    assert int(found.max()) == 70_000


def test_a_program_that_depends_on_its_precision_differs(dev: Device) -> None:
    agree_with_double(dev, lambda m: m.steps(131_075).sum())
    with pytest.raises(DifferentError):
        agree_with_double(dev, lambda m: m.of([1.0]) + 1e-3 * (m.dtype == torch.float32))


@pytest.mark.parametrize(
    ("dtype", "of_device", "is_right"),
    [
        (torch.bfloat16, 104.0, True),  # the tolerance of bfloat16 is 1.6 %
        (torch.bfloat16, 105.0, False),
        (torch.float32, 101.0, False),
    ],
)
def test_a_16_bit_result_may_be_twice_as_far_off_as_that_of_the_cpu(
    dev: Device, dtype: torch.dtype, of_device: float, is_right: bool
) -> None:
    """The device under test is a CPU that computes another number than the CPU."""
    results = iter([100.0, of_device, 102.0])

    def program(m: Inputs) -> torch.Tensor:
        return m.of([1.0, next(results)])

    if is_right:
        agree_with_double(dev, program, dtype)
    else:
        with pytest.raises(DifferentError):
            agree_with_double(dev, program, dtype)


def test_slack_is_in_units_of_the_largest_element(dev: Device) -> None:
    def program(m: Inputs) -> torch.Tensor:
        return m.of([1000.0, 1.0]) + torch.tensor([0.0, 0.5 * (m.dtype == torch.float32)])

    agree_with_double(dev, program, slack=1e-3)
    with pytest.raises(DifferentError):
        agree_with_double(dev, program, slack=1e-4)


def test_gradients_have_weights_that_differ_from_place_to_place() -> None:
    inputs = Inputs(CPU, torch.float64)
    result, gradient = inputs.gradients(lambda x: x * 2, inputs.steps(33))
    assert torch.equal(result.detach(), inputs.steps(33) * 2)
    assert torch.equal(gradient, inputs.whole(33, seed=9) * 2)
