# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions on the device: every geometry, forward and backward, against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
import torch
from interpreter import Python
from torch.nn import functional

CONVOLUTIONS: dict[tuple[int, bool], Callable[..., torch.Tensor]] = {
    (1, False): functional.conv1d,
    (2, False): functional.conv2d,
    (3, False): functional.conv3d,
    (1, True): functional.conv_transpose1d,
    (2, True): functional.conv_transpose2d,
    (3, True): functional.conv_transpose3d,
}
conv2d = CONVOLUTIONS[2, False]
Results = list[torch.Tensor]
Convolution = Callable[..., torch.Tensor]


def run(function: Convolution, arguments: Results, device: str) -> Results:
    """The result and the gradients of all arguments."""
    leaves = [a.detach().to(device).requires_grad_() for a in arguments]
    result = function(*leaves)
    slopes = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).reshape(result.shape)
    result.backward(slopes.to(result.dtype).to(device))
    return [t.detach().cpu() for t in (result, *(leaf.grad for leaf in leaves)) if t is not None]


def agree(function: Convolution, *arguments: torch.Tensor) -> None:
    actual = run(function, list(arguments), "puone")
    wide = torch.promote_types(arguments[0].dtype, torch.float64)
    exact = run(function, [a.to(wide) for a in arguments], "cpu")
    for got, want in zip(actual, exact, strict=True):
        error = (got.to(wide) - want).abs().max().item()
        assert error <= 32 * torch.finfo(got.dtype).eps * max(1.0, want.abs().max().item())


@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 3, 4])
def test_every_geometry_is_right(dimensions: int, kernel: int, transposed: bool) -> None:
    convolution = CONVOLUTIONS[dimensions, transposed]
    x = torch.randn(2, 4, *(11, 9, 10)[:dimensions])
    for stride, padding, dilation, groups in product((1, 2, 3), (0, 1), (1, 2), (1, 2)):
        options = {
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "groups": groups,
        }
        if transposed and stride > 1:
            options["output_padding"] = 1
        shape = (4, 6 // groups) if transposed else (6, 4 // groups)
        w = torch.randn(*shape, *[kernel] * dimensions)
        agree(partial(convolution, **options), x, w, torch.randn(6))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_every_dtype_is_right(dtype: torch.dtype) -> None:
    x, w = torch.randn(2, 8, 9, 9, dtype=dtype), torch.randn(6, 8, 3, 3, dtype=dtype)
    agree(lambda *a: conv2d(*a, padding=1), x, w, torch.randn(6, dtype=dtype))
    agree(lambda *a: conv2d(*a, stride=2), x, w)
    agree(lambda *a: conv2d(*a, groups=8), x, torch.randn(16, 1, 3, 3, dtype=dtype))


@pytest.mark.parametrize("channels", [(1, 1), (3, 16), (16, 3), (70, 40)], ids=str)
def test_tiles_with_remainders_are_right(channels: tuple[int, int]) -> None:
    source, result = channels
    x, w = torch.randn(2, source, 23, 21), torch.randn(result, source, 3, 5)
    agree(lambda *a: conv2d(*a, padding=(1, 2)), x, w, torch.randn(result))
    agree(lambda *a: conv2d(*a, stride=(2, 1)), x, w)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_is_right(multiplier: int, stride: int) -> None:
    x, w = torch.randn(2, 6, 40, 41), torch.randn(6 * multiplier, 1, 3, 3)
    agree(lambda *a: conv2d(*a, groups=6, padding=1, stride=stride), x, w)


@pytest.mark.parametrize(
    ("source", "taps", "options"),
    [
        ((2, 3, 700), (7,), {"padding": 3}),  # more columns than a tile has
        ((1, 2, 1300), (5,), {"stride": 2, "dilation": 3}),
        ((3, 4, 9, 7), (3, 5), {"padding": (1, 2), "stride": (3, 1)}),
        ((1, 2, 130, 60), (4, 2), {"stride": 4, "dilation": (1, 5), "padding": 1}),
        ((1, 2, 5, 5), (1, 1), {"stride": 3}),
        ((2, 2, 5, 6, 7), (3, 2, 3), {"padding": 1, "stride": (2, 1, 2), "dilation": (1, 2, 1)}),
        ((1, 2, 4, 70_000), (1, 2), {"dilation": (1, 66_000)}),  # what a row reaches fits no cache
        ((1, 2, 40, 40), (31, 31), {"padding": 15}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_depthwise_of_any_window_is_right(
    source: tuple[int, ...],
    taps: tuple[int, ...],
    options: dict[str, int | tuple[int, ...]],
    dtype: torch.dtype,
) -> None:
    function = CONVOLUTIONS[len(taps), False]
    channels = source[1]
    x = torch.randn(source, dtype=dtype)
    w = torch.randn(channels, 1, *taps, dtype=dtype)
    agree(lambda *a: function(*a, groups=channels, **options), x, w)


def test_what_no_tap_meets_is_not_in_a_depthwise_gradient() -> None:
    """Infinite elements in the columns that lie beside the ones that a tap meets."""
    x = torch.ones(1, 2, 9, 9)
    x[..., 7:] = torch.inf
    x = x.to("puone")
    w = torch.ones(2, 1, 3, 3, device="puone", requires_grad=True)
    conv2d(x, w, groups=2).sum().backward()
    assert w.grad is not None
    assert w.grad[..., 0].cpu().eq(49).all()
    assert w.grad[..., 1:].isinf().all()


def test_padding_is_not_multiplied_with_infinite_numbers() -> None:
    """Of a depthwise convolution: an infinite weight, and an infinite element of the gradient."""
    x, w, slopes = torch.ones(1, 2, 5, 4), torch.ones(2, 1, 3, 3), torch.ones(1, 2, 5, 4)
    w[0, 0, 0, 2] = torch.inf
    slopes[0, 1, 0, 0] = torch.inf
    found = []
    for device in ("cpu", "puone"):
        leaves = [t.detach().to(device).requires_grad_() for t in (x.clone(), w.clone())]
        result = conv2d(*leaves, groups=2, padding=1)
        result.backward(slopes.to(device))
        gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
        found.append([t.detach().cpu() for t in (result, *gradients)])
    for expected, got in zip(*found, strict=True):
        assert torch.equal(got, expected)
    assert not any(t.isnan().any() for t in found[0])


def test_a_padding_wider_than_the_source_is_zeros() -> None:
    agree(
        lambda *a: conv2d(*a, padding=4, dilation=3),
        torch.randn(1, 1, 2, 2),
        torch.randn(1, 1, 3, 3),
    )


def test_channels_last_stays_channels_last() -> None:
    x, w = torch.randn(2, 8, 9, 9), torch.randn(6, 8, 3, 3)
    agree(lambda x, w: conv2d(x.contiguous(memory_format=torch.channels_last), w), x, w)
    y = functional.conv2d(
        x.to("puone").contiguous(memory_format=torch.channels_last), w.to("puone")
    )
    assert y.is_contiguous(memory_format=torch.channels_last)


def test_an_empty_batch_has_an_empty_result_and_no_gradient() -> None:
    x = torch.randn(0, 3, 5, 5, device="puone", requires_grad=True)
    w = torch.randn(4, 3, 3, 3, device="puone", requires_grad=True)
    y = conv2d(x, w)
    assert y.shape == (0, 4, 3, 3)
    y.sum().backward()
    assert w.grad is not None
    assert w.grad.cpu().eq(0).all()


def test_second_derivatives_are_right() -> None:
    x = torch.randn(1, 2, 4, 4, dtype=torch.float64, device="puone", requires_grad=True)
    w = torch.randn(2, 2, 2, 2, dtype=torch.float64, device="puone", requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x, w: conv2d(x, w, padding=1), (x, w))


def test_operands_of_different_types_or_devices_are_refused() -> None:
    x, w = torch.randn(1, 2, 4, 4, device="puone"), torch.randn(2, 2, 2, 2)
    with pytest.raises(RuntimeError, match="should be the same"):
        conv2d(x, w.double().to("puone"))
    with pytest.raises(RuntimeError):
        conv2d(x, w)


@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
def test_what_has_no_size_or_no_step_is_refused(transposed: bool) -> None:
    convolve = torch.conv_transpose2d if transposed else torch.conv2d
    x, w = torch.ones(1, 3, 4, 4, device="puone"), torch.ones(3, 3, 0, 3, device="puone")
    with pytest.raises(RuntimeError, match="kernel size should be greater than zero"):
        convolve(x, w)
    with pytest.raises(RuntimeError, match="non-positive dilation is not supported"):
        convolve(x, torch.ones(3, 3, 2, 2, device="puone"), dilation=0)


def test_a_gradient_of_other_sizes_is_refused() -> None:
    x, w = torch.ones(1, 3, 4, 4, device="puone"), torch.ones(3, 3, 2, 2, device="puone")
    with pytest.raises(RuntimeError, match="Expected a gradient of the sizes"):
        torch.ops.aten.convolution_backward(
            *(torch.ones(1, 1, 1, 1, device="puone"), x, w, None),
            *([1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]),
        )


def test_a_transposed_convolution_without_positions_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Output size is too small"):
        torch.conv_transpose2d(
            torch.ones(1, 1, 1, 4, device="puone"),
            torch.ones(1, 1, 1, 1, device="puone"),
            padding=1,
        )


def test_steps_beyond_the_source_take_no_time() -> None:
    """One launch for each remainder modulo the steps would be ten billion."""
    x = torch.ones(1, 1, 4, 4, device="puone", requires_grad=True)
    conv2d(x, torch.ones(1, 1, 2, 2, device="puone"), stride=10**5).sum().backward()
    assert x.grad is not None
    assert x.grad.cpu()[0, 0].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]


@pytest.mark.parametrize("dilation", [2**17, 3_100_000_000, 2**61])
def test_taps_that_are_far_apart_meet_only_padding(dilation: int) -> None:
    """Sizes of what a tile's windows reach would overflow."""
    x, w = torch.ones(1, 2, 4, 4, device="puone"), torch.ones(2, 1, 2, 2, device="puone")
    w.requires_grad_()
    y = conv2d(x, w, padding=dilation // 2, dilation=dilation, groups=2)
    y.sum().backward()
    assert w.grad is not None
    assert y.shape == x.shape and not y.any() and not w.grad.any()


PROGRAM = """
import torch
import torch_puone as puone
from torch.nn import functional

torch.manual_seed(0)
def leaf(*shape):
    return torch.randn(shape).to("puone").requires_grad_()
a, b = leaf(300, 700), leaf(700, 260)
x, w, d = leaf(4, 6, 30, 31), leaf(20, 6, 3, 3), leaf(6, 1, 3, 3)
y = functional.conv2d(functional.conv2d(x, d, groups=6), w, stride=2, padding=1)
z = functional.interpolate(functional.max_pool2d(y, 3, 2), scale_factor=1.7, mode="bilinear")
torch.autograd.backward([torch.mm(a, b), z], [torch.ones(300, 260).to("puone"), torch.ones_like(z)])
for tensor in (z, a.grad, b.grad, x.grad, w.grad, d.grad):
    print(hash(tensor.detach().cpu().numpy().tobytes()))
"""


def test_the_number_of_cores_makes_no_difference(python: Python) -> None:
    """Products, convolutions, pools and upsampling, forward and backward: the same bits."""
    seed = {"PYTHONHASHSEED": "0"}
    runs = [
        python(PROGRAM, autoload=True, env=seed | {"PUONE_SIM_CORES": cores})
        for cores in ("1", "2", "5")
    ]
    assert all(run.returncode == 0 for run in runs), runs[0].stderr
    assert runs[0].stdout.count("\n") == 6
    assert runs[0].stdout == runs[1].stdout == runs[2].stdout
