/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of the convolution kernels. Tensors are [batch][groups * channels][z][y][x]; with fewer
 * spatial dimensions the outer ones have size 1. Strides and steps are in elements. What has no
 * stride is contiguous. */
#ifndef PUONE_KERNELS_ARGS_CONVOLUTION_H
#define PUONE_KERNELS_ARGS_CONVOLUTION_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which element of the source meets tap t at position p, along each spatial dimension:
 * p * position_step + offset + t * tap_step. Outside of the source there are zeros. */
typedef struct puone_window {
  int64_t positions[3]; /* z, y, x */
  int64_t source[3];
  int64_t taps[3];
  int64_t position_step[3]; /* at least 1 */
  int64_t offset[3];
  int64_t tap_step[3];
} puone_window;

/* Kernel "convolution": out[n, g, r, p] = bias[g, r] + sum over c and t of
 * weight[g, r, c, t] * source[n, g, c, window(p, t)]. 16-bit floats are summed in float, integers
 * wrap. There may be no taps. */
typedef struct puone_convolution_args {
  int32_t dtype;
  int32_t reserved;
  int64_t batch;
  int64_t groups;
  int64_t rows;     /* channels of out per group */
  int64_t channels; /* of source per group */
  puone_window window;
  int64_t weight_group_stride;
  int64_t weight_row_stride;
  int64_t weight_channel_stride;
  int64_t weight_tap_strides[3];
  int64_t out_row_stride; /* groups and the batch follow each other */
  int64_t out_position_strides[3];
  void* out;
  void* source;
  void* weight;
  void* bias; /* null: none */
} puone_convolution_args;

/* Kernel "convolution_weight": out[g, r, c, t] = sum over n and p of
 * left[n, g, r, p] * source[n, g, c, window(p, t)], out contiguous: the gradient of a weight. */
typedef struct puone_convolution_weight_args {
  int32_t dtype;
  int32_t reserved;
  int64_t batch;
  int64_t groups;
  int64_t rows;
  int64_t channels;
  puone_window window;
  void* out;
  void* left;
  void* source;
} puone_convolution_weight_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_CONVOLUTION_H */
