# SPDX-License-Identifier: BSD-3-Clause
"""Pooling on the device: every geometry, forward and backward, against the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch.nn import functional

import torch_puone as puone

Pool = Callable[..., Any]
SIZES = (9, 8, 7)


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    """Nothing in this file may need the CPU, but for the mean that stands for a pool of all."""
    yield
    assert not puone._fallback_counts().keys() - {"aten::mean.out"}


def run(pool: Pool, x: torch.Tensor, device: str) -> list[torch.Tensor]:
    """Results, indices and the gradient."""
    leaf = x.detach().to(device).requires_grad_()
    results = pool(leaf)
    results = results if isinstance(results, tuple) else (results,)
    slopes = torch.linspace(-1, 1, results[0].numel(), dtype=x.dtype).reshape(results[0].shape)
    results[0].backward(slopes.to(device))
    assert leaf.grad is not None
    return [t.detach().cpu() for t in (*results, leaf.grad)]


def agree(pool: Pool, x: torch.Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(
        run(pool, x, "puone"), run(pool, x, "cpu"), rtol=tolerance, atol=tolerance
    )


def inputs(dimensions: int, dtype: torch.dtype = torch.float32) -> Iterator[torch.Tensor]:
    sizes = SIZES[:dimensions]
    yield torch.randn(2, 3, *sizes, dtype=dtype)
    yield torch.randn(3, *sizes, dtype=dtype)
    yield torch.randn(3, 2, *sizes, dtype=dtype).transpose(0, 1)
    if dimensions > 1:
        form = torch.channels_last if dimensions == 2 else torch.channels_last_3d
        yield torch.randn(2, 3, *sizes, dtype=dtype).contiguous(memory_format=form)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_maximum_over_every_window_is_right(dimensions: int) -> None:
    pool = getattr(functional, f"max_pool{dimensions}d")
    windows = product((2, 3), (None, 1, 3), (0, 1), (1, 2), (False, True))
    for kernel, stride, padding, dilation, ceil in windows:
        for x in inputs(dimensions):
            agree(partial(_indexed, pool, kernel, stride, padding, dilation, ceil), x)


def _indexed(pool: Pool, *window: Any) -> Any:
    *geometry, x = window
    return pool(x, *geometry, return_indices=True)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_average_over_every_window_is_right(dimensions: int) -> None:
    pool = getattr(functional, f"avg_pool{dimensions}d")
    windows = product((2, 3), (None, 1, 3), (0, 1), (False, True), (False, True))
    for kernel, stride, padding, ceil, count in windows:
        for x in inputs(dimensions):
            agree(lambda x, w=(kernel, stride, padding, ceil, count): pool(x, *w), x)
    if dimensions > 1:
        agree(lambda x: pool(x, 2, divisor_override=3), next(inputs(dimensions)))


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_adaptive_windows_are_right(dimensions: int, kind: str) -> None:
    pool = getattr(functional, f"adaptive_{kind}_pool{dimensions}d")
    indices = {"return_indices": True} if kind == "max" else {}
    for size in ((5, 4, 3), (1, 1, 1), SIZES, (12, 10, 9)):
        for x in inputs(dimensions):
            agree(lambda x, s=size[:dimensions]: pool(x, s, **indices), x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_every_dtype_is_right(dtype: torch.dtype) -> None:
    tolerance = 1e-9 if dtype == torch.float64 else 2e-2
    for x in inputs(2, dtype):
        agree(lambda x: functional.max_pool2d(x, 3, 2, return_indices=True), x, tolerance)
        agree(lambda x: functional.avg_pool2d(x, 3, 2), x, tolerance)
        agree(lambda x: functional.adaptive_avg_pool2d(x, (2, 3)), x, tolerance)


def test_nan_is_the_greatest() -> None:
    x = torch.randn(1, 1, 4, 4)
    x[0, 0, 1, 1] = float("nan")
    values, indices = functional.max_pool2d(x.to("puone"), 2, return_indices=True)
    assert values.cpu().isnan().flatten().tolist() == [True, False, False, False]
    assert indices[0, 0, 0, 0].item() == 5
    low = torch.full((1, 1, 2, 2), -torch.inf, device="puone")
    assert functional.max_pool2d(low, 2).item() == -torch.inf


def test_layouts_of_results_are_the_cpus() -> None:
    for x in inputs(2):
        for pool in (functional.max_pool2d, functional.avg_pool2d):
            assert pool(x.to("puone"), 2).stride() == pool(x, 2).stride()


def test_an_empty_batch_pools_to_an_empty_one() -> None:
    x = torch.empty(0, 3, 4, 4, device="puone")
    assert functional.max_pool2d(x, 2).shape == (0, 3, 2, 2)
    assert functional.avg_pool2d(x, 2).shape == (0, 3, 2, 2)
    assert functional.adaptive_avg_pool2d(x, 2).shape == (0, 3, 2, 2)


def test_bad_geometries_are_refused() -> None:
    x = torch.zeros(1, 1, 4, 4, device="puone")
    with pytest.raises(RuntimeError, match="pad should be at most half"):
        functional.max_pool2d(x, 2, padding=2)
    with pytest.raises(RuntimeError, match="non-zero size"):
        functional.adaptive_avg_pool2d(x[:, :, :0], 2)
    with pytest.raises(RuntimeError, match="Output size is too small"):
        functional.max_pool3d(x[None], 9)
