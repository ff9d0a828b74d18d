# SPDX-License-Identifier: BSD-3-Clause
"""Softmax, the norms and the negative log likelihood: what the operator database does not reach."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import torch_puone as puone


def grad_of(x: Tensor) -> Tensor:
    assert x.grad is not None
    return x.grad.cpu()


def assert_same_with_gradients(
    f: Callable[..., Tensor], *inputs: Tensor, rtol: float = 1e-4, atol: float = 1e-5
) -> None:
    """f gives what it gives on the CPU, forwards and backwards, without the CPU's help."""
    host = [x.clone().requires_grad_() for x in inputs]
    device = [x.to("puone").requires_grad_() for x in inputs]
    expected, actual = f(*host), f(*device)
    torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=rtol, atol=atol)
    grad = torch.randn_like(expected)
    grad_on_device = grad.to("puone")
    puone._reset_fallback_counts()
    expected.backward(grad)
    actual.backward(grad_on_device)
    for x, y in zip(host, device, strict=True):
        torch.testing.assert_close(grad_of(y), grad_of(x), rtol=rtol, atol=atol)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "f", [functional.softmax, functional.log_softmax], ids=["softmax", "log_softmax"]
)
def test_softmax_runs_along_any_dimension(f: Callable[..., Tensor], dim: int) -> None:
    x = torch.randn(5, 300, 33) * 10
    assert_same_with_gradients(lambda x: f(x, dim), x)
    assert_same_with_gradients(lambda x: f(x.transpose(0, 2), dim), x)
    assert not puone._fallback_counts()


def test_softmax_of_extremes_is_the_cpus() -> None:
    x = torch.tensor(
        [
            [1e4, 1e4, -1e4],
            [-math.inf, 0, 1],
            [-math.inf, -math.inf, -math.inf],
            [math.nan, 0, 0],
            [math.inf, 0, 0],
        ]
    )
    for f in (functional.softmax, functional.log_softmax):
        torch.testing.assert_close(f(x.to("puone"), 1).cpu(), f(x, 1), equal_nan=True)


# Devices hold short rows in registers, read vectors where rows begin at a multiple of their size,
# and read long rows twice: 8192 and 4096 elements are where two of them stop holding.
LENGTHS = [1, 10, 64, 257, 1000, 4096, 4104, 8192, 8195]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("offset", [0, 1], ids=["aligned", "unaligned"])
def test_rows_of_any_length_are_normalised(length: int, offset: int) -> None:
    x = torch.randn(2 * length + offset)

    def rows(x: Tensor) -> Tensor:
        return x[offset:].view(2, length)

    assert_same_with_gradients(lambda x: functional.softmax(rows(x), 1), x)
    assert_same_with_gradients(lambda x: functional.log_softmax(rows(x), 1), x, atol=1e-4)
    if length > 1:
        assert_same_with_gradients(lambda x: functional.layer_norm(rows(x), (length,)), x)
        assert_same_with_gradients(lambda x: functional.group_norm(rows(x)[:, None], 1), x)


@pytest.mark.parametrize("low", [-math.inf, 1e4], ids=str)
def test_extremes_in_long_rows_of_softmax_are_the_cpus(low: float) -> None:
    x = torch.zeros(5, 9000)
    x[0] = low
    x[1, :8999] = low
    x[2, 1:] = low
    x[3, 8800] = math.nan
    x[4, 17] = math.inf
    for f in (functional.softmax, functional.log_softmax):
        torch.testing.assert_close(f(x.to("puone"), 1).cpu(), f(x, 1), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_softmax_of_half_is_computed_in_float(dtype: torch.dtype) -> None:
    x = torch.randn(4, 1000, dtype=dtype)
    wide = torch.softmax(x.to("puone"), 1, dtype=torch.float32)
    torch.testing.assert_close(wide.cpu(), torch.softmax(x.float(), 1))
    narrow = torch.log_softmax(x.to("puone"), 1)
    assert narrow.dtype == dtype
    torch.testing.assert_close(narrow.cpu(), torch.log_softmax(x.float(), 1).to(dtype))
    assert not puone._fallback_counts()


@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(affine: bool) -> None:
    x, weight, bias = torch.randn(40, 3, 130) + 5, torch.randn(130), torch.randn(130)
    if affine:
        assert_same_with_gradients(
            lambda *a: functional.layer_norm(a[0], (130,), *a[1:]), x, weight, bias
        )
    else:
        assert_same_with_gradients(lambda x: functional.layer_norm(x.transpose(0, 1), (130,)), x)
        assert_same_with_gradients(lambda x: functional.layer_norm(x, (3, 130)), x)
    assert not puone._fallback_counts()


def test_the_mean_of_a_long_row_keeps_its_digits() -> None:
    x = torch.sigmoid(10 + torch.randn(2, 50_000))  # the mean is 20,000 times the deviation
    expected = functional.layer_norm(x.double(), (50_000,), eps=1e-30)
    normalised = functional.layer_norm(x.to("puone"), (50_000,), eps=1e-30)
    torch.testing.assert_close(normalised.cpu().double(), expected, rtol=0, atol=0.01)


@pytest.mark.parametrize("shape", [(4, 12, 5, 7), (4, 12), (3, 12, 1)], ids=str)
@pytest.mark.parametrize("groups", [1, 3, 12])
def test_group_norm(shape: tuple[int, ...], groups: int) -> None:
    if groups == 12 and math.prod(shape[2:]) == 1:
        groups = 4  # one element has no variance
    x, weight, bias = torch.randn(shape), torch.randn(12), torch.randn(12)
    assert_same_with_gradients(
        lambda *a: functional.group_norm(a[0], groups, *a[1:]), x, weight, bias
    )
    assert not puone._fallback_counts()


@pytest.mark.parametrize(
    ("shape", "last"),
    [((8, 70, 4, 5), False), ((8, 70, 4, 5), True), ((64, 70), False), ((6, 70, 9), False)],
    ids=str,
)
def test_batch_norm_trains_and_keeps_statistics(shape: tuple[int, ...], last: bool) -> None:
    x = torch.randn(shape) * 2 + 3
    module = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)](70)
    nn.init.normal_(module.weight)
    nn.init.normal_(module.bias)
    other = type(module)(70).to("puone")
    other.load_state_dict(module.state_dict())
    memory_format = torch.channels_last if last else torch.contiguous_format
    for training in (True, True, False):
        module.train(training)
        other.train(training)
        host = x.clone().contiguous(memory_format=memory_format).requires_grad_()
        device = host.detach().to("puone").requires_grad_()
        expected, actual = module(host), other(device)
        torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-4)
        assert actual.stride() == expected.stride()
        grad = torch.randn_like(expected)
        module.zero_grad()
        other.zero_grad()
        expected.backward(grad)
        actual.backward(grad.to("puone"))
        torch.testing.assert_close(grad_of(device), grad_of(host), rtol=1e-3, atol=1e-4)
        for p, q in zip(module.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(grad_of(q), grad_of(p), rtol=1e-3, atol=1e-3)
    for a, b in zip(module.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(b.cpu(), a, rtol=1e-5, atol=1e-5)
    assert not puone._fallback_counts()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("spatial", [(), (3, 4)], ids=["vector", "image"])
def test_nll_loss(reduction: str, spatial: tuple[int, ...]) -> None:
    x = torch.randn(6, 9, *spatial)
    target = torch.randint(0, 9, (6, *spatial))
    target.view(-1)[::4] = 2
    weight = torch.rand(9)
    for w in (None, weight):

        def loss(x: Tensor, w: Tensor | None = w) -> Tensor:
            there = x.device
            return functional.nll_loss(
                x,
                target.to(there),
                None if w is None else w.to(there),
                ignore_index=2,
                reduction=reduction,
            )

        assert_same_with_gradients(loss, x)
    assert not puone._fallback_counts()


_IN = torch.ones(4, 6, 5)
_ALL = [True, True, True]


def _group(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, rows: int = 4) -> object:
    return torch.ops.aten.native_group_norm_backward(grad, x, mean, rstd, None, rows, 6, 5, 2, _ALL)


def _layer(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> object:
    return torch.ops.aten.native_layer_norm_backward(grad, x, [5], mean, rstd, None, None, _ALL)


def _batch(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> object:
    return torch.ops.aten.native_batch_norm_backward(
        grad, x, None, None, None, mean, rstd, True, 1e-5, _ALL
    )


@pytest.mark.parametrize(
    ("backward", "sizes"),
    [(_group, (4, 2)), (_layer, (4, 6, 1)), (_batch, (6,))],
)
def test_what_a_norm_saved_has_to_fit_the_input(
    backward: Callable[..., object], sizes: tuple[int, ...]
) -> None:
    x, saved = _IN.to("puone"), torch.ones(sizes, device="puone")
    backward(x, x, saved, saved)
    one = torch.ones(1, device="puone")
    for wrong in ((one, x, saved, saved), (x, x, one, saved), (x, x, saved, one)):
        with pytest.raises(RuntimeError, match="sizes"):
            backward(*wrong)
    with pytest.raises(RuntimeError, match="Expected an input of 100 x 6 x 5 elements"):
        _group(x, x, saved, saved, rows=100)


def test_a_target_out_of_bounds_is_an_error_at_the_next_synchronisation() -> None:
    x = torch.randn(3, 4, device="puone")
    loss = functional.nll_loss(x, torch.tensor([0, 4, 1]).to("puone"))
    with pytest.raises(RuntimeError, match="out of bounds"):
        loss.item()


def test_nothing_is_waited_for() -> None:
    x = torch.randn(4, 6, device="puone")
    puone._sleep_ms(30)
    y = functional.layer_norm(functional.softmax(x, 1), (6,))
    assert not puone.current_stream().query()
    assert y.cpu().isfinite().all()
