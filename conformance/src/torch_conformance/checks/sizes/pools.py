# SPDX-License-Identifier: BSD-3-Clause
"""Pools and resamplings are complete, as their gradients, in both memory formats."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from torch_conformance.authoring.api import STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import ROWS, Unary

#: Many channels in each memory format; long rows and columns; many images.
_CHANNELS = ((2, 65, 17, 16), (1, 129, 8, 9))
_LONG_IMAGES = ((1, 2, 65_537, 4), (1, 2, 4, 65_537), (ROWS, 1, 4, 4))

_POOLED: dict[str, Unary] = {
    "max_pool": lambda x: functional.max_pool2d(x, 3, 2, 1),
    "max_pool_dilated": lambda x: functional.max_pool2d(x, (2, 3), (1, 2), dilation=(2, 1)),
    "avg_pool": lambda x: functional.avg_pool2d(x, (2, 4), (1, 2), padding=1),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2),
    "unfolded": lambda x: functional.unfold(x, 3, padding=1, stride=2),
}
#: What has long sums or long rows of coordinates, which are not exact in float32.
_RESAMPLED: dict[str, Unary] = {
    "adaptive_avg": lambda x: functional.adaptive_avg_pool2d(x, (4, 8)),
    "adaptive_max": lambda x: functional.adaptive_max_pool2d(x, (5, 3)),
    "nearest_exact": lambda x: functional.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"),
    "shuffled": lambda x: functional.channel_shuffle(x, x.size(1)),
    "max_of_many": lambda x: functional.max_pool2d(x, 8, 8),
}


def _in_both_formats(m: Inputs, function: Unary) -> list[Any]:
    formats = (torch.contiguous_format, torch.channels_last)
    images = [m.distinct(*shape) % 1009 for shape in _CHANNELS]
    return [m.gradients(function, x.to(memory_format=f)) for x in images for f in formats]


@check("sizes/pool", "SIZE-009", cases=_POOLED, breadth=STANDARD)
def pools_are_complete(dev: Device, case: str) -> None:
    """A pool and its gradient are complete for many channels, images, rows and columns."""

    def program(m: Inputs) -> list[Any]:
        images = [m.distinct(*shape) % 1009 for shape in _LONG_IMAGES]
        long = [m.gradients(_POOLED[case], image) for image in images]
        return _in_both_formats(m, _POOLED[case]) + long

    agree_with_double(dev, program, rtol=1e-5, slack=1e-5)


@check("sizes/resampling", "SIZE-009", cases=_RESAMPLED, breadth=STANDARD)
def resamplings_are_complete(dev: Device, case: str) -> None:
    """A resampling and its gradient are complete for many channels, in both memory formats."""
    agree_with_double(dev, lambda m: _in_both_formats(m, _RESAMPLED[case]), rtol=1e-5, slack=1e-5)
