/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of the kernels that make one element of many: reductions and scans. */
#ifndef PUONE_KERNELS_ARGS_REDUCTION_H
#define PUONE_KERNELS_ARGS_REDUCTION_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every reduction. The loop nest is the input's; it is reduced over the dimensions of `reduced`,
 * and the outputs have stride 0 there. A reduced size may be 0: the outputs then are what the
 * operation yields for nothing. Positions (of a maximum, say) count along the reduced dimensions,
 * innermost fastest. An output with a null `data` is not wanted. */
typedef struct puone_reduce_args {
  int32_t ndim;
  /* What the kernel computes in: BOOL, INT32, INT64, FLOAT32, FLOAT64, COMPLEX64 or COMPLEX128. */
  int32_t compute;
  uint32_t reduced; /* bit d: dimension d */
  int32_t in_dtype;
  int32_t out_dtypes[2];
  double parameters[2];
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand in;
  puone_operand outs[2];
} puone_reduce_args;

/* Every scan: outs[...][i] is made of in[...][0] to in[...][i] along the dimension `scanned`. */
typedef struct puone_scan_args {
  int32_t ndim;
  int32_t compute;
  int32_t scanned;
  int32_t in_dtype;
  int32_t out_dtypes[2];
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand in;
  puone_operand outs[2];
} puone_scan_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_REDUCTION_H */
