# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products on the device: every shape, layout and dtype, and what OpInfo does not reach."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch

import torch_puone as puone

FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
COMPLEX = (torch.complex64, torch.complex128)
INTEGER = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

# m, n, k: single elements, thin both ways, tiles with remainders, several steps of k, empty ones.
SHAPES = (
    (1, 1, 1),
    (3, 5, 7),
    (13, 33, 300),
    (1, 300, 77),
    (300, 1, 77),
    (6, 70, 260),
    (70, 6, 260),
    (210, 270, 520),
    (2, 257, 3),
    (0, 3, 4),
    (3, 4, 0),
)
LAYOUTS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda x: x,
    lambda x: x.mT.contiguous().mT,
    lambda x: x.new_empty(*x.shape, 2)[..., 0].copy_(x),
)


@pytest.fixture(autouse=True)
def _native() -> object:
    """Nothing in this file may need the CPU."""
    yield
    assert not puone._fallback_counts()


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    if dtype in INTEGER:
        return torch.randint(0, 100, shape, dtype=dtype)
    return torch.randn(shape, dtype=dtype)


def agree(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> None:
    """The device's result is as near to the exact one as its type allows."""
    result = function(*(argument.to("puone") for argument in arguments)).cpu()
    if result.dtype in INTEGER:
        assert torch.equal(result, function(*arguments))
        return
    wide = [a.to(torch.promote_types(a.dtype, torch.float64)) for a in arguments]
    exact = function(*wide)
    if exact.numel() == 0:
        assert result.shape == exact.shape
        return
    scale = function(*(a.abs() for a in wide)).max().item()  # of the terms: sums may cancel
    error = (result.to(exact.dtype) - exact).abs().max().item()
    assert error <= 4 * torch.finfo(result.dtype).eps * scale


@pytest.mark.parametrize("dtype", FLOATING + COMPLEX + INTEGER, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_are_right(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    m, n, k = shape
    agree(torch.mm, random(m, k, dtype=dtype), random(k, n, dtype=dtype))
    agree(
        lambda *x: torch.addmm(*x, beta=3, alpha=2),
        random(n, dtype=dtype),
        random(m, k, dtype=dtype),
        random(k, n, dtype=dtype),
    )
    agree(torch.bmm, random(3, m, k, dtype=dtype), random(3, k, n, dtype=dtype))
    agree(torch.mv, random(m, k, dtype=dtype), random(k, dtype=dtype))
    agree(torch.dot, random(k, dtype=dtype), random(k, dtype=dtype))
    agree(torch.vdot, random(k, dtype=dtype), random(k, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64], ids=str)
@pytest.mark.parametrize("shape", [(20, 40, 30), (2, 40, 300), (40, 2, 300)], ids=str)
def test_layouts_make_no_difference(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    m, n, k = shape
    a, b = random(2, m, k, dtype=dtype), random(2, k, n, dtype=dtype)
    for left, right in product(LAYOUTS, LAYOUTS):
        agree(lambda x, y, f=left, g=right: torch.bmm(f(x), g(y)), a, b)
        agree(lambda x, y, f=left, g=right: (g(y).mT @ f(x).mT).mT, a, b)


def test_a_broadcast_factor_is_read_in_place() -> None:
    agree(lambda x, y: torch.bmm(x.expand(5, 3, 4), y), random(3, 4), random(5, 4, 6))


@pytest.mark.parametrize("beta", [0, 0.5, 1])
def test_a_result_can_start_from_any_tensor(beta: float) -> None:
    a, b = random(4, 6), random(6, 5)
    for shape in ((5,), (4, 1), (1, 1), (4, 5), ()):
        agree(lambda *x: torch.addmm(*x, beta=beta), random(*shape), a, b)
    agree(lambda *x: torch.baddbmm(*x, beta=beta), random(5), random(2, 4, 6), random(2, 6, 5))
    agree(lambda *x: torch.addmv(*x, beta=beta), random(4), a, random(6))
    agree(lambda *x: torch.addbmm(*x, beta=beta), random(5), random(2, 4, 6), random(2, 6, 5))
    agree(lambda *x: torch.addr(*x, beta=beta), random(3, 5), random(3), random(5))


@pytest.mark.parametrize("dtype", FLOATING + INTEGER, ids=str)
def test_relu_and_gelu_follow_a_product(dtype: torch.dtype) -> None:
    bias, a, b = random(9, dtype=dtype), random(5, 300, dtype=dtype), random(300, 9, dtype=dtype)
    if dtype in INTEGER:
        bias = -50 * bias
    for addend in (bias, bias.expand(5, 9).clone()):
        agree(lambda *x: torch.addmm(*x, beta=3, alpha=2).relu(), addend, a, b)
        agree(lambda *x: torch._addmm_activation(*x, beta=3, alpha=2), addend, a, b)
    if dtype not in INTEGER:
        agree(lambda *x: torch._addmm_activation(*x, use_gelu=True), bias, a, b)


def test_relu_keeps_nan_and_writes_where_it_is_asked_to() -> None:
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    a[0, 0] = float("nan")
    out = torch.full((4, 2), -1.0, device="puone").t()
    square = torch.full((3, 3), -1.0, device="puone")
    torch._addmm_activation(
        *(x.to("puone") for x in (torch.tensor([-4.0, 0, 1, -3]), a, b)), out=out
    )
    assert out.stride() == (1, 2)
    assert out.cpu()[0].isnan().all()
    assert out.cpu()[1].tolist() == [0, 3, 4, 0]
    torch._addmm_activation(square, square, square, out=square)  # what it reads it overwrites
    assert square.cpu().tolist() == [[2.0] * 3] * 3


def test_beta_zero_hides_what_was_there() -> None:
    lost = torch.full((4, 5), float("nan"), device="puone")
    a, b = random(4, 6).to("puone"), random(6, 5).to("puone")
    assert torch.addmm(lost, a, b, beta=0).isfinite().cpu().all()
    assert torch.addmm(lost, a[:, :0], b[:0], beta=0).cpu().eq(0).all()
    assert torch.mm(a, b, out=lost).isfinite().cpu().all()
    puone._reset_fallback_counts()  # isfinite is not what is tested here


def test_nan_and_infinity_travel_as_in_arithmetic() -> None:
    a = torch.tensor([[float("inf"), 1.0], [0.0, float("nan")]])
    b = torch.tensor([[0.0, 2.0], [1.0, 1.0]])
    result = torch.mm(a.to("puone"), b.to("puone")).cpu()
    torch.testing.assert_close(result, torch.mm(a, b), equal_nan=True)


def test_integers_wrap() -> None:
    a = torch.full((1, 3), 2**31 - 1, dtype=torch.int32)
    b = torch.full((3, 1), 2, dtype=torch.int32)
    assert torch.mm(a.to("puone"), b.to("puone")).item() == -6


def test_half_precision_is_summed_in_float() -> None:
    ones = torch.ones(1, 4096, dtype=torch.float16, device="puone")
    assert torch.mm(ones, ones.t()).item() == 4096
    assert torch.dot(ones[0], ones[0]).item() == 4096


def test_a_result_may_overwrite_its_own_input() -> None:
    x = random(30, 30)
    square = x @ x
    for run in (
        lambda y: torch.mm(y, y, out=y),
        lambda y: torch.addmm(y, y, y, beta=0, out=y),
        lambda y: torch.mm(y, y.t().clone().t(), out=y.t()).t(),
    ):
        torch.testing.assert_close(run(x.to("puone")).cpu().abs().sum(), square.abs().sum())
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.mm(x.to("puone"), x.to("puone"), out=torch.ones(1, device="puone").expand(30, 30))


def test_out_is_resized_and_keeps_its_strides() -> None:
    a, b = random(3, 4), random(4, 5)
    assert torch.mm(a.to("puone"), b.to("puone"), out=torch.empty(0, device="puone")).shape == (
        3,
        5,
    )
    out = torch.empty(5, 3, device="puone").t()
    torch.mm(a.to("puone"), b.to("puone"), out=out)
    assert out.stride() == (1, 3)
    torch.testing.assert_close(out.cpu(), a @ b)


def test_the_number_of_streams_makes_no_difference() -> None:
    """A loop that finds the cores taken runs on one: every bit must stay the same."""
    a, b = random(300, 700).to("puone"), random(700, 260).to("puone")
    alone = torch.mm(a, b).cpu()
    streams = [puone.Stream() for _ in range(3)]
    puone.synchronize()
    results = []
    for stream in streams * 4:
        with puone.stream(stream):
            results.append(torch.mm(a, b))
    puone.synchronize()
    assert all(torch.equal(result.cpu(), alone) for result in results)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda x: torch.mm(x(2, 3), x(4, 2)), "cannot be multiplied"),
        (lambda x: torch.mm(x(2, 3), x(3, 2).double()), "same dtype"),
        (lambda x: torch.mm(x(2, 3), torch.ones(3, 2)), "same device"),
        (lambda x: torch.bmm(x(2, 3, 4), x(2, 5, 4)), "Expected size"),
        (lambda x: torch.dot(x(2), x(3)), "inconsistent tensor size"),
        (lambda x: torch.dot(x(2, 2), x(2, 2)), "1D tensors expected"),
        (lambda x: torch.addbmm(x(2, 2), x(2, 2, 3), x(3, 3, 2)), "same number of batches"),
    ],
)
def test_bad_arguments_are_refused(run: Callable[..., torch.Tensor], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        run(lambda *shape: torch.ones(shape, device="puone"))
