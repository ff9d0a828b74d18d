# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions are complete, as their gradients, in each memory format and data type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import LAST, ROWS


def _conv(
    function: Callable[..., Tensor], x: tuple[int, ...], weight: tuple[int, ...], **options: Any
) -> Callable[[Inputs, bool], Any]:
    """A convolution of these shapes with all its gradients; `last`: with the channels last."""
    channels = (
        weight[1] * options.get("groups", 1) if "transpose" in function.__name__ else weight[0]
    )

    def program(m: Inputs, last: bool) -> list[Tensor]:
        image, kernel = m.whole(*x), m.whole(*weight, seed=1)
        if last and image.dim() == 4:
            image, kernel = image.to(memory_format=LAST), kernel.to(memory_format=LAST)
        inputs = image, kernel, m.whole(channels, seed=2)
        return m.gradients(lambda *tensors: function(*tensors, **options), *inputs)

    return program


_CONVOLUTIONS: dict[str, Callable[[Inputs, bool], Any]] = {
    "channels": _conv(functional.conv2d, (2, 65, 9, 11), (129, 65, 3, 3), padding=1),
    "more_channels": _conv(functional.conv2d, (1, 129, 7, 5), (65, 129, 1, 1)),
    "strided": _conv(functional.conv2d, (3, 17, 37, 41), (33, 17, 3, 5), stride=(2, 3), padding=2),
    "dilated": _conv(functional.conv2d, (2, 9, 37, 41), (17, 9, 3, 3), dilation=(2, 3)),
    "grouped": _conv(functional.conv2d, (2, 66, 17, 13), (129, 22, 3, 3), groups=3, padding=1),
    "depthwise": _conv(functional.conv2d, (2, 65, 33, 37), (65, 1, 3, 3), groups=65, padding=1),
    "multiplied": _conv(functional.conv2d, (2, 65, 17, 13), (130, 1, 3, 3), groups=65),
    "wide": _conv(functional.conv2d, (1, 2, 3, 65_537), (3, 2, 2, 3), padding=1),
    "high": _conv(functional.conv2d, (1, 2, 65_537, 2), (3, 2, 3, 2), padding=1),
    "many_images": _conv(functional.conv2d, (ROWS, 1, 2, 2), (2, 1, 2, 2)),
    "long": _conv(functional.conv1d, (2, 3, 65_537), (5, 3, 7), padding=3),
    "pixel": _conv(functional.conv2d, (5, 65, 1, 1), (33, 65, 1, 1)),
    "grouped_pixel": _conv(functional.conv2d, (2, 66, 1, 1), (30, 22, 1, 1), groups=3),
    "volume": _conv(functional.conv3d, (2, 9, 7, 9, 11), (17, 9, 3, 3, 3), padding=1),
    "transposed": _conv(
        functional.conv_transpose2d, (2, 65, 9, 7), (65, 33, 3, 3), stride=2, output_padding=1
    ),
    "transposed_long": _conv(functional.conv_transpose1d, (2, 3, 40_001), (3, 5, 4), stride=2),
}


@check("sizes/convolution", "SIZE-009", cases=_CONVOLUTIONS, breadth=STANDARD)
def convolutions_are_complete(dev: Device, case: str) -> None:
    """A convolution and its three gradients are complete for odd, many and long dimensions."""
    agree_with_double(dev, lambda m: _CONVOLUTIONS[case](m, False), slack=1e-5)


@check(
    "sizes/convolution_channels_last",
    "SIZE-009",
    cases=[name for name in _CONVOLUTIONS if name not in ("long", "volume", "transposed_long")],
    breadth=STANDARD,
)
def convolutions_of_channels_last_are_complete(dev: Device, case: str) -> None:
    """A convolution of image and kernel with channels last is complete, as its gradients."""
    agree_with_double(dev, lambda m: _CONVOLUTIONS[case](m, True), slack=1e-5)


@check(
    "sizes/convolution_type",
    "SIZE-009",
    cases=("channels", "grouped", "depthwise", "strided", "transposed", "pixel"),
    dtypes=("float16", "bfloat16", "float64"),
    breadth=STANDARD,
)
def convolutions_of_each_type_are_complete(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A convolution of each floating data type is complete, as its gradients."""
    agree_with_double(dev, lambda m: _CONVOLUTIONS[case](m, False), dtype, slack=1e-5)
