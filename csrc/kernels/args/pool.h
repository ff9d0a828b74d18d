/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of pooling. Tensors are contiguous: [plane][z][y][x]; with fewer spatial dimensions the
 * outer ones have size 1. */
#ifndef PUONE_KERNELS_ARGS_POOL_H
#define PUONE_KERNELS_ARGS_POOL_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One spatial dimension: z, y, x. A kernel of 0 means adaptive: the source is shared out evenly. */
typedef struct puone_pool_axis {
  int64_t source;
  int64_t result;
  int64_t kernel;
  int64_t stride;
  int64_t padding;
  int64_t dilation;
} puone_pool_axis;

/* Kernels "max_pool" and "avg_pool" make `result` of `source`. Kernels "max_pool_backward" and
 * "avg_pool_backward" make the gradient of `source` of the gradient of `result`: their output lies
 * in `source`. `indices` (int64, shaped like result) are positions in a plane of the source: an
 * output of max_pool, where NaN is the greatest of all, and an input of its backward. */
typedef struct puone_pool_args {
  int32_t dtype;
  int32_t count_padding; /* avg: 1: padding counts in the divisor */
  int64_t planes;
  int64_t divisor; /* avg: instead of the number of elements; 0: none */
  puone_pool_axis axes[3];
  void* source;
  void* result;
  void* indices;
} puone_pool_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_POOL_H */
