# SPDX-License-Identifier: BSD-3-Clause
"""Reductions and scans: what the operator database does not reach."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import torch_puone as puone

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "permuted": lambda x: x.permute(2, 0, 1),
    "gapped": lambda x: x[:, ::2, 1:],
    "expanded": lambda x: x[:, :1].expand(-1, 7, -1),
}
DIMS = [d for n in range(4) for d in itertools.combinations(range(3), n)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_any_dimensions_of_any_layout_are_reduced(
    layout: str, dims: tuple[int, ...], keepdim: bool
) -> None:
    x = torch.randn(13, 9, 70)
    view = LAYOUTS[layout]
    host, device = view(x), view(x.to("puone"))
    for op in (torch.sum, torch.amax, torch.var, torch.linalg.vector_norm):
        expected, actual = (
            op(host, dim=dims, keepdim=keepdim),
            op(device, dim=dims, keepdim=keepdim),
        )
        torch.testing.assert_close(actual.cpu(), expected, equal_nan=True)
        assert actual.shape == expected.shape
    assert not puone._fallback_counts()


@pytest.mark.parametrize("shape", [(300_000,), (1000, 700), (70_000, 3), (3, 70_000)], ids=str)
def test_work_split_over_cores_and_chunks_is_joined(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    y = x.to("puone")
    for dim in (*range(x.dim()), None):
        exact = x.double().sum() if dim is None else x.double().sum(dim)
        actual = y.sum() if dim is None else y.sum(dim)
        torch.testing.assert_close(actual.cpu().double(), exact, rtol=1e-6, atol=1e-4)
        assert torch.equal(y.argmax(dim).cpu(), x.argmax(dim))
        torch.testing.assert_close(y.cumsum(dim or 0).cpu(), x.cumsum(dim or 0))
    mean = torch.var_mean(y, dim=0)[1]
    torch.testing.assert_close(mean.cpu(), x.mean(0), rtol=1e-5, atol=1e-6)
    assert not puone._fallback_counts()


ELEMENTS = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


@pytest.mark.parametrize("dtype", ELEMENTS, ids=str)
def test_elements_of_any_type_and_alignment_are_reduced(dtype: torch.dtype) -> None:
    numbers = torch.randint(0, 3, (12, 5, 501))
    x, y = numbers.to(dtype), numbers.to(dtype).to("puone")
    views: list[Callable[[Tensor], Tensor]] = [
        lambda t: t[..., :496],
        lambda t: t[..., 1:],
        lambda t: t[:, ::2, ::2],
        lambda t: t.transpose(0, 2),
    ]
    for view in views:
        for dims in [(0,), (2,), (0, 2), (0, 1, 2)]:
            exact = view(x).sum(dims) if dtype.is_complex else view(x).long().sum(dims)
            total = view(y).sum(dims)
            assert torch.equal(total.cpu(), exact.to(total.dtype))
            assert torch.equal(view(y).all(dims).cpu(), view(x).all(dims))
            counts = torch.count_nonzero(view(y), dims).cpu()
            assert torch.equal(counts, torch.count_nonzero(view(x), dims))
        if dtype != torch.bool and not dtype.is_complex:
            assert torch.equal(view(y).argmax(2).cpu(), view(x).argmax(2))
            assert torch.equal(view(y).amin((0, 2)).cpu(), view(x).amin((0, 2)))
    assert not puone._fallback_counts()


BITS = """
import torch, torch_puone
torch.manual_seed(0)
x = torch.randn(1500, 701).to("puone")
ops = (torch.sum, torch.mean, torch.var, torch.linalg.vector_norm, torch.prod)
bits = [op(x, dim=d).cpu().double().sum().item().hex() for op in ops for d in (0, 1)]
print(bits, x.sum().item().hex(), x.var().item().hex())
"""


def test_bits_do_not_depend_on_the_number_of_cores() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", BITS],
            env=os.environ | {"PUONE_SIM_CORES": str(cores)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for cores in (1, 2, 3)
    }
    assert len(outputs) == 1


def test_float_sums_are_accurate() -> None:
    x = torch.full((1 << 20,), 0.1)
    exact = x.double().sum().item()
    for y in (x.to("puone"), x.to("puone").view(1 << 10, 1 << 10).t(), x.to("puone").view(-1, 2)):
        assert math.isclose(y.sum().item(), exact, rel_tol=5e-7)
        assert math.isclose(y.sum(0).sum().item(), exact, rel_tol=5e-7)
    half = torch.full((5000,), 1.0, dtype=torch.float16, device="puone")
    assert half.sum().item() == 5000
    assert half.view(-1, 1).expand(-1, 5).sum(0).tolist() == [5000] * 5


def test_variance_does_not_cancel_far_from_zero() -> None:
    x = torch.arange(4096.0).remainder(2).add(1e4)
    for y in (x.to("puone"), x.to("puone").view(64, 64)):
        assert y.var(correction=0).item() == pytest.approx(0.25, rel=1e-4)
    columns = x.view(-1, 1).expand(-1, 80).contiguous().to("puone")
    assert columns.var(0, correction=0).cpu().sub(0.25).abs().max() < 1e-4


def test_integers_wrap_around_and_add_up_in_64_bits() -> None:
    x = torch.full((3,), 2**62, device="puone")
    assert x.sum().item() == 3 * 2**62 - 2**64
    assert torch.full((300,), 200, dtype=torch.uint8, device="puone").sum().item() == 60000
    assert torch.tensor([True, True]).to("puone").sum().item() == 2
    assert torch.tensor([1, 2, 300]).to("puone").sum(dtype=torch.int8).item() == 47
    assert torch.tensor([2.0, -2.0]).to("puone").sum(dtype=torch.bool).item() is True


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=str)
def test_nan_wins_and_the_first_of_equals_is_found(dtype: torch.dtype) -> None:
    x = torch.tensor([3, 7, math.nan, 7, math.nan, -math.inf], dtype=dtype)
    y = x.to("puone")
    assert math.isnan(y.max().item()) and math.isnan(y.amin().item())
    assert (y.argmax().item(), y.argmin().item()) == (2, 2)
    assert (y[:2].argmax().item(), y[1:4:2].argmax().item()) == (1, 0)
    wide = y.view(-1, 1).expand(-1, 200).contiguous()
    values, indices = wide.max(0)
    assert values.cpu().isnan().all() and indices.cpu().eq(2).all()
    long = torch.zeros(200_000, dtype=dtype).to("puone")
    assert long.argmax().item() == 0
    assert y.nansum().item() == -math.inf
    assert not puone._fallback_counts()


def test_nothing_reduces_to_the_identity() -> None:
    x = torch.empty(0, 3, device="puone")
    assert x.sum(0).tolist() == [0, 0, 0] and x.prod().item() == 1
    assert x.mean().isnan() and x.sum(1).shape == (0,)
    assert x.all().item() is True and x.any(0).tolist() == [False] * 3
    assert torch.linalg.vector_norm(x).item() == 0
    assert x.cumsum(0).shape == (0, 3)
    with pytest.raises(RuntimeError, match="numel"):
        x.max()
    with pytest.raises(IndexError):
        x.amax(0)


def test_scans_run_along_any_dimension() -> None:
    x = torch.randn(5, 300, 7)
    y = x.to("puone")
    for dim in range(3):
        for op in (torch.cumsum, torch.cumprod, torch.logcumsumexp):
            torch.testing.assert_close(op(y, dim).cpu(), op(x, dim))
            swapped = op(y.transpose(0, 2), 2 - dim).transpose(0, 2)
            torch.testing.assert_close(swapped.cpu(), op(x, dim))
        for extreme in (torch.cummax, torch.cummin):
            for actual, expected in zip(extreme(y, dim), extreme(x, dim), strict=True):
                assert torch.equal(actual.cpu(), expected)
    assert not puone._fallback_counts()


def test_a_running_logarithm_of_sums_does_not_gather_rounding() -> None:
    x = torch.randn(3, 10_000)
    exact = x.double().logcumsumexp(1)
    torch.testing.assert_close(
        x.to("puone").logcumsumexp(1).cpu().double(), exact, rtol=2e-7, atol=2e-7
    )


def test_outputs_are_resized_and_their_strides_respected() -> None:
    x = torch.randn(6, 8)
    y = x.to("puone")
    out = torch.empty(8, 2, device="puone")
    torch.sum(y, 0, out=out[:, 1])
    torch.testing.assert_close(out[:, 1].cpu(), x.sum(0))
    values, indices = torch.empty(0, device="puone"), torch.empty(0, dtype=torch.int64).to("puone")
    torch.max(y, 1, out=(values, indices))
    assert torch.equal(values.cpu(), x.amax(1)) and torch.equal(indices.cpu(), x.argmax(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_integers_hold_no_variances(dtype: torch.dtype) -> None:
    x = torch.ones(4, 3, dtype=dtype, device="puone")
    for op in (torch.var, torch.std):
        with pytest.raises(RuntimeError, match=r"result type Float can't be cast .* type Int"):
            op(x, 0, out=torch.empty(3, dtype=torch.int32, device="puone"))
        assert op(x, 0, out=torch.empty(3, dtype=torch.float64, device="puone")).sum().item() == 0


def test_scans_have_no_dimension_that_is_not_there() -> None:
    for shape in ((0, 3), (2, 3)):
        for scan in (torch.cumsum, torch.cumprod, torch.logcumsumexp):
            with pytest.raises(IndexError, match="Dimension out of range"):
                scan(torch.empty(shape, device="puone"), 2)


def test_equal_compares_values_and_shapes() -> None:
    x = torch.randn(5, 4)
    y = x.to("puone")
    assert torch.equal(y, x.to("puone")) and torch.equal(y.t(), x.t().contiguous().to("puone"))
    assert not torch.equal(y, y + 1) and not torch.equal(y, y[:4])
    with pytest.raises(RuntimeError, match="different devices"):
        torch.equal(y, x)


def test_a_reduction_is_queued_and_not_waited_for() -> None:
    x = torch.ones(10, device="puone")
    puone._sleep_ms(30)
    total = x.sum()
    assert not puone.current_stream().query()
    assert total.item() == 10
