# SPDX-License-Identifier: BSD-3-Clause
"""Upsampling and padding on the device: every mode, forward and backward, against the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional

import torch_puone as puone

MODES = {1: "linear", 2: "bilinear", 3: "trilinear"}
SIZES = (7, 6, 5)


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    """Nothing in this file may need the CPU."""
    yield
    assert not puone._fallback_counts()


def run(function: Callable[..., Any], x: torch.Tensor, device: str) -> list[torch.Tensor]:
    """The result and the gradient."""
    leaf = x.detach().to(device).requires_grad_()
    result = function(leaf)
    slopes = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).reshape(result.shape)
    result.backward(slopes.to(x.dtype).to(device))
    assert leaf.grad is not None
    return [result.detach().cpu(), leaf.grad.cpu()]


def agree(function: Callable[..., Any], x: torch.Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(
        run(function, x, "puone"), run(function, x, "cpu"), rtol=tolerance, atol=tolerance
    )


def inputs(dimensions: int, dtype: torch.dtype = torch.float32) -> Iterator[torch.Tensor]:
    sizes = SIZES[:dimensions]
    yield torch.randn(2, 3, *sizes, dtype=dtype)
    yield torch.randn(3, 2, *sizes, dtype=dtype).transpose(0, 1)
    if dimensions == 2:
        x = torch.randn(2, 3, *sizes, dtype=dtype)
        yield x.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "corners"])
def test_every_scale_is_right(dimensions: int, mode: str) -> None:
    options: dict[str, Any] = {"mode": mode}
    if mode in ("linear", "corners"):
        options = {"mode": MODES[dimensions], "align_corners": mode == "corners"}
    for x in inputs(dimensions):
        for size in ((14, 12, 10), (3, 2, 1), (7, 6, 5), (9, 4, 11)):
            agree(lambda x, s=size: functional.interpolate(x, s[:dimensions], **options), x)
        for scale in (2.0, 0.6, 1.7):
            agree(lambda x, s=scale: functional.interpolate(x, scale_factor=s, **options), x)


@pytest.mark.parametrize("corners", [False, True])
def test_cubic_curves_are_right(corners: bool) -> None:
    options: dict[str, Any] = {"mode": "bicubic", "align_corners": corners}
    for x in inputs(2):
        for size in ((14, 12), (3, 2), (7, 6), (9, 4), (1, 30)):
            agree(lambda x, s=size: functional.interpolate(x, s, **options), x)
        agree(lambda x: functional.interpolate(x, scale_factor=1.7, **options), x)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("factors", [(1.05, 2.0), (1.0001, 1.7), (2.1, 1.05)], ids=str)
def test_factors_that_leave_or_double_a_size_count(mode: str, factors: tuple[float, float]) -> None:
    for x in inputs(2):
        agree(lambda x: functional.interpolate(x, scale_factor=factors, mode=mode), x)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_every_padding_is_right(dimensions: int, mode: str) -> None:
    for x in inputs(dimensions):
        for padding in ((1, 2, 3, 4, 0, 5), (0, 0, 0, 0, 0, 0), (4, 4, 5, 5, 6, 6)):
            pad = padding[: 2 * dimensions]
            agree(lambda x, p=pad: functional.pad(x, p, mode), x)
    agree(lambda x: functional.pad(x, (-1, 2), "replicate"), next(inputs(1)))


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float16, torch.bfloat16, torch.complex64], ids=str
)
def test_every_dtype_is_right(dtype: torch.dtype) -> None:
    tolerance = 3e-2 if dtype.itemsize == 2 else 1e-5
    for x in inputs(2, dtype):
        agree(lambda x: functional.pad(x, (2, 1, 3, 0), "reflect"), x, tolerance)
        if dtype.is_complex:
            continue
        agree(lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"), x, tolerance)
        agree(lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), x, tolerance)


def test_bytes_are_taken_from_the_nearest() -> None:
    x = torch.arange(24, dtype=torch.uint8).reshape(1, 2, 3, 4)
    result = functional.interpolate(x.to("puone"), scale_factor=1.5)
    assert torch.equal(result.cpu(), functional.interpolate(x, scale_factor=1.5))


def test_a_padding_that_would_reflect_twice_is_refused() -> None:
    with pytest.raises(RuntimeError, match="less than the corresponding input dimension"):
        functional.pad(torch.zeros(1, 1, 3, 3, device="puone"), (3, 0, 0, 0), "reflect")
