# SPDX-License-Identifier: BSD-3-Clause
"""How far each element of a result may be from the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor

from torch_conformance.opinfo import precision, reference
from torch_conformance.opinfo.precision import (
    DERIVATIVES,
    POINTWISE,
    RESULTS,
    ROUNDED_ONCE,
    SECOND_DERIVATIVES,
    Rule,
)
from torch_conformance.opinfo.sample import Sample

HALF = torch.bfloat16
NAN, INF = float("nan"), float("inf")


def wrong(
    act: Callable[[Tensor], Tensor],
    at: Tensor,
    ours: Tensor,
    theirs: Tensor,
    rule: Rule = POINTWISE,
) -> str | None:
    """What is said about a device's result beside the CPU's, or None."""

    def none(dtype: torch.dtype) -> tuple[float, float]:
        return 0.0, 0.0

    question = precision.Question(
        None, lambda s: act(s.input), Sample(at), rule, none, none, lambda: False
    )
    found = precision.difference(question, ours, theirs)
    return str(found) if found else None


def third(x: Tensor) -> Tensor:
    """A computation that is rounded."""
    return x / 3


def ulps(values: Tensor, count: float) -> Tensor:
    """The numbers, some units in the last place of 1 larger, relative to each."""
    return values * (1 + count * torch.finfo(values.dtype).eps)


@pytest.mark.parametrize(
    ("ours", "theirs", "right"),
    [
        ([1 / 3, 2 / 3], [0.335, 0.668], True),  # closer to the truth than the CPU
        ([0.332, 2 / 3], [0.334, 0.668], True),  # as far from it
        ([0.345, 2 / 3], [0.334, 0.668], False),
        ([1 / 3, NAN], [0.335, 0.668], False),
        ([1 / 3, 2 / 3], [0.2, 0.5], True),  # the truth, from which the CPU is far
        ([1 / 3, 2 / 3], [NAN, 2 / 3], True),  # the truth, where the CPU has nothing
        ([0.3, 2 / 3], [NAN, 2 / 3], False),
        ([0.3, 0.6], [0.2, 0.5], False),  # closer to it than the CPU, but no rounding either
    ],
)
def test_what_is_close_to_the_truth_is_right(
    ours: list[float], theirs: list[float], right: bool
) -> None:
    at = torch.tensor([1.0, 2.0], dtype=HALF)
    actual, expected = (torch.tensor(values, dtype=HALF) for values in (ours, theirs))
    assert (wrong(third, at, actual, expected) is None) is right


def test_a_small_element_is_judged_by_its_own_last_place() -> None:
    at = torch.tensor([1e6, 1.0])
    exact = third(at)
    ours = exact.clone()
    ours[1] += 1e-5
    text = wrong(third, at, ours, exact)
    assert text is not None
    assert "1 of 2 elements differ; first at (1,)" in text
    assert "the right result there is 0.3333333" in text


@pytest.mark.parametrize(("count", "right"), [(3, True), (20, False)])
def test_eight_units_of_the_last_place_are_granted_in_single_precision(
    count: float, right: bool
) -> None:
    at = torch.tensor([1.0, 2.0])
    assert (wrong(torch.exp, at, ulps(at.exp(), count), at.exp()) is None) is right


def test_where_the_cpu_is_off_a_device_may_be_off_as_much() -> None:
    at = torch.tensor([1.0, 2.0])
    theirs = ulps(at.exp(), 10)
    assert wrong(torch.exp, at, ulps(at.exp(), 30), theirs) is None
    assert wrong(torch.exp, at, ulps(at.exp(), 60), theirs) is not None


def test_an_element_that_is_the_cpus_is_right_although_others_need_the_truth() -> None:
    at = torch.tensor([1.0, 1e-6])
    theirs = at.exp() * torch.tensor([-1.0, 1 + 1e-6])  # another result, and a rounded one
    assert wrong(torch.exp, at, ulps(theirs, 2) + torch.tensor([0, -1e-6]), theirs) is None
    assert wrong(torch.exp, at, ulps(theirs, 30) + torch.tensor([0, -1e-6]), theirs) is not None


@pytest.mark.parametrize(("rule", "right"), [(SECOND_DERIVATIVES, True), (DERIVATIVES, False)])
def test_second_derivatives_may_be_off_by_more(rule: Rule, right: bool) -> None:
    at = torch.tensor([1.0, 1.5])
    alone = rule._replace(elementwise=True)  # without results of inputs nearby
    assert (wrong(torch.exp, at, ulps(at.exp(), 9), at.exp(), alone) is None) is right


def test_arithmetic_of_16_bits_is_rounded_to_the_nearest_number() -> None:
    at = torch.tensor([1.0, 5.0], dtype=HALF)
    exact = third(at)
    toward_zero = torch.nextafter(exact, torch.zeros_like(exact))
    other = torch.where(exact.double() > at.double() / 3, toward_zero, exact)
    assert not torch.equal(other, exact)
    assert wrong(third, at, other, exact) is None  # one of the two beside the truth
    assert wrong(third, at, other, exact, ROUNDED_ONCE) is not None
    assert wrong(third, at, exact, exact, ROUNDED_ONCE) is None


def test_a_sum_whose_digits_cancel_may_be_that_of_inputs_nearby() -> None:
    def less(x: Tensor) -> Tensor:
        return x[0] - x[1]

    at = torch.tensor([1.0, 1.0 - 2**-20])
    exact = less(at)
    ours = exact + 2**-22
    assert wrong(less, at, ours, exact, RESULTS) is None
    assert wrong(less, at, ours, exact, POINTWISE) is not None


@pytest.mark.parametrize(("off", "right"), [(2**-53, True), (2**-46, False)])
def test_a_truth_of_the_same_precision_is_not_exact_where_digits_cancel(
    off: float, right: bool
) -> None:
    def log_of_odds(x: Tensor) -> Tensor:
        return torch.log(x / (1 - x))

    at = torch.tensor([0.5 + 2**-12, 0.3], dtype=torch.float64)
    theirs = log_of_odds(at)
    ours = theirs + torch.tensor([off, 0], dtype=torch.float64)
    assert (wrong(log_of_odds, at, ours, theirs) is None) is right


def test_a_device_may_lack_subnormal_numbers() -> None:
    at = torch.tensor([1e-39])
    assert wrong(lambda x: x * 1, at, torch.zeros(1), at) is None


def test_infinite_complex_numbers_are_one() -> None:
    at = torch.tensor([1 + 0j], dtype=torch.complex64)
    one, other = (torch.tensor([complex(INF, x)], dtype=torch.complex64) for x in (INF, NAN))
    assert wrong(lambda x: x / 0, at, one, other) is None
    assert wrong(lambda x: x / 0, at, torch.ones_like(one), other) is not None


def test_without_a_truth_the_default_of_the_dtype_decides() -> None:
    def refuses(x: Tensor) -> Tensor:
        raise RuntimeError("not implemented for 'Double'")

    at = torch.ones(2)
    assert wrong(refuses, at, ulps(at, 8), at) is not None
    assert wrong(refuses, at, at, at) is None


def test_whole_numbers_have_no_precision() -> None:
    assert wrong(lambda x: x.long(), torch.ones(1), torch.tensor([2]), torch.tensor([1]))


def test_functions_that_the_cpu_computes_imprecisely_have_another_source() -> None:
    at = torch.tensor([0.3, -2.5, 0.0], dtype=torch.float64)
    found = reference.values("digamma", Sample(at))
    assert found is not None
    assert found[0] == float(mpmath.digamma(0.3))
    assert found[2].isnan()
    assert reference.values("sin", Sample(at)) is None
    assert reference.values("digamma", Sample(at.float())) is None


@pytest.mark.parametrize("operator", sorted(reference.FUNCTIONS))
def test_every_reference_is_near_the_cpus_function(operator: str) -> None:
    function: Any = torch
    for name in operator.split("."):
        function = getattr(function, name)
    at = torch.linspace(0.5, 4, 50, dtype=torch.float64)
    found = reference.values(operator, Sample(at))
    torch.testing.assert_close(found, function(at), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("operator", ["pow", "float_power"])
def test_powers_of_complex_numbers_have_all_digits(operator: str) -> None:
    bases = torch.tensor([[1 + 1j], [-2 + 0j], [0.5 - 7j]], dtype=torch.complex128)
    exponents = torch.tensor([2.0, 30.0], dtype=torch.float64)
    # By multiplication of Python's whole numbers, which is exact.
    real, imaginary = 1, 0
    for _ in range(30):
        real, imaginary = real + 14 * imaginary, imaginary - 14 * real
    last = complex(real / 2**30, imaginary / 2**30)
    expected = [[2j, -32768j], [4, 2.0**30], [-48.75 - 7j, last]]
    found = reference.values(operator, Sample(bases, (exponents,)))
    assert found is not None and found.shape == (3, 2)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=found.dtype), rtol=1e-14, atol=0)
    swapped = reference.values("__rpow__", Sample(exponents, (bases,)))
    assert swapped is not None and torch.equal(swapped, found)


def test_powers_of_real_numbers_have_no_reference() -> None:
    assert reference.values("pow", Sample(torch.ones(2), (2.0,))) is None


def test_a_power_that_is_no_number_is_nan() -> None:
    found = reference.values("pow", Sample(torch.zeros(1, dtype=torch.complex128), (-1.0,)))
    assert found is not None and bool(found.isnan())
