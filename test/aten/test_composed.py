# SPDX-License-Identifier: BSD-3-Clause
"""Operators composed of others: unique, bincount, isin, renorm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import torch_puone as puone


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    """Nothing here may run on the CPU."""
    yield
    assert not puone._fallback_counts()


@pytest.mark.parametrize("n", [0, 1, 2, 10_000])
@pytest.mark.parametrize("consecutive", [False, True])
def test_unique_elements_with_inverse_and_counts(n: int, consecutive: bool) -> None:
    x = torch.randint(0, 50, (n,))
    function = torch.unique_consecutive if consecutive else torch.unique
    expected = function(x, return_inverse=True, return_counts=True)
    result = function(x.to("puone"), return_inverse=True, return_counts=True)
    for a, b in zip(result, expected, strict=True):
        assert torch.equal(a.cpu(), b)


def test_every_nan_is_unique() -> None:
    nan = float("nan")
    result = torch.unique(torch.tensor([nan, 1.0, nan, 1.0], device="puone"), return_counts=True)
    assert result[0].cpu().isnan().tolist() == [False, True, True]
    assert result[1].tolist() == [2, 1, 1]


def test_counting_small_numbers() -> None:
    x, weights = torch.randint(0, 9, (5000,)), torch.rand(5000, dtype=torch.float64)
    y = x.to("puone")
    assert torch.equal(torch.bincount(y, minlength=12).cpu(), torch.bincount(x, minlength=12))
    weighted = torch.bincount(y, weights.to("puone")).cpu()
    torch.testing.assert_close(weighted, torch.bincount(x, weights))
    assert torch.bincount(y[:0], minlength=2).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([1, -1], device="puone"))


@pytest.mark.parametrize("invert", [False, True])
def test_membership(invert: bool) -> None:
    elements, tests = torch.randint(0, 1000, (40, 50)), torch.randint(0, 1000, (300,))
    x, y = elements.to("puone"), tests.to("puone")
    expected = torch.isin(elements, tests, invert=invert)
    assert torch.equal(torch.isin(x, y, invert=invert).cpu(), expected)
    assert torch.isin(x, y[:0], invert=invert).cpu().unique().tolist() == [invert]
    assert torch.isin(x[0, 0], x, invert=invert).item() is not invert
    number = elements.flatten()[0].item()
    for tested in (number, number + 1000):
        found, wanted = (torch.isin(tested, t, invert=invert) for t in (x, elements))
        assert found.shape == () and found.item() is wanted.item()


def test_slices_are_scaled_down_to_a_norm() -> None:
    x = torch.randn(4, 5, 6) * torch.arange(5.0)[None, :, None]
    for p, dim in ((2, 1), (1, -1), (float("inf"), 0)):
        torch.testing.assert_close(
            x.to("puone").renorm(p, dim, 3.0).cpu(), x.renorm(p, dim, 3.0), rtol=1e-5, atol=1e-5
        )
