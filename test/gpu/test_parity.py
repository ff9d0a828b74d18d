# SPDX-License-Identifier: BSD-3-Clause
"""Whether the comparison of two drivers notices that they differ."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bench.gpu.parity.cases import Case, cases
from bench.gpu.parity.collect import SIZE, read
from bench.gpu.parity.compare import differences


def told(case: Case, want: Tensor | str | None, got: Tensor | str | None) -> list[str]:
    """What is said of one case."""
    return differences([case], side(case, want), side(case, got))


def side(case: Case, value: Tensor | str | None) -> dict[str, tuple[Tensor, ...] | str]:
    """The results of a driver that has one, or none."""
    if value is None:
        return {}
    return {case.name: value if isinstance(value, str) else (value,)}


def case(*, exact: bool = False, slack: float = 1.0) -> Case:
    """About nothing."""
    return Case("made up", lambda device: (), exact, slack)


X = torch.tensor([1.0, float("nan"), 3.0])


def test_equal_results_are_no_difference_nor_is_nan_against_nan() -> None:
    assert told(case(), X, X.clone()) == []
    assert told(case(exact=True), X, X.clone()) == []


def test_within_the_tolerance_of_the_dtype_is_no_difference() -> None:
    near = X * (1 + 1e-6)
    assert told(case(), X, near) == []
    assert told(case(exact=True), X, near) != []


def test_beyond_it_the_first_element_is_named() -> None:
    far = torch.tensor([1.0, float("nan"), 3.1])
    (line,) = told(case(), X, far)
    assert line.startswith("made up: 1 of 3 elements; the first, 2, is 3.0 and 3.0999")
    assert told(case(slack=1e5), X, far) == []


def test_one_bit_is_a_difference_of_random_numbers() -> None:
    bits = torch.tensor([0.5]).view(torch.int32) + 1
    assert told(case(exact=True), torch.tensor([0.5]), bits.view(torch.float32)) != []
    assert told(case(exact=True), torch.tensor([0.0]), torch.tensor([-0.0])) != []


def test_whole_numbers_are_compared_exactly_without_being_asked() -> None:
    a = torch.tensor([1 << 40])
    assert told(case(), a, a + 1) != []


def test_other_shapes_and_dtypes_are_differences() -> None:
    assert told(case(), X, X[:2]) != []
    assert told(case(), X, X.double()) != []


@pytest.mark.parametrize("which", [0, 1])
def test_what_raised_or_is_missing_is_a_difference(which: int) -> None:
    for value, word in (("RuntimeError: broken", "raised"), (None, "no result")):
        pair: list[Tensor | str | None] = [X, X]
        pair[which] = value
        (line,) = told(case(), *pair)
        assert word in line and ("first" if which == 0 else "second") in line


def test_results_before_a_crash_are_read(tmp_path: Path) -> None:
    file = tmp_path / "results"
    whole = pickle.dumps(("one", (X,)))
    file.write_bytes(whole + whole[:-7])
    assert [name for name, _ in read(file)] == ["one"]


def test_names_of_cases_are_unique() -> None:
    names = [case.name for case in cases(SIZE)]
    assert len(set(names)) == len(names)
    assert len(names) > 300


def test_everything_random_is_compared_to_the_last_bit() -> None:
    drawn = [case for case in cases(1003) if case.name.startswith("random/")]
    assert len(drawn) > 30
    assert all(case.exact for case in drawn)
