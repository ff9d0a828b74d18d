/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of the kernels that put elements in order. */
#ifndef PUONE_KERNELS_ARGS_ORDER_H
#define PUONE_KERNELS_ARGS_ORDER_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels "sort" (the first `count` elements of each line along the dimension `ordered`, in order),
 * "kth" (the element `count` - 1), "median" and "nanmedian" (the lower of two), "mode" (the most
 * frequent value, the smallest of such, and its last position). NaN is the largest of all; of equal
 * elements the first comes first. outs: values, and positions in int64. */
typedef struct puone_order_args {
  int32_t ndim;
  int32_t compute; /* INT32, INT64, FLOAT32 or FLOAT64 */
  int32_t ordered; /* a dimension, or -1 if there are none */
  int32_t dtype;   /* of the input and the values */
  int32_t descending;
  int32_t reserved;
  int64_t count;
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand in;
  puone_operand outs[2];
  void* items; /* workspace of 16 bytes for each element */
} puone_order_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_ORDER_H */
