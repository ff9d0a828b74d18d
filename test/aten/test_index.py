# SPDX-License-Identifier: BSD-3-Clause
"""Reading and writing by indices and masks, beyond what OpInfo's samples reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from interpreter import Python

import torch_puone as puone


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    """Nothing here may run on the CPU."""
    yield
    assert not puone._fallback_counts()


def on_device(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [tensor.to("puone") for tensor in tensors]


OUT_OF_BOUNDS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add_(0, i, x[:2].clone()),
    "index_copy_": lambda x, i: x.index_copy_(0, i, x[:2].clone()),
    "index_fill_": lambda x, i: x.index_fill_(0, i, 1.0),
    "index": lambda x, i: x[i],
    "index_put_": lambda x, i: x.index_put_((i,), x[0].clone(), accumulate=True),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "scatter": lambda x, i: x.scatter_(0, i[:, None], 1.0),
    "take": lambda x, i: x.take(i * 5),
    "put_": lambda x, i: x.put_(i * 5, x[0, :2].clone()),
    "embedding_dense_backward": lambda x, i: torch.ops.aten.embedding_dense_backward(
        x[:2], i, 3, -1, False
    ),
}


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
@pytest.mark.parametrize("bad", [7, -8])
def test_an_index_out_of_bounds_is_an_error_at_the_next_synchronisation(
    name: str, bad: int
) -> None:
    x, index = on_device(torch.zeros(7, 5), torch.tensor([1, bad]))
    puone.synchronize()
    OUT_OF_BOUNDS[name](x, index)
    with pytest.raises(torch.AcceleratorError, match=rf"{name}: index -?\d+ is out of bounds"):
        puone.synchronize()
    assert x.cpu().shape == (7, 5)  # the stream goes on


def test_more_places_than_elements_to_put_there_are_an_error() -> None:
    x, mask, source = on_device(torch.zeros(5), torch.ones(5, dtype=torch.bool), torch.ones(4))
    x.masked_scatter_(mask, source)
    with pytest.raises(torch.AcceleratorError, match="true more often"):
        puone.synchronize()


def test_indexing_does_not_wait_for_the_device() -> None:
    x, index = on_device(torch.arange(10.0), torch.tensor([3, 3, 9]))
    puone.synchronize()
    puone._sleep_ms(50)
    result = x.index_select(0, index).index_add_(0, index[:1] - 3, x[1:2])
    assert not puone.current_stream().query()
    assert result.tolist() == [4.0, 3.0, 9.0]


@pytest.mark.parametrize("shape", [(300, 500), (150_000,), (3, 50_000), (50_000, 3)])
@pytest.mark.parametrize("dim", [0, -1])
def test_scattered_sums_are_added_in_order(shape: tuple[int, ...], dim: int) -> None:
    x, source = torch.randn(shape), torch.randn(shape)
    index = torch.randint(0, min(shape[dim], 7), shape)
    expected = x.double().scatter_add(dim, index, source.double())
    result = x.to("puone").scatter_add(dim, *on_device(index, source)).cpu()
    torch.testing.assert_close(result.double(), expected, atol=1e-2, rtol=1e-4)
    again = x.to("puone").scatter_add(dim, *on_device(index, source)).cpu()
    assert torch.equal(result, again)


def test_the_last_of_several_writes_to_one_place_stays() -> None:
    index = torch.zeros(100_000, dtype=torch.int64)
    values = torch.arange(100_000.0)
    x, index, values = on_device(torch.zeros(1), index, values)
    assert x.index_put((index,), values).item() == 99_999
    assert x.scatter(0, index, values).item() == 99_999
    assert x.index_copy(0, index, values).item() == 99_999


PROGRAM = """
import hashlib, torch, torch_puone
generator = torch.Generator().manual_seed(0)
source = torch.randn(2000, 64, generator=generator).to("puone")
index = torch.randint(0, 50, (2000,), generator=generator).to("puone")
grid = torch.randint(0, 64, (2000, 64), generator=generator).to("puone")
x = torch.zeros(2000, 64, device="puone")
results = [
    x.index_add(0, index, source),
    x.index_put((index,), source, accumulate=True),
    x.index_put((index,), source),
    x.scatter_add(1, grid, source),
    x.scatter_reduce(0, grid, source, "prod", include_self=False),
    torch.ops.aten.embedding_dense_backward(source, index, 50, 3, True),
]
print(hashlib.sha256(b"".join(r.cpu().numpy().tobytes() for r in results)).hexdigest())
"""


def test_the_number_of_cores_does_not_show_in_the_bits(python: Python) -> None:
    runs = [python(PROGRAM, autoload=True, env={"PUONE_SIM_CORES": cores}) for cores in ("1", "2")]
    assert runs[0].stdout, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout


def test_several_indices_masks_and_slices_combine_as_on_the_cpu() -> None:
    x = torch.randn(5, 6, 7, 8)
    a, b = torch.tensor([0, -1, 2]), torch.tensor([[1], [-2]])
    mask = torch.rand(6, 7) > 0.5
    y, c, d, device_mask = on_device(x, a, b, mask)
    assert torch.equal(x[a, :, b], y[c, :, d].cpu())
    assert torch.equal(x[:, a, b], y[:, c, d].cpu())
    assert torch.equal(x[..., a.int()], y[..., c.int()].cpu())
    assert torch.equal(x[:, mask], y[:, device_mask].cpu())
    assert torch.equal(x[a], y[a].cpu())  # an index on the CPU is allowed
    x[a, :, b], y[c, :, d] = 3.0, 3.0
    x[:, mask], y[:, device_mask] = 4.0, 4.0
    x.transpose(0, 3)[a] = x[:3, :1, :, :5].transpose(1, 2)[:1, :1].clone()
    y.transpose(0, 3)[c] = y[:3, :1, :, :5].transpose(1, 2)[:1, :1].clone()
    assert torch.equal(x, y.cpu())


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.uint16, torch.complex32])
def test_types_that_are_only_moved_can_be_indexed(dtype: torch.dtype) -> None:
    x = torch.arange(12, dtype=torch.float32).to(dtype).reshape(3, 4)
    index = torch.tensor([2, 0])
    result = x.to("puone").index_select(0, index.to("puone"))
    assert torch.equal(result.cpu().float(), x.index_select(0, index).float())


@pytest.mark.parametrize("n", [0, 1, 4095, 4096, 4097, 300_001])
def test_nonzero_elements_are_found_across_chunks(n: int) -> None:
    mask = torch.rand(n) > 0.7
    device_mask = mask.to("puone")
    assert torch.equal(mask.nonzero(), device_mask.nonzero().cpu())
    values = torch.randn(n)
    assert torch.equal(values[mask], values.to("puone").masked_select(device_mask).cpu())
    spread = values.masked_scatter(mask, values)
    assert torch.equal(
        spread, values.to("puone").masked_scatter(device_mask, values.to("puone")).cpu()
    )
    static = torch.nonzero_static(device_mask, size=10, fill_value=-1).cpu()
    assert torch.equal(static, torch.nonzero_static(mask, size=10, fill_value=-1))


def test_nothing_to_index_is_no_work() -> None:
    x, index = on_device(torch.randn(0, 3), torch.empty(0, dtype=torch.int64))
    assert x.index_select(0, index).shape == (0, 3)
    assert x[index].shape == (0, 3)
    assert x.index_add(0, index, x).shape == (0, 3)
    assert x.gather(0, index[:, None]).shape == (0, 1)
    grad = torch.ops.aten.embedding_dense_backward(x, index, 4, -1, False)
    assert grad.tolist() == [[0.0] * 3] * 4


def test_a_maximum_lets_nan_through() -> None:
    nan = float("nan")
    x, index, source = on_device(
        torch.tensor([nan, 1.0, 2.0]),
        torch.tensor([0, 1, 1, 2]),
        torch.tensor([1.0, nan, 5.0, 3.0]),
    )
    for reduction in ("amax", "amin"):
        result = x.scatter_reduce(0, index, source, reduction)
        assert result.cpu().isnan().tolist()[:2] == [True, True]
        assert result[2].item() == (3.0 if reduction == "amax" else 2.0)


def test_integers_wrap_and_booleans_join() -> None:
    x, index = on_device(torch.tensor([200, 1], dtype=torch.uint8), torch.tensor([0, 0]))
    assert x.index_add(0, index, x).tolist() == [(200 + 200 + 1) % 256, 1]
    flags, source = on_device(torch.tensor([False, False]), torch.tensor([True, True]))
    assert flags.index_put((index,), source, accumulate=True).tolist() == [True, False]


def test_tensors_of_another_device_are_refused() -> None:
    x, index = on_device(torch.randn(4), torch.tensor([1]))
    with pytest.raises(RuntimeError, match="same device"):
        x.index_select(0, index.cpu())
    with pytest.raises(RuntimeError, match="same device"):
        x.masked_select(torch.ones(4, dtype=torch.bool))
    with pytest.raises(RuntimeError, match="same device"):
        x.gather(0, index.cpu())


def test_an_assertion_fails_when_the_device_gets_there() -> None:
    true, zero = on_device(torch.tensor(True), torch.zeros(1))
    torch._assert_async(true)
    puone.synchronize()
    torch._assert_async(zero, "all is well")
    with pytest.raises(torch.AcceleratorError, match="all is well"):
        puone.synchronize()
