# SPDX-License-Identifier: BSD-3-Clause
"""A comparison accepts what is equal and says of the rest where and by how much."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torch_conformance.authoring import compare
from torch_conformance.authoring.compare import difference, max_ulp, metadata_difference

NAN = float("nan")


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([1.0, NAN, float("inf")]),
        torch.tensor([1 + 2j, 3]).conj(),
        torch.tensor([True, False]),
        torch.empty(0, 3),
        torch.eye(3).to_sparse(),
        torch.tensor([1 + 1j]).to(torch.complex32),
        torch.tensor([1, 2], dtype=torch.uint32),
        [torch.ones(2), (3, "x")],
        {"a": torch.zeros(1)},
        NAN,
        None,
    ],
)
def test_a_value_equals_itself(value: Any) -> None:
    assert difference(value, value) is None


@pytest.mark.parametrize(
    ("actual", "expected", "mismatch", "words"),
    [
        (torch.ones(2), torch.ones(2).double(), "dtype", "dtype is torch.float32"),
        (torch.ones(2), torch.ones(3), "shape", "shape is [2], expected [3]"),
        (torch.eye(2).to_sparse(), torch.eye(2), "layout", "layout is torch.sparse_coo"),
        (3, torch.ones(2), "type", "a int was returned"),
        (
            torch.zeros(2, 2),
            torch.tensor([[0.0, 0], [0, 1]]),
            "some_values",
            "first at (1, 1): 0.0, expected 1.0",
        ),
        (torch.tensor([NAN]), torch.ones(1), "all_values", "1 of 1 elements differ"),
        (torch.tensor([True]), torch.tensor([False]), "all_values", "1 of 1 elements differ"),
        (torch.tensor([2**40]), torch.tensor([2**40 + 1]), "all_values", "max abs error 1"),
        ([torch.ones(1)], [torch.ones(1), torch.ones(1)], "structure", "structure differs"),
        ([1, [torch.ones(1)]], [1, [torch.zeros(1)]], "all_values", "output[1][0]: 1 of 1"),
        ({"a": 1}, {"b": 1}, "structure", "keys differ"),
        ({"a": 1}, {"a": 2}, "scalar", "output['a']: 1, expected 2"),
        (1.0, 2.0, "scalar", "1.0, expected 2.0"),
        (-0.0, "x", "scalar", "expected 'x'"),
    ],
)
def test_a_difference_is_described_in_words_and_as_data(
    actual: Any, expected: Any, mismatch: str, words: str
) -> None:
    found = difference(actual, expected)
    assert found is not None
    assert found.mismatch == mismatch
    assert words in found.text
    with pytest.raises(compare.DifferentError) as error:
        compare.require_none(found)
    assert (str(error.value), error.value.mismatch) == (found.text, mismatch)


def test_tolerance_is_absolute_plus_relative() -> None:
    expected = torch.tensor([100.0])
    assert difference(torch.tensor([101.0]), expected, rtol=0.005, atol=0.6) is None
    assert difference(torch.tensor([101.2]), expected, rtol=0.005, atol=0.6) is not None


def test_distance_in_units_in_the_last_place() -> None:
    one = torch.tensor([1.0])
    assert max_ulp(torch.nextafter(one, torch.tensor([2.0])), one) == 1
    assert max_ulp(torch.tensor([-0.0]), torch.tensor([0.0])) == 0
    tiny = torch.tensor([math.ulp(0.0)], dtype=torch.float64)
    assert max_ulp(-tiny, tiny) == 2


def test_metadata_is_blind_to_values_only() -> None:
    assert metadata_difference(torch.zeros(2), torch.ones(2)) is None
    assert metadata_difference(torch.zeros(2), torch.ones(2).int()) is not None
    assert metadata_difference([torch.zeros(2)], [torch.ones(3)]) is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_ulp_is_exact_from_one_end_of_a_type_to_the_other(dtype: torch.dtype) -> None:
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    largest = torch.tensor([torch.finfo(dtype).max], dtype=dtype)
    ends = torch.cat([-largest, largest])
    assert max_ulp(ends, ends.flip(0)) == 2 * int(largest.view(bits).item())
    assert max_ulp(ends, ends) == 0
    infinite = torch.tensor([math.inf, math.nan], dtype=dtype)
    assert max_ulp(infinite, infinite) is None


def test_the_largest_distance_may_be_in_any_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "PART", 2)
    expected = torch.ones(7)
    actual = expected.clone()
    actual[4] = torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    actual[5] = 3.0
    assert max_ulp(actual, expected) == 1 << 23 | 1 << 22
    text = str(difference(actual, expected))
    assert text.startswith("2 of 7 elements differ; first at (4,):")
    assert "max abs error 2; max rel error 2; max 12582912 ULP" in text


class Sizes(TorchDispatchMode):
    """Notes the bytes of the largest tensor that an operator makes."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and not func.is_view:
            self.largest = max(self.largest, made.numel() * made.itemsize)
        return made


def test_a_comparison_makes_no_tensor_larger_than_a_byte_for_each_element() -> None:
    count = 4 << 20
    actual, expected = torch.zeros(count), torch.ones(count)
    with Sizes() as sizes:
        found = difference(actual, expected)
    assert str(found).startswith(f"{count} of {count} elements differ")
    # A part of 2 ** 20 elements may be held as float64 or int64, too.
    assert sizes.largest <= max(count, compare.PART * 8)


class Late(TorchDispatchMode):
    """Lets a result arrive while it is compared: after so many elements of it were read."""

    def __init__(self, result: torch.Tensor, final: torch.Tensor, after: str) -> None:
        super().__init__()
        self._result, self._final, self._after = result, final, after

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if self._after in str(func) and self._result is not None:
            self._result.copy_(self._final)
        return made


def test_what_is_said_of_a_result_that_arrives_late_is_about_what_was_compared() -> None:
    result, expected = torch.zeros(8), torch.arange(8.0)
    with Late(result, expected, after="aten.clone"):
        text = str(difference(result, expected))
    assert text.startswith("7 of 8 elements differ; first at (1,): 0.0, expected 1.0")
    assert "max abs error 7" in text
    assert text.endswith("; 7 elements have changed since they were compared")


def test_a_result_that_arrives_before_it_is_described_has_still_been_wrong() -> None:
    result, expected = torch.zeros(8), torch.arange(8.0)
    with Late(result, expected, after="aten.equal"):
        found = difference(result, expected)
    assert found is not None
    assert found.text == compare.CHANGING


def test_a_result_that_stays_as_it_is_has_not_changed() -> None:
    text = str(difference(torch.tensor([NAN, 1.0]), torch.tensor([1.0, NAN])))
    assert text.startswith("2 of 2 elements differ")
    assert "changed" not in text
    assert difference(torch.tensor([NAN, 1.0]), torch.tensor([NAN, 1.0])) is None
