# SPDX-License-Identifier: BSD-3-Clause
"""The out= forms of the operators that compute derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, agree, check
from torch_conformance.checks.operator._programs import image


def _of_element(device: torch.device) -> tuple[Tensor, Tensor]:
    return image(device, 3, 4), image(device, 3, 4, seed=1)


def _padded(dims: int, *padding: int) -> Callable[[torch.device], tuple[Any, ...]]:
    sizes = (4, 5, 6)[:dims]
    wide = [n + padding[-1 - 2 * i] + padding[-2 - 2 * i] for i, n in enumerate(sizes)]
    return lambda d: (image(d, 2, *wide), image(d, 2, *sizes, seed=1), padding)


def _padded_volume(device: torch.device) -> tuple[Any, ...]:
    padding = (2, 1, 1, 2, 1, 1)
    return image(device, 1, 2, 6, 8, 9), image(device, 1, 2, 4, 5, 6, seed=1), padding


def _resized(*wide: int) -> Callable[..., Callable[[torch.device], tuple[Any, ...]]]:
    narrow = (1, 2, *[4] * len(wide))
    return lambda *more: lambda d: (image(d, 1, 2, *wide), wide, narrow, *more)


def _labels(device: torch.device, *shape: int) -> Tensor:
    return (torch.arange(12)[: torch.Size(shape).numel()] % 3).view(shape).to(device)


#: Operators of aten that compute derivatives, and their arguments.
_DERIVATIVES: dict[str, Callable[[torch.device], tuple[Any, ...]]] = {
    "reflection_pad1d_backward": _padded(1, 2, 1),
    "reflection_pad2d_backward": _padded(2, 2, 1, 1, 3),
    "reflection_pad3d_backward": _padded_volume,
    "replication_pad1d_backward": _padded(1, 2, 1),
    "replication_pad2d_backward": _padded(2, 2, 1, 1, 3),
    "replication_pad3d_backward": _padded_volume,
    "upsample_nearest1d_backward": _resized(7)(),
    "upsample_nearest2d_backward": _resized(7, 3)(),
    "upsample_nearest3d_backward": _resized(7, 3, 5)(),
    "_upsample_nearest_exact2d_backward": _resized(7, 3)(),
    "upsample_linear1d_backward": _resized(7)(False),
    "upsample_bilinear2d_backward": _resized(7, 3)(True),
    "upsample_trilinear3d_backward": _resized(7, 3, 5)(False),
    "upsample_bicubic2d_backward": _resized(7, 3)(False),
    "nll_loss_backward": lambda d: (
        image(d),
        image(d, 4, 3),
        _labels(d, 4),
        image(d, 3).abs(),
        1,
        0,
        torch.full((), 2.5, device=d),
    ),
    "nll_loss2d_backward": lambda d: (
        image(d, 2, 2, 3),
        image(d, 2, 3, 2, 3),
        _labels(d, 2, 2, 3),
        None,
        0,
        -100,
        torch.full((), 0.0, device=d),
    ),
    "mse_loss_backward": lambda d: (image(d), *_of_element(d), 1),
    "smooth_l1_loss_backward": lambda d: (*_of_element(d), image(d, 3, 4, seed=2), 0, 0.7),
    "huber_loss_backward": lambda d: (image(d), *_of_element(d), 2, 0.7),
    "soft_margin_loss_backward": lambda d: (image(d), *_of_element(d), 1),
    "gelu_backward": _of_element,
    "silu_backward": _of_element,
    "sigmoid_backward": _of_element,
    "tanh_backward": _of_element,
    "logit_backward": lambda d: (image(d, 3, 4), image(d, 3, 4, seed=1).sigmoid(), 0.1),
    "elu_backward": lambda d: (*_of_element(d)[:1], 1.2, 0.9, 1.1, False, _of_element(d)[1]),
    "leaky_relu_backward": lambda d: (*_of_element(d), 0.2, False),
    "hardtanh_backward": lambda d: (*_of_element(d), -0.5, 0.4),
    "hardsigmoid_backward": _of_element,
    "hardswish_backward": _of_element,
    "softplus_backward": lambda d: (*_of_element(d), 1.5, 2.0),
    "softshrink_backward": lambda d: (*_of_element(d), 0.3),
    "hardshrink_backward": lambda d: (*_of_element(d), 0.3),
    "threshold_backward": lambda d: (*_of_element(d), 0.1),
    "glu_backward": lambda d: (image(d, 3, 4), image(d, 3, 8, seed=1), 1),
    "_softmax_backward_data": lambda d: (
        image(d, 3, 4),
        image(d, 3, 4, seed=1).softmax(1),
        1,
        torch.float32,
    ),
    "_log_softmax_backward_data": lambda d: (
        image(d, 3, 4),
        image(d, 3, 4, seed=1).log_softmax(1),
        1,
        torch.float32,
    ),
    "avg_pool2d_backward": lambda d: (
        image(d, 1, 2, 3, 2),
        image(d, 1, 2, 6, 5, seed=1),
        (2, 2),
        (2, 2),
        (0, 0),
        False,
        True,
        None,
    ),
    "avg_pool3d_backward": lambda d: (
        image(d, 1, 2, 3, 2, 2),
        image(d, 1, 2, 6, 5, 4, seed=1),
        (2, 2, 2),
        (2, 2, 2),
        (0, 0, 0),
        False,
        True,
        None,
    ),
    "max_pool2d_with_indices_backward": lambda d: (
        image(d, 1, 2, 2, 2),
        image(d, 1, 2, 4, 4, seed=1),
        (2, 2),
        (2, 2),
        (0, 0),
        (1, 1),
        False,
        functional.max_pool2d(image(d, 1, 2, 4, 4, seed=1), 2, return_indices=True)[1],
    ),
    "max_pool3d_with_indices_backward": lambda d: (
        image(d, 1, 2, 2, 2, 2),
        image(d, 1, 2, 4, 4, 4, seed=1),
        (2, 2, 2),
        (2, 2, 2),
        (0, 0, 0),
        (1, 1, 1),
        False,
        functional.max_pool3d(image(d, 1, 2, 4, 4, 4, seed=1), 2, return_indices=True)[1],
    ),
    "adaptive_max_pool2d_backward": lambda d: (
        image(d, 1, 2, 2, 2),
        image(d, 1, 2, 4, 5, seed=1),
        functional.adaptive_max_pool2d(image(d, 1, 2, 4, 5, seed=1), 2, return_indices=True)[1],
    ),
}


def _writing_overload(name: str) -> Callable[..., Tensor]:
    """The overload of an operator that writes to its last argument, which has this name."""
    packet = getattr(torch.ops.aten, name)
    for overload in packet.overloads():
        operator = getattr(packet, overload)
        last = operator._schema.arguments[-1]
        if last.is_out:
            return lambda *given, into: operator(*given, **{last.name: into})
    raise AssertionError(f"{name} has no form with out=")


@check("operator/derivative_out", "OP-002", cases=_DERIVATIVES)
def derivatives_are_written_to_out(dev: Device, case: str) -> None:
    """The out= forms of derivatives resize and fill a tensor, and fill and return another."""
    write, given = _writing_overload(case), _DERIVATIVES[case]

    def program(device: torch.device) -> list[Tensor]:
        resized = torch.empty(0, device=device)
        write(*given(device), into=resized)
        returned = write(*given(device), into=torch.full_like(resized, float("nan")))
        return [resized, returned]

    agree(dev, program)
