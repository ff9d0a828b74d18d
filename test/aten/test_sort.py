# SPDX-License-Identifier: BSD-3-Clause
"""Order: what the operator database does not reach of sort, topk, kthvalue, median and mode."""

from __future__ import annotations

import math

import pytest
import torch

import torch_puone as puone

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_stay_in_their_order(dtype: torch.dtype, descending: bool) -> None:
    x = torch.randint(0, 6, (3, 500, 4)).to(dtype)
    for dim in range(3):
        expected = torch.sort(x, dim=dim, stable=True, descending=descending)
        actual = torch.sort(x.to("puone"), dim=dim, descending=descending)
        assert torch.equal(actual.values.cpu(), expected.values)
        assert torch.equal(actual.indices.cpu(), expected.indices)
    assert not puone._fallback_counts()


def test_nan_is_the_largest() -> None:
    x = torch.tensor([2.0, math.nan, -math.inf, -0.0, math.nan, 0.0, math.inf])
    y = x.to("puone")
    assert y.argsort().tolist() == [2, 3, 5, 0, 6, 1, 4]
    assert y.argsort(descending=True).tolist() == [1, 4, 6, 0, 3, 5, 2]
    assert y.topk(2).indices.tolist() == [1, 4]
    assert y.topk(3, largest=False).indices.tolist() == [2, 3, 5]
    assert y.kthvalue(6).indices.item() == 1
    assert math.isnan(y.median().item()) and y.median(0).indices.item() == 1
    assert y.nanmedian().item() == 0 and y.nanmedian(0).indices.item() == 5
    assert y[1:2].nanmedian(0).indices.item() == 0


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_parts_of_an_order_are_the_orders(n: int) -> None:
    x = torch.stack([torch.randperm(n) for _ in range(5)], 1)
    y = x.to("puone")
    ordered = x.sort(0).values
    for k in {1, (n + 1) // 2, n}:
        assert torch.equal(y.topk(k, 0, largest=False).values.cpu(), ordered[:k])
        assert torch.equal(y.topk(k, 0).values.cpu(), ordered.flip(0)[:k])
        values, indices = y.kthvalue(k, 0, keepdim=True)
        assert torch.equal(values.cpu(), ordered[k - 1 : k])
        assert torch.equal(x.gather(0, indices.cpu()), values.cpu())
    assert torch.equal(y.median(0).values.cpu(), x.median(0).values)
    assert y.median().item() == x.median().item()
    assert not puone._fallback_counts()


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_lines_too_long_for_one_block_are_in_order(dtype: torch.dtype) -> None:
    x = torch.randint(-100, 100, (2, 5000)).to(dtype)
    x[:, 1::999] = x.max()
    y = x.to("puone")
    for descending in (False, True):
        expected = x.sort(dim=1, stable=True, descending=descending)
        actual = y.sort(1, descending=descending)
        assert torch.equal(actual.values.cpu(), expected.values)
        assert torch.equal(actual.indices.cpu(), expected.indices)
    ordered = x.sort(1).values
    assert torch.equal(y.topk(9).values.cpu(), ordered.flip(1)[:, :9])
    assert torch.equal(y.kthvalue(1234).values.cpu(), ordered[:, 1233])
    assert torch.equal(y.median(1).values.cpu(), ordered[:, 2499])
    assert torch.equal(y.mode(1).values.cpu(), x.mode(1).values)
    assert not puone._fallback_counts()


def test_nan_is_behind_all_numbers_of_a_long_line() -> None:
    x = torch.randn(9000)
    x[::3] = math.nan
    y = x.to("puone")
    order = y.argsort().cpu()
    assert torch.equal(x[order[:6000]], x[~x.isnan()].sort().values)
    assert order[6000:].tolist() == list(range(0, 9000, 3))
    assert y.nanmedian().item() == x.nanmedian().item()
    assert math.isnan(y.median().item()) and y.median(0).indices.item() == 0


def test_the_mode_is_the_smallest_of_the_most_frequent() -> None:
    x = torch.tensor([[3, 1, 2, 2, 3, 0], [5, 5, 5, 1, 1, 9]])
    values, indices = x.to("puone").mode(1)
    assert values.tolist() == [2, 5] and indices.tolist() == [3, 2]
    assert not puone._fallback_counts()


def test_views_outputs_and_empty_dimensions() -> None:
    x = torch.randn(6, 40)
    y = x.to("puone")
    out = torch.empty(40, 6, device="puone").t()
    indices = torch.empty(0, dtype=torch.int64, device="puone")
    torch.sort(y[:, ::1], 1, out=(out, indices))
    assert torch.equal(out.cpu(), x.sort(1).values)
    assert torch.equal(y.t()[::3].sort(0).values.cpu(), x.t()[::3].sort(0).values)
    assert y[:, :0].sort(1).values.shape == (6, 0) and y[:0].topk(3, 1).values.shape == (0, 3)
    assert torch.tensor(3.0).to("puone").sort().values.item() == 3
    assert math.isnan(y[:0].median().item())
    with pytest.raises(RuntimeError, match="out of range"):
        y.topk(41)
    with pytest.raises(IndexError, match="non-zero size"):
        y[:0].median(0)
