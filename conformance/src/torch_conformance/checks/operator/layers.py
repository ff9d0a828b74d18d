# SPDX-License-Identifier: BSD-3-Clause
"""Layers of networks and their gradients: convolutions, recurrent ones, norms, pools and losses."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import (
    Device,
    Program,
    agree,
    check,
    gradients,
    leaf,
    noise,
    ramp,
)
from torch_conformance.authoring.backend import first_line
from torch_conformance.checks.operator._programs import ints


def _conv(dims: int, *, transposed: bool = False, **options: Any) -> Program:
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    groups = options.get("groups", 1)
    bias = options.pop("bias", True)
    inputs, outputs = options.pop("channels", (4, 4))

    def program(device: torch.device) -> list[Tensor]:
        x = leaf(device, 2, inputs, *(7, 6, 5)[:dims])
        w = leaf(device, outputs, inputs // groups, *(3, 2, 3)[:dims], seed=1)
        leaves = [x, w]
        if bias:
            leaves.append(leaf(device, outputs, seed=2))
        function = getattr(functional, name)
        return gradients(function(x, w, leaves[2] if bias else None, **options), *leaves)

    return program


_CONVOLUTIONS: dict[str, Program] = {
    "conv1d": _conv(1),
    "conv1d_stride_padding": _conv(1, stride=2, padding=1),
    "conv1d_same": _conv(1, padding="same"),
    "conv2d": _conv(2),
    "conv2d_no_bias": _conv(2, bias=False),
    "conv2d_channels": _conv(2, channels=(5, 37)),
    "conv2d_stride_padding": _conv(2, stride=(2, 1), padding=(1, 2)),
    "conv2d_dilation": _conv(2, dilation=2),
    "conv2d_groups": _conv(2, groups=2),
    "conv2d_depthwise": _conv(2, groups=4),
    "conv3d": _conv(3),
    "conv_transpose1d": _conv(1, transposed=True, stride=2),
    "conv_transpose2d": _conv(2, transposed=True, stride=2, padding=1, output_padding=1),
    "conv_transpose2d_groups": _conv(2, transposed=True, groups=2),
    "conv_transpose3d": _conv(3, transposed=True),
}


@check("operator/convolution", "OP-010", cases=tuple(_CONVOLUTIONS))
def convolutions_agree_forward_and_backward(dev: Device, case: str) -> None:
    """Convolutions and their gradients for input, weight and bias agree with the CPU."""
    agree(dev, _CONVOLUTIONS[case], rtol=1e-4, atol=1e-4)


#: What is done to a batch of images before a convolution with a gradient for its weight only.
_IMAGES: dict[str, Callable[[Tensor], Tensor]] = {
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "unbatched": lambda x: x[0],
    "half_gradient": lambda x: x,
}


@check("operator/convolution_format", "OP-010", cases=_IMAGES)
def convolutions_take_other_layouts(dev: Device, case: str) -> None:
    """channels_last and unbatched inputs, and a gradient for one input only, work."""

    def program(device: torch.device) -> list[Tensor]:
        x, w = noise((2, 3, 6, 5)).to(device), leaf(device, 4, 3, 3, 3, seed=1)
        return gradients(functional.conv2d(_IMAGES[case](x), w), w)

    agree(dev, program, rtol=1e-4, atol=1e-4)


def _recurrent(kind: str, hidden: int = 4, **options: Any) -> Program:
    def program(device: torch.device) -> list[Tensor]:
        torch.manual_seed(5)
        module = getattr(torch.nn, kind)(3, hidden, **options).to(device)
        x = leaf(device, 5, 2, 3)
        output, state = module(x)
        found = gradients(output, x, *module.parameters())
        return [*found, *(state if isinstance(state, tuple) else (state,))]

    return program


def _packed(device: torch.device) -> list[Tensor]:
    torch.manual_seed(5)
    module = torch.nn.GRU(3, 4).to(device)
    x = leaf(device, 5, 2, 3)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
    output, _ = torch.nn.utils.rnn.pad_packed_sequence(module(packed)[0])
    return gradients(output, x)


def _cells(device: torch.device) -> list[Tensor]:
    torch.manual_seed(5)
    lstm, gru = torch.nn.LSTMCell(3, 4).to(device), torch.nn.GRUCell(3, 4).to(device)
    x = leaf(device, 2, 3)
    h, c = lstm(x)
    return [*gradients(h + c, x, *lstm.parameters()), *gradients(gru(x), x, *gru.parameters())]


_RECURRENT: dict[str, Program] = {
    "lstm": _recurrent("LSTM"),
    "lstm_wide": _recurrent("LSTM", hidden=37),
    "lstm_layers": _recurrent("LSTM", num_layers=2),
    "lstm_bidirectional": _recurrent("LSTM", bidirectional=True),
    "lstm_projection": _recurrent("LSTM", proj_size=2),
    "lstm_batch_first": _recurrent("LSTM", batch_first=True, bias=False),
    "gru": _recurrent("GRU"),
    "gru_wide": _recurrent("GRU", hidden=37),
    "gru_layers": _recurrent("GRU", num_layers=2, bidirectional=True),
    "rnn_tanh": _recurrent("RNN"),
    "rnn_relu": _recurrent("RNN", nonlinearity="relu"),
    "packed": _packed,
    "cells": _cells,
}


@check("operator/recurrent", "OP-011", cases=tuple(_RECURRENT))
def recurrent_networks_agree_forward_and_backward(dev: Device, case: str) -> None:
    """LSTM, GRU and RNN modules, their states and all gradients agree with the CPU."""
    agree(dev, _RECURRENT[case], rtol=1e-4, atol=1e-5)


def _bag(device: torch.device, mode: str, **options: Any) -> list[Tensor]:
    weight = leaf(device, 6, 4)
    keywords = {k: v.to(device) for k, v in options.items()}
    # In each, the other numbers are gaps.
    indices = ints(device, 1, 3, 5, 3, 5, 3, 0, 3, 2, 3)[::2]
    offsets = ints(device, 0, 4, 2, 4, 2, 4)[::2]
    out = functional.embedding_bag(indices, weight, offsets, mode=mode, **keywords)
    return gradients(out, weight)


def _module(make: Callable[[], torch.nn.Module], *shape: int, training: bool = True) -> Program:
    """Forward, gradients and buffers of a module."""

    def program(device: torch.device) -> list[Tensor]:
        torch.manual_seed(5)
        module = make().train(training).to(device)
        x = leaf(device, *shape)
        out = module(x)
        return [*gradients(out, x, *module.parameters()), *module.buffers()]

    return program


def _normalised(normalise: Callable[..., Tensor], *shape: int) -> Program:
    """With weight and bias, with the weight alone, with neither; and all gradients."""

    def program(device: torch.device) -> list[Tensor]:
        results = []
        for used in ((True, True), (True, False), (False, False)):
            x, *given = leaf(device, *shape), *(leaf(device, shape[1], seed=i) for i in (1, 2))
            weight, bias = (t if use else None for t, use in zip(given, used, strict=True))
            leaves = [x, *(t for t in (weight, bias) if t is not None)]
            results += gradients(normalise(x, weight, bias), *leaves)
        return results

    return program


_LAYERS: dict[str, Program] = {
    "group_norm_pixel": _normalised(lambda x, w, b: functional.group_norm(x, 3, w, b), 5, 12),
    "group_norm_image": _normalised(lambda x, w, b: functional.group_norm(x, 3, w, b), 2, 6, 3, 5),
    "group_norm_channels": _normalised(lambda x, w, b: functional.group_norm(x, 6, w, b), 5, 6),
    "layer_norm_parts": _normalised(lambda x, w, b: functional.layer_norm(x, (6,), w, b), 5, 6),
    "batch_norm_pixel": _normalised(
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True), 7, 6
    ),
    "batch_norm_image": _normalised(
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True), 3, 4, 3, 5
    ),
    "instance_norm_image": _normalised(
        lambda x, w, b: functional.instance_norm(x, None, None, w, b), 3, 4, 3, 5
    ),
    "linear": _module(lambda: torch.nn.Linear(4, 3), 5, 4),
    "bilinear": lambda d: functional.bilinear(
        noise((3, 2)).to(d), noise((3, 4)).to(d), noise((5, 2, 4)).to(d)
    ),
    "embedding": lambda d: _embedded(d),
    "embedding_bag_sum": lambda d: _bag(d, "sum"),
    "embedding_bag_mean": lambda d: _bag(d, "mean"),
    "embedding_bag_max": lambda d: _bag(d, "max"),
    "embedding_bag_weighted": lambda d: _bag(d, "sum", per_sample_weights=ramp((5,))),
    "batch_norm": _module(lambda: torch.nn.BatchNorm2d(3), 4, 3, 5, 5),
    "batch_norm_eval": _module(lambda: torch.nn.BatchNorm2d(3), 4, 3, 5, 5, training=False),
    "layer_norm": _module(lambda: torch.nn.LayerNorm(6), 4, 6),
    "group_norm": _module(lambda: torch.nn.GroupNorm(2, 4), 2, 4, 5),
    "instance_norm": _module(lambda: torch.nn.InstanceNorm1d(3, affine=True), 2, 3, 6),
    "rms_norm": _module(lambda: torch.nn.RMSNorm(6), 4, 6),
    "max_pool2d": _module(lambda: torch.nn.MaxPool2d(2), 2, 3, 6, 6),
    "avg_pool2d": _module(lambda: torch.nn.AvgPool2d(2), 2, 3, 6, 6),
    "adaptive_avg_pool2d": _module(lambda: torch.nn.AdaptiveAvgPool2d(2), 2, 3, 5, 5),
    "upsample_nearest": _module(lambda: torch.nn.Upsample(scale_factor=2), 1, 2, 3, 3),
    "upsample_bilinear": _module(
        lambda: torch.nn.Upsample(scale_factor=2, mode="bilinear"), 1, 2, 3, 3
    ),
    "reflection_pad": _module(lambda: torch.nn.ReflectionPad2d(1), 1, 2, 4, 4),
    "pixel_shuffle": _module(lambda: torch.nn.PixelShuffle(2), 1, 4, 3, 3),
    "prelu": _module(lambda: torch.nn.PReLU(), 3, 4),
    "gelu": _module(lambda: torch.nn.GELU(), 3, 4),
    "silu": _module(lambda: torch.nn.SiLU(), 3, 4),
    "softmax": _module(lambda: torch.nn.Softmax(1), 3, 4),
    "log_softmax": _module(lambda: torch.nn.LogSoftmax(1), 3, 4),
    "grid_sample": lambda d: gradients(
        functional.grid_sample(
            (image := leaf(d, 1, 2, 4, 4)), noise((1, 3, 3, 2), seed=4).to(d), align_corners=False
        ),
        image,
    ),
    "unfold": _module(lambda: torch.nn.Unfold(2), 1, 2, 4, 4),
    "fold": _module(lambda: torch.nn.Fold((4, 4), 2), 1, 8, 9),
}


def _embedded(device: torch.device) -> list[Tensor]:
    weight = leaf(device, 6, 4)
    out = functional.embedding(ints(device, 1, 5, 1, 0).view(2, 2), weight, padding_idx=0)
    return gradients(out, weight)


@check("operator/layer", "OP-013", cases=tuple(_LAYERS))
def layers_agree_forward_and_backward(dev: Device, case: str) -> None:
    """A layer's output, gradients and buffers agree with the CPU."""
    agree(dev, _LAYERS[case], rtol=1e-4, atol=1e-4)


#: Of a matrix of 4 x 6, a weight and a bias.
_MIXED: dict[str, Callable[..., Tensor]] = {
    "layer_norm": lambda x, w, b: functional.layer_norm(x, (6,), w, b),
    "group_norm": lambda x, w, b: functional.group_norm(x, 3, w, b),
    "group_norm_image": lambda x, w, b: functional.group_norm(x.view(2, 6, 2), 3, w, b),
    "batch_norm": lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
}


@check("operator/norm_mixed", "OP-013", cases=_MIXED, dtypes=("float16", "bfloat16"))
def norms_of_16_bits_take_wider_parameters(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A norm of 16-bit numbers with parameters of float32 is right, or raises for their types."""
    given = noise((4, 6)).to(dtype), noise((6,), seed=1), noise((6,), seed=2)
    wide = [x.double().requires_grad_() for x in given]
    there = [x.to(dev.device()).requires_grad_() for x in given]
    try:
        found = gradients(_MIXED[case](*there), *there)
    except RuntimeError as error:
        if not re.search(r"scalar type|mixed dtype|same d?type", str(error)):
            raise
        dev.unsupported(f"the parameters must be of the input's type: {first_line(error)}")
    expected = gradients(_MIXED[case](*wide), *wide)
    for got, wanted, like in zip(found, expected, (given[0], *given), strict=True):
        assert got.dtype == like.dtype
        dev.assert_close(got.detach().cpu().double(), wanted.detach(), rtol=2e-2, atol=5e-2)


def _loss(function: Callable[..., Tensor], target: Callable[[], Tensor]) -> Program:
    def program(device: torch.device) -> list[Tensor]:
        x = leaf(device, 6, 5)
        outputs = []
        for reduction in ("mean", "sum", "none"):
            outputs += gradients(function(x, target().to(device), reduction=reduction), x)
        return outputs

    return program


def _nll_2d(x: Tensor, classes: Tensor, reduction: str) -> Tensor:
    """Without a reduction, neighbours of the incoming gradient are apart in memory."""
    scores = x.view(2, 1, 3, 5).movedim(3, 1).log_softmax(1)
    loss = functional.nll_loss(scores, classes, reduction=reduction)
    return loss.transpose(0, -1).contiguous() if reduction == "none" else loss


_LOSSES: dict[str, Program] = {
    "cross_entropy": _loss(functional.cross_entropy, lambda: torch.tensor([0, 4, 2, 1, 3, 2])),
    "cross_entropy_soft": _loss(functional.cross_entropy, lambda: noise((6, 5), seed=3).softmax(1)),
    "cross_entropy_ignored": _loss(
        functional.cross_entropy, lambda: torch.tensor([0, -100, 2, 1, -100, 2])
    ),
    "nll": _loss(
        lambda x, t, reduction: functional.nll_loss(x.log_softmax(1), t, reduction=reduction),
        lambda: torch.tensor([0, 4, 2, 1, 3, 2]),
    ),
    "nll_2d": _loss(_nll_2d, lambda: torch.tensor([[[0, 4, 2]], [[1, 3, 2]]])),
    "mse": _loss(functional.mse_loss, lambda: noise((6, 5), seed=3)),
    "l1": _loss(functional.l1_loss, lambda: noise((6, 5), seed=3)),
    "smooth_l1": _loss(functional.smooth_l1_loss, lambda: noise((6, 5), seed=3)),
    "bce_with_logits": _loss(
        functional.binary_cross_entropy_with_logits, lambda: noise((6, 5), seed=3).sigmoid()
    ),
    "kl_div": _loss(functional.kl_div, lambda: noise((6, 5), seed=3).softmax(1)),
}


@check("operator/loss", "OP-013", cases=tuple(_LOSSES))
def losses_agree_for_every_reduction(dev: Device, case: str) -> None:
    """A loss and its gradient agree with the CPU for mean, sum and none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kl_div advises another reduction
        agree(dev, _LOSSES[case], rtol=1e-4, atol=1e-5)
