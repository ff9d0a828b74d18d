# SPDX-License-Identifier: BSD-3-Clause
"""Operators that put elements in another place: cat, triangles, flips, windows, bags."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional

import torch_puone as puone


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    """Nothing here may run on the CPU."""
    yield
    assert not puone._fallback_counts()


def check(function: Callable[..., torch.Tensor], *tensors: torch.Tensor) -> None:
    """The device's result is the CPU's; sums may be added up in another order."""
    expected = function(*tensors)
    result = function(*(tensor.to("puone") for tensor in tensors))
    assert result.device.type == "puone"
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 64, 65, 200])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_any_number_of_tensors_is_joined(count: int, dim: int) -> None:
    sizes = [[3, 4, 5] for _ in range(count)]
    for i, size in enumerate(sizes):
        size[dim] = i % 4
    check(lambda *parts: torch.cat(parts, dim), *(torch.randn(size) for size in sizes))


def test_joining_promotes_types_and_takes_any_strides() -> None:
    a, b = torch.randn(4, 6), torch.arange(24).reshape(6, 4)
    check(lambda x, y: torch.cat([x, y.t()]), a, b)
    check(lambda x, y: torch.cat([x.half(), x.double(), y.t().bool()], 1), a, b)
    check(lambda x: torch.cat([x.t(), x.t()[:, :2]], 1), a)
    check(lambda x: torch.stack([x, x + 1, x * 2], 1), a)


def test_joining_many_tensors_costs_one_launch() -> None:
    parts = [torch.full((2,), float(i), device="puone") for i in range(60)]
    big = torch.randn(1000, 1000)
    assert torch.equal(torch.cat(parts).cpu(), torch.arange(60.0).repeat_interleave(2))
    check(lambda x: torch.cat([x, x[:1], x], 0), big)  # split over cores at any byte


def test_an_empty_vector_fits_everywhere() -> None:
    check(lambda x, y: torch.cat([x, y, x], 1), torch.randn(2, 3), torch.empty(0))


def test_joining_into_a_given_tensor() -> None:
    a = torch.randn(2, 3).to("puone")
    wide = torch.zeros(4, 6, device="puone")
    torch.cat([a, a], out=wide[:, ::2])
    assert torch.equal(wide.cpu()[:, ::2], torch.cat([a.cpu(), a.cpu()]))
    with pytest.raises(RuntimeError, match=r"overlap|memory location"):
        torch.cat([wide[:2], a.new_zeros(2, 6)], out=wide)


@pytest.mark.parametrize("diagonal", [-9, -2, 0, 1, 9])
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (2, 3, 4, 4), (0, 4)])
def test_triangles(shape: tuple[int, ...], diagonal: int) -> None:
    x = torch.randn(shape)
    for function in (torch.tril, torch.triu):
        check(lambda t, f=function: f(t, diagonal), x)
        check(lambda t, f=function: f(t.mT, diagonal), x)
    check(lambda t: t.clone().tril_(diagonal), x)
    rows, columns = shape[-2:]
    for indices in (torch.tril_indices, torch.triu_indices):
        expected = indices(rows, columns, diagonal)
        assert torch.equal(indices(rows, columns, diagonal, device="puone").cpu(), expected)


def test_flips_and_rolls() -> None:
    x = torch.randn(3, 4, 5)
    check(lambda t: t.flip(0), x)
    check(lambda t: t.flip(0, 2).flip(1), x)
    check(lambda t: t.transpose(0, 2)[::2].flip(-1, 0), x)
    check(lambda t: t.roll((1, -2), (0, 2)), x)
    check(lambda t: t.roll(7), x)
    check(lambda t: t.rot90(1, (0, 2)), x)
    check(lambda t: t[:0].flip(0), x)


def test_windows_are_cut_out_and_added_back() -> None:
    x = torch.randn(2, 3, 8, 9)
    check(lambda t: functional.unfold(t, (2, 3), dilation=2, padding=1, stride=2), x)
    columns = functional.unfold(x, (2, 3), padding=1)
    check(lambda t: functional.fold(t, (8, 9), (2, 3), padding=1), columns)
    for size, step in ((3, 1), (3, 2), (2, 4)):
        grad = torch.randn(2, 3, 8, (9 - size) // step + 1, size)
        check(lambda g, s=size, t=step: torch.ops.aten.unfold_backward(g, x.shape, 3, s, t), grad)


def test_repeats() -> None:
    counts = torch.tensor([2, 0, 3, 1])
    check(lambda t: torch.repeat_interleave(t), counts)
    check(lambda t: torch.repeat_interleave(t.int()), counts)
    check(lambda t: torch.repeat_interleave(t, output_size=6), counts)
    check(lambda x, t: x.repeat_interleave(t, 0), torch.randn(4, 3), counts)
    check(lambda x: x.repeat(2, 1, 3), torch.randn(4, 3))


def test_a_negative_number_of_repeats_is_an_error() -> None:
    torch.repeat_interleave(torch.tensor([3, -1], device="puone"), output_size=2)
    with pytest.raises(torch.AcceleratorError, match="repeats can not be negative"):
        puone.synchronize()


def test_channels_are_shuffled() -> None:
    check(lambda t: torch.channel_shuffle(t, 3), torch.randn(2, 6, 4, 4))
    check(lambda t: functional.pixel_shuffle(t, 2), torch.randn(2, 8, 3, 3))
    check(lambda t: functional.pixel_unshuffle(t, 2), torch.randn(2, 2, 4, 4))


def test_gradients_of_views_stay_on_the_device() -> None:
    x = torch.randn(4, 6).to("puone").requires_grad_()
    views = [
        x[1] * 2,
        x[:, 1::2],
        x.diagonal(),
        functional.pad(x, (1, 2), value=3.0),
        x.narrow(1, 2, 3),
    ]
    for view in views:
        view.backward(torch.ones_like(view))
    assert x.grad is not None
    expected = torch.ones(4, 6)
    expected[1] += 2
    expected[:, 1::2] += 1
    expected[range(4), range(4)] += 1
    expected[:, 2:5] += 1
    assert torch.equal(x.grad.cpu(), expected)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_bags_and_their_gradients(mode: str, padding: int | None, dtype: torch.dtype) -> None:
    weight = torch.randn(10, 33).to(dtype)
    indices = torch.tensor([1, 2, 3, 3, 7, 7, 1, 9, 3])
    offsets = torch.tensor([0, 2, 2, 4, 8])  # one bag is empty, one only padding
    results = []
    for device in ("cpu", "puone"):
        table = weight.to(device, copy=True).requires_grad_()
        out = functional.embedding_bag(
            indices.to(device), table, offsets.to(device), mode=mode, padding_idx=padding
        )
        out.backward(torch.arange(33, device=device, dtype=dtype).expand(5, 33))
        assert table.grad is not None
        results.append((out.detach().cpu(), table.grad.cpu()))
    for expected, actual in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


def test_bags_with_weights_and_a_last_offset() -> None:
    results = []
    weight, scales = torch.randn(10, 5), torch.randn(6)
    for device in ("cpu", "puone"):
        table, factors = (t.to(device, copy=True).requires_grad_() for t in (weight, scales))
        out = functional.embedding_bag(
            torch.tensor([1, 2, 3, 3, 7, 7], device=device, dtype=torch.int32),
            table,
            torch.tensor([0, 3, 6], device=device),
            mode="sum",
            per_sample_weights=factors,
            include_last_offset=True,
        )
        out.backward(out.detach())
        assert table.grad is not None
        assert factors.grad is not None
        results.append((out.detach().cpu(), table.grad.cpu(), factors.grad.cpu()))
    for expected, actual in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


def test_an_index_outside_the_table_of_bags_is_an_error() -> None:
    weight = torch.randn(4, 3).to("puone")
    indices, offsets = (torch.tensor(v, device="puone") for v in ([1, 4], [0, 1]))
    puone.synchronize()
    functional.embedding_bag(indices, weight, offsets)
    with pytest.raises(torch.AcceleratorError, match="embedding_bag: index 4 is out of bounds"):
        puone.synchronize()


@pytest.mark.parametrize("right", [False, True])
def test_places_in_sorted_sequences(right: bool) -> None:
    sequence, values = torch.randn(50).sort().values, torch.randn(7, 9)
    values[0, 0] = float("nan")
    values[0, 1] = sequence[3]
    check(lambda s, v: torch.searchsorted(s, v, right=right), sequence, values)
    check(
        lambda s, v: torch.bucketize(v.t(), s.double(), right=right, out_int32=True),
        sequence,
        values,
    )
    check(lambda s: torch.searchsorted(s, 0.25, right=right), sequence)
    rows = torch.randn(7, 20)
    check(lambda s, v: torch.searchsorted(s, v, right=right), rows.sort().values, values)
    check(
        lambda s, v, o: torch.searchsorted(s, v, sorter=o, right=right),
        rows,
        values,
        rows.argsort(),
    )
    check(lambda s, v: torch.searchsorted(s[:0], v, right=right), sequence, values)
