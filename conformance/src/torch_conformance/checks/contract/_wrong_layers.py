# SPDX-License-Identifier: BSD-3-Clause
"""Layers, activations and losses are called with wrong arguments."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from torch_conformance.authoring.api import index, zeros_index
from torch_conformance.checks.contract._calls import Write, ones

LAYERS: dict[str, Write] = {
    "conv_channels": lambda x: functional.conv1d(x[None], ones(x, 2, 5, 3)),
    "conv_kernel": lambda x: functional.conv1d(x[None], ones(x, 2, 3, 7)),
    "conv_dimensions": lambda x: functional.conv2d(x, ones(x, 2, 3, 1, 1)),
    "conv_bias": lambda x: functional.conv1d(x[None], ones(x, 2, 3, 1), ones(x, 5)),
    "embedding_dtype": lambda x: functional.embedding(x, x),
    "pool_kernel": lambda x: functional.max_pool1d(x[None], 9),
    "pool_padding": lambda x: functional.avg_pool2d(x[None], 2, padding=2),
    "reflection_padding": lambda x: functional.pad(x, (4, 0), mode="reflect"),
    "layer_norm_shape": lambda x: functional.layer_norm(x, (5,)),
    "group_norm_groups": lambda x: functional.group_norm(x, 3),
    "batch_norm_mean": lambda x: functional.batch_norm(x, ones(x, 5), ones(x, 5)),
    "nll_classes": lambda x: functional.nll_loss(x, zeros_index(x, 5)),
    "cross_entropy_weight": lambda x: functional.cross_entropy(
        x, zeros_index(x, 3), weight=ones(x, 5)
    ),
    "mse_sizes": lambda x: functional.mse_loss(x, ones(x, 3, 5)),
    "bce_sizes": lambda x: functional.binary_cross_entropy(x, ones(x, 4, 3)),
    "interpolate_size": lambda x: functional.interpolate(x[None], size=0),
    "conv_groups": lambda x: functional.conv1d(x[None], ones(x, 2, 2, 1), groups=2),
    "conv_stride": lambda x: functional.conv1d(x[None], ones(x, 2, 3, 1), stride=0),
    "conv_padding": lambda x: functional.conv1d(x[None], ones(x, 2, 3, 1), padding=-1),
    "conv_dilation": lambda x: functional.conv1d(x[None], ones(x, 2, 3, 2), dilation=0),
    "conv_dtypes": lambda x: functional.conv1d(x[None], ones(x, 2, 3, 1).double()),
    "conv_transpose_channels": lambda x: functional.conv_transpose1d(x[None], ones(x, 5, 2, 1)),
    "conv_transpose_output_padding": lambda x: functional.conv_transpose1d(
        x[None], ones(x, 3, 2, 1), output_padding=9
    ),
    "embedding_bag_no_bag": lambda x: functional.embedding_bag(
        index(x, 0, 1), x, zeros_index(x, 0), include_last_offset=True
    ),
    "nll_loss2d_dimensions": lambda x: torch.ops.aten.nll_loss2d(
        x[None], zeros_index(x, 1, 4), None
    ),
    "im2col_sizes": lambda x: torch.ops.aten.im2col(x[None, None], [2], [1, 1], [0, 0], [1, 1]),
    "native_group_norm_sizes": lambda x: torch.native_group_norm(
        x[None], None, None, 100, 3, 4, 3, 0.5
    ),
    "embedding_vector": lambda x: functional.embedding(index(x, 0), x[0]),
    "embedding_bag_mode": lambda x: functional.embedding_bag(zeros_index(x, 2, 2), x, mode="min"),
    "grid_sizes": lambda x: functional.grid_sample(x[None, None], ones(x, 2, 1, 1, 2)),
    "grid_columns": lambda x: functional.grid_sample(x[None, None], ones(x, 1, 1, 1, 3)),
    "interpolate_dimensions": lambda x: functional.interpolate(x[None], (2, 2)),
    "reflection_padding_end": lambda x: functional.pad(x, (0, 4), mode="reflect"),
    "reflection_padding_2d": lambda x: functional.pad(x[None], (0, 0, 0, 3), mode="reflect"),
    "reflection_padding_2d_begin": lambda x: functional.pad(x[None], (0, 0, 3, 0), mode="reflect"),
    "reflection_padding_3d": lambda x: functional.pad(
        x[None, None], (0, 0, 0, 0, 0, 1), mode="reflect"
    ),
    "replication_padding": lambda x: functional.pad(x[None], (1, 1, -3, -2), mode="replicate"),
    "constant_padding": lambda x: functional.pad(x, (-3, -2)),
    "circular_padding": lambda x: functional.pad(x, (5, 0), mode="circular"),
    "pool_2d_kernel": lambda x: functional.max_pool2d(x[None], 5),
    "pool_2d_padding": lambda x: functional.max_pool2d(x[None], 2, padding=2),
    "pool_stride": lambda x: functional.avg_pool1d(x[None], 2, stride=0),
    "pool_divisor": lambda x: functional.avg_pool2d(x[None], 2, divisor_override=0),
    "adaptive_pool_size": lambda x: functional.adaptive_avg_pool2d(x[None], (-1, 2)),
    "unpool_sizes": lambda x: nn.MaxUnpool1d(2)(x[None], zeros_index(x, 1, 3, 3)),
    "fold_columns": lambda x: functional.fold(x[None], (2, 2), (2, 2)),
    "unfold_kernel": lambda x: functional.unfold(x[None, None], (4, 4)),
    "unfold_tall": lambda x: functional.unfold(x[None, None], (9, 1), padding=(0, 4)),
    "unfold_wide": lambda x: functional.unfold(x[None, None], (1, 9), padding=(4, 0)),
    "pool_2d_tall": lambda x: functional.max_pool2d(x[None], (9, 2), padding=(0, 1)),
    "pool_2d_wide": lambda x: functional.avg_pool2d(x[None], (2, 9), padding=(1, 0)),
    "pool_3d_deep": lambda x: functional.max_pool3d(x[None, None], (2, 1, 1)),
    "pool_3d_tall": lambda x: functional.max_pool3d(x[None, None], (1, 9, 1)),
    "pool_3d_wide": lambda x: functional.avg_pool3d(x[None, None], (1, 1, 9)),
    "conv_tall": lambda x: functional.conv2d(x[None], ones(x, 1, 1, 9, 1), padding=(0, 4)),
    "conv_wide": lambda x: functional.conv2d(x[None], ones(x, 1, 1, 1, 9), padding=(4, 0)),
    "pixel_shuffle_channels": lambda x: functional.pixel_shuffle(x[None], 2),
    "pixel_unshuffle_sizes": lambda x: functional.pixel_unshuffle(x[None], 2),
    "channel_shuffle_groups": lambda x: functional.channel_shuffle(x[None], 2),
    "layer_norm_weight": lambda x: functional.layer_norm(x, (4,), ones(x, 5)),
    "rms_norm_shape": lambda x: functional.rms_norm(x, (5,)),
    "group_norm_weight": lambda x: functional.group_norm(x[None], 3, ones(x, 4)),
    "batch_norm_weight": lambda x: functional.batch_norm(
        x, ones(x, 4), ones(x, 4), weight=ones(x, 5)
    ),
    "nll_dtype": lambda x: functional.nll_loss(x, x[:, 0]),
    "nll_weight": lambda x: functional.nll_loss(x, zeros_index(x, 3), ones(x, 5)),
    "nll_2d_sizes": lambda x: functional.nll_loss(x[None, :, None], zeros_index(x, 1, 2, 4)),
    "cross_entropy_smoothing": lambda x: functional.cross_entropy(
        x, zeros_index(x, 3), label_smoothing=2.0
    ),
    "multi_margin_target": lambda x: functional.multi_margin_loss(x, zeros_index(x, 5)),
    "huber_delta": lambda x: functional.huber_loss(x, x, delta=-1.0),
    "smooth_l1_beta": lambda x: functional.smooth_l1_loss(x, x, beta=-1.0),
    "ctc_lengths": lambda x: functional.ctc_loss(
        x[:, None], zeros_index(x, 1, 2), index(x, 3, 3), index(x, 2)
    ),
    "glu_half": lambda x: functional.glu(x[:, :3]),
    "prelu_weights": lambda x: functional.prelu(x, ones(x, 5)),
    "rrelu_bounds": lambda x: functional.rrelu(x, 2.0, 1.0, training=True),
    "adaptive_pool_of_no_rows": lambda x: functional.adaptive_avg_pool2d(x[None, :0], 2),
    "adaptive_max_pool_of_no_rows": lambda x: functional.adaptive_max_pool2d(x[None, :0], 2),
    "adaptive_pool_3d_of_no_columns": lambda x: functional.adaptive_avg_pool3d(
        x[None, None, :, :0], 2
    ),
    "adaptive_pool_3d_of_no_rows": lambda x: functional.adaptive_avg_pool3d(x[None, None, :0], 2),
    "adaptive_pool_3d_of_no_planes": lambda x: functional.adaptive_avg_pool3d(x[None, :0, None], 2),
    "adaptive_max_pool_3d_of_no_columns": lambda x: functional.adaptive_max_pool3d(
        x[None, None, :, :0], 2
    ),
    "group_norm_matrix": lambda x: functional.group_norm(x[None], 3, ones(x, 3, 1)),
    "group_norm_bias": lambda x: functional.group_norm(x[None], 3, ones(x, 3), ones(x, 4)),
    "group_norm_none": lambda x: functional.group_norm(x, 0),
    "layer_norm_bias": lambda x: functional.layer_norm(x, (4,), ones(x, 4), ones(x, 3)),
    "layer_norm_none": lambda x: functional.layer_norm(x, ()),
    "batch_norm_bias": lambda x: functional.batch_norm(x, ones(x, 4), ones(x, 4), bias=ones(x, 5)),
    "batch_norm_variance": lambda x: functional.batch_norm(x, ones(x, 4), ones(x, 5)),
    "batch_norm_one_value": lambda x: functional.batch_norm(x[:1], None, None, training=True),
    "conv_bias_dtype": lambda x: functional.conv1d(x[None], ones(x, 2, 3, 1), ones(x, 2).double()),
    "conv_strides": lambda x: functional.conv2d(x[None], ones(x, 2, 1, 1, 1), stride=(1, 1, 1)),
    "embedding_bag_weights": lambda x: functional.embedding_bag(
        index(x, 0, 1), x, index(x, 0), mode="sum", per_sample_weights=ones(x, 3)
    ),
    "embedding_bag_weighted_mean": lambda x: functional.embedding_bag(
        index(x, 0, 1), x, index(x, 0), mode="mean", per_sample_weights=ones(x, 2)
    ),
    "embedding_bag_dimensions": lambda x: torch.embedding_bag(
        x[0], zeros_index(x, 2), zeros_index(x, 1)
    ),
    "embedding_bag_dtype": lambda x: functional.embedding_bag(x[0], x, index(x, 0)),
    "gelu_approximate": lambda x: functional.gelu(x, approximate="sin"),
    "softplus_of_integers": lambda x: functional.softplus(x.long()),
    "gelu_of_integers": lambda x: functional.gelu(x.long()),
    "silu_of_integers": lambda x: functional.silu(x.long()),
    "nll_target_matrix": lambda x: functional.nll_loss(x, zeros_index(x, 3, 1)),
    "cross_entropy_probabilities": lambda x: functional.cross_entropy(x, x[:, :3]),
    "bce_weight": lambda x: functional.binary_cross_entropy(
        x.sigmoid(), torch.ones_like(x), ones(x, 5)
    ),
    "unfold_negative": lambda x: functional.unfold(x[None, None], (2, 2), padding=-1),
    "fold_dimensions": lambda x: functional.fold(x, (2, 2), (0, 1)),
    "pixel_shuffle_vector": lambda x: functional.pixel_shuffle(x, 2),
    "pad_mode": lambda x: functional.pad(x, (1, 1), mode="reflect2"),
    "avg_pool_padding": lambda x: functional.avg_pool2d(x[None], 2, padding=-1),
    "max_pool_dilation": lambda x: functional.max_pool2d(x[None], 2, dilation=0),
    "max_pool_of_empty": lambda x: functional.max_pool2d(x[None, :, :0], 2),
    "adaptive_pool_of_empty": lambda x: functional.adaptive_avg_pool2d(x[None, :, :0], 2),
    "adaptive_max_pool_of_empty": lambda x: functional.adaptive_max_pool2d(x[None, :, :0], 2),
    "grid_mode": lambda x: torch.grid_sampler(
        x[None, None], ones(x, 1, 1, 1, 2).long(), 0, 0, True
    ),
    "embedding_renorm": lambda x: torch.embedding_renorm_(x.clone(), x, 1.0, 2.0),
}
