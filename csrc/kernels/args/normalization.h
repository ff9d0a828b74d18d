/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of softmax, the norms and the negative log likelihood. All memory is contiguous. */
#ifndef PUONE_KERNELS_ARGS_NORMALIZATION_H
#define PUONE_KERNELS_ARGS_NORMALIZATION_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "softmax": out of in, rows of `size` elements, `inner` apart. "softmax_backward": grad_input of
 * the gradient `in` and the result `result` of the forward pass. */
typedef struct puone_softmax_args {
  int32_t logarithm; /* 1: log_softmax */
  int32_t in_dtype;  /* of `in` and `result` */
  int32_t out_dtype;
  int32_t reserved;
  int64_t outer, size, inner;
  void* in;
  void* result;
  void* out;
} puone_softmax_args;

/* "group_norm", "group_norm_backward": rows of groups, each of channels of `inner` elements, made
 * to have mean 0 and variance 1; weight and bias belong to a channel of a group. Layer norm is one
 * group of channels of one element. Null weight means 1, null bias 0; null gradients are not
 * wanted. */
typedef struct puone_group_norm_args {
  int32_t dtype;           /* of in, out, grad_*; and of mean and rstd, if statistics is the same */
  int32_t parameter_dtype; /* of weight and bias; also of grad_weight and grad_bias */
  int32_t statistics_dtype;
  int32_t reserved;
  int64_t rows, groups, channels, inner; /* channels of a group */
  double epsilon;
  void* in;
  void* weight;
  void* bias;
  void* out; /* backward: the gradient that comes in */
  void* mean;
  void* rstd; /* one over the standard deviation */
  void* grad_in;
  void* grad_weight;
  void* grad_bias;
  void* sums; /* backward: workspace, 2 * rows * groups * channels of the type computed in */
} puone_group_norm_args;

/* "batch_norm_scale": of mean and variance of each channel, in the type computed in: scale and
 * shift of the affine map, the saved statistics, and what the running ones become. Null running
 * statistics are not there.
 * "batch_norm_apply": out = in * scale + shift, by channel.
 * "batch_norm_backward_sums": sums[0] = the sum of grad_out, sums[1] = of grad_out * (in - mean).
 * "batch_norm_backward": the gradients, of these sums. */
typedef struct puone_batch_norm_args {
  int32_t dtype;
  int32_t parameter_dtype; /* of weight, bias, statistics and their gradients */
  int32_t training;
  int32_t reserved;
  int64_t outer, channels, inner;
  double epsilon, momentum;
  void* in;
  void* out; /* backward: the gradient that comes in */
  void* weight;
  void* bias;
  void* running_mean;
  void* running_var;
  void* save_mean;
  void* save_invstd;
  void* statistics; /* 2 * channels of the type computed in: variances, means; backward: sums */
  void* affine;     /* 2 * channels of the type computed in: scales, shifts */
  void* grad_in;
  void* grad_weight;
  void* grad_bias;
} puone_batch_norm_args;

/* "nll_loss": output[b, i] = -weight[t] * in[b, t, i] with t = target[b, i], or their sum or mean.
 * "nll_loss_backward": `in` is the gradient that comes in, `output` that of the input, which holds
 * zeros. */
typedef struct puone_nll_loss_args {
  int32_t dtype;
  int32_t target_dtype; /* INT64 or UINT8 */
  int32_t reduction;    /* 0 none, 1 mean, 2 sum */
  int32_t reserved;
  int64_t batch, classes, inner;
  int64_t ignore_index;
  int64_t grad_strides[2]; /* backward without reduction: of `in` along batch and inner, elements */
  void* in;
  void* target;
  void* weight; /* null: 1 */
  void* output;
  void* total_weight;
} puone_nll_loss_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_NORMALIZATION_H */
