# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives are called directly, with operands whose sizes do not fit one another.

Autograd functions of libraries call them so. A kernel that takes its sizes from one operand reads
beyond another: https://github.com/pytorch/pytorch/issues/195547. Here are those that CPUs refuse.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import zeros_index
from torch_conformance.checks.contract._calls import Write, ones

ATEN = torch.ops.aten


def _convolution(x: Tensor, gradient: Tensor) -> object:
    geometry = ([1], [0], [1], False, [0], 1)
    return ATEN.convolution_backward(
        gradient, x[None], ones(x, 2, 3, 1), [2], *geometry, [True, True, False]
    )


def _group_norm(
    x: Tensor,
    mean: Tensor | None = None,
    rstd: Tensor | None = None,
    weight: Tensor | None = None,
) -> object:
    one = ones(x, 1, 1)
    saved = (one if mean is None else mean, one if rstd is None else rstd)
    weight = ones(x, 3) if weight is None else weight
    return ATEN.native_group_norm_backward(x[None], x[None], *saved, weight, 1, 3, 4, 1, [True] * 3)


DERIVATIVES: dict[str, Write] = {
    "avg_pool1d": lambda x: ATEN.avg_pool2d_backward(
        ones(x, 1, 3, 9), x[None, None], [1, 2], [1, 2], [0, 0], False, True, None
    ),
    "avg_pool2d_channels": lambda x: ATEN.avg_pool2d_backward(
        ones(x, 2, 3, 2), x[None], [1, 2], [1, 2], [0, 0], False, True, None
    ),
    "avg_pool3d": lambda x: ATEN.avg_pool3d_backward(
        ones(x, 1, 1, 3, 9), x[None, None], [1, 1, 2], [1, 1, 2], [0, 0, 0], False, True, None
    ),
    "max_pool2d_gradient": lambda x: ATEN.max_pool2d_with_indices_backward(
        ones(x, 1, 3, 9), x[None], [1, 2], [1, 2], [0, 0], [1, 1], False, zeros_index(x, 1, 3, 2)
    ),
    "max_pool2d_indices": lambda x: ATEN.max_pool2d_with_indices_backward(
        ones(x, 1, 3, 2), x[None], [1, 2], [1, 2], [0, 0], [1, 1], False, zeros_index(x, 1, 3, 1)
    ),
    "max_pool3d_indices": lambda x: ATEN.max_pool3d_with_indices_backward(
        ones(x, 1, 1, 3, 2),
        x[None, None],
        [1, 1, 2],
        [1, 1, 2],
        [0, 0, 0],
        [1, 1, 1],
        False,
        zeros_index(x, 1, 1, 3, 1),
    ),
    "adaptive_max_pool2d_indices": lambda x: ATEN.adaptive_max_pool2d_backward(
        ones(x, 1, 2, 2), x[None], zeros_index(x, 1, 2, 1)
    ),
    "reflection_pad1d": lambda x: ATEN.reflection_pad1d_backward(ones(x, 3, 4), x, [1, 1]),
    "reflection_pad2d": lambda x: ATEN.reflection_pad2d_backward(
        ones(x, 1, 3, 4), x[None], [1, 1, 0, 0]
    ),
    "reflection_pad3d": lambda x: ATEN.reflection_pad3d_backward(
        ones(x, 1, 1, 3, 4), x[None, None], [1, 1, 0, 0, 0, 0]
    ),
    "replication_pad1d": lambda x: ATEN.replication_pad1d_backward(ones(x, 3, 4), x, [1, 1]),
    "replication_pad2d": lambda x: ATEN.replication_pad2d_backward(
        ones(x, 1, 3, 4), x[None], [1, 1, 0, 0]
    ),
    "replication_pad3d": lambda x: ATEN.replication_pad3d_backward(
        ones(x, 1, 1, 3, 4), x[None, None], [1, 1, 0, 0, 0, 0]
    ),
    "nearest1d": lambda x: ATEN.upsample_nearest1d_backward(ones(x, 1, 3, 9), [8], [1, 3, 4]),
    "nearest2d": lambda x: ATEN.upsample_nearest2d_backward(
        ones(x, 1, 1, 3, 9), [3, 8], [1, 1, 3, 4]
    ),
    "nearest2d_channels": lambda x: ATEN.upsample_nearest2d_backward(
        ones(x, 1, 2, 3, 8), [3, 8], [1, 1, 3, 4]
    ),
    "linear1d": lambda x: ATEN.upsample_linear1d_backward(ones(x, 1, 3, 9), [8], [1, 3, 4], False),
    "bilinear2d": lambda x: ATEN.upsample_bilinear2d_backward(
        ones(x, 1, 1, 3, 9), [3, 8], [1, 1, 3, 4], False
    ),
    "bicubic2d": lambda x: ATEN.upsample_bicubic2d_backward(
        ones(x, 1, 1, 3, 9), [3, 8], [1, 1, 3, 4], False
    ),
    "trilinear3d": lambda x: ATEN.upsample_trilinear3d_backward(
        ones(x, 1, 1, 1, 3, 9), [1, 3, 8], [1, 1, 1, 3, 4], False
    ),
    "nearest3d": lambda x: ATEN.upsample_nearest3d_backward(
        ones(x, 1, 1, 1, 3, 9), [1, 3, 8], [1, 1, 1, 3, 4]
    ),
    "nll_loss_target": lambda x: ATEN.nll_loss_backward(
        ones(x, 3), x, zeros_index(x, 2), None, 0, -100, ones(x)
    ),
    "nll_loss_gradient": lambda x: ATEN.nll_loss_backward(
        ones(x, 2), x, zeros_index(x, 3), None, 0, -100, ones(x)
    ),
    "nll_loss_weight": lambda x: ATEN.nll_loss_backward(
        ones(x, 3), x, zeros_index(x, 3), ones(x, 2), 0, -100, ones(x)
    ),
    "nll_loss_total": lambda x: ATEN.nll_loss_backward(
        ones(x), x, zeros_index(x, 3), None, 1, -100, ones(x, 3)
    ),
    "nll_loss2d_target": lambda x: ATEN.nll_loss2d_backward(
        ones(x, 1, 1, 4), x[None, :, None], zeros_index(x, 1, 1, 3), None, 0, -100, ones(x)
    ),
    "nll_loss2d_gradient": lambda x: ATEN.nll_loss2d_backward(
        ones(x, 1, 1, 3), x[None, :, None], zeros_index(x, 1, 1, 4), None, 0, -100, ones(x)
    ),
    "nll_loss2d_weight": lambda x: ATEN.nll_loss2d_backward(
        ones(x, 1, 1, 4), x[None, :, None], zeros_index(x, 1, 1, 4), ones(x, 2), 0, -100, ones(x)
    ),
    "embedding_gradient": lambda x: ATEN.embedding_dense_backward(
        x, zeros_index(x, 2), 5, -1, False
    ),
    "embedding_indices": lambda x: ATEN.embedding_dense_backward(x, ones(x, 3), 5, -1, False),
    "convolution_gradient": lambda x: _convolution(x, ones(x, 1, 5, 4)),
    "convolution_length": lambda x: _convolution(x, ones(x, 1, 2, 9)),
    "layer_norm_shape": lambda x: ATEN.native_layer_norm_backward(
        x, x, [5], ones(x, 3, 1), ones(x, 3, 1), None, None, [True] * 3
    ),
    "layer_norm_weight": lambda x: ATEN.native_layer_norm_backward(
        x, x, [4], ones(x, 3, 1), ones(x, 3, 1), ones(x, 2), None, [True] * 3
    ),
    "group_norm_mean": lambda x: _group_norm(x, mean=ones(x, 1, 2)),
    "group_norm_rstd": lambda x: _group_norm(x, rstd=ones(x, 1, 2)),
    "glu": lambda x: ATEN.glu_backward(ones(x, 2, 2), x, 1),
    "gelu": lambda x: ATEN.gelu_backward(ones(x, 2, 4), x),
    "threshold": lambda x: ATEN.threshold_backward(ones(x, 2, 4), x, 0),
    "mse_loss": lambda x: ATEN.mse_loss_backward(ones(x), x, ones(x, 2, 4), 1),
    "smooth_l1_loss": lambda x: ATEN.smooth_l1_loss_backward(ones(x), x, ones(x, 2, 4), 1, 1.0),
    "binary_cross_entropy": lambda x: ATEN.binary_cross_entropy_backward(
        ones(x), x, ones(x, 2, 4), None, 1
    ),
    "log_sigmoid": lambda x: ATEN.log_sigmoid_backward(ones(x, 2, 4), x, ones(x, 0)),
    "select": lambda x: ATEN.select_backward(ones(x, 3), [3, 4], 1, 9),
    "slice": lambda x: ATEN.slice_backward(ones(x, 3, 4), [3, 4], 1, 0, 2, 1),
    "value_selecting": lambda x: ATEN.value_selecting_reduction_backward(
        ones(x, 3), 1, zeros_index(x, 5), [3, 4], False
    ),
    "multi_margin_loss": lambda x: ATEN.multi_margin_loss_backward(
        ones(x), x, zeros_index(x, 2), 1, 1, None, 1
    ),
    "multilabel_margin_loss": lambda x: ATEN.multilabel_margin_loss_backward(
        ones(x), x, zeros_index(x, 2, 4), 1, x
    ),
    "dropout": lambda x: ATEN.native_dropout_backward(x, ones(x, 2, 4) > 0, 2.0),
    "diagonal": lambda x: ATEN.diagonal_backward(ones(x, 2), [3, 4], 0, 0, 1),
    "bag_scales": lambda x: ATEN._embedding_bag_per_sample_weights_backward(
        ones(x, 2, 3), x, zeros_index(x, 2), zeros_index(x, 2), zeros_index(x, 2), 0
    ),
    "group_norm_weight": lambda x: _group_norm(x, weight=ones(x, 1)),
    "softmax": lambda x: ATEN._softmax_backward_data(x, x[:1], 1, torch.float32),
}
