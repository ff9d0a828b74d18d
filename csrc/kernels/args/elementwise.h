/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of every elementwise kernel: out[i] = f(in0[i], in1[i], ...). */
#ifndef PUONE_KERNELS_ARGS_ELEMENTWISE_H
#define PUONE_KERNELS_ARGS_ELEMENTWISE_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PUONE_MAX_OPERANDS 6
#define PUONE_MAX_PARAMETERS 4

/* Operands are outputs first, then inputs, as many as the kernel has. An input is cast from its
 * dtype to the one the kernel computes in, a result to the output's dtype, both by way of `common`
 * where that is narrower. An output may be the very same memory as an input; any other overlap is
 * undefined. */
typedef struct puone_elementwise_args {
  int32_t ndim;
  /* What the kernel computes in: INT32, INT64, FLOAT32, FLOAT64, COMPLEX64 or COMPLEX128. */
  int32_t compute;
  int32_t dtypes[PUONE_MAX_OPERANDS];
  /* Bit i: operand i is not in memory, it is the one element immediates[i]. */
  uint32_t immediate;
  /* What the operands are promoted to, which `compute` stands for: UINT8 for INT32 ... */
  int32_t common;
  /* Elements of dtypes[i]. */
  unsigned char immediates[PUONE_MAX_OPERANDS][16];
  /* Scalars of the operator (alpha, negative_slope ...), elements of `compute`. */
  unsigned char parameters[PUONE_MAX_PARAMETERS][16];
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand operands[PUONE_MAX_OPERANDS];
} puone_elementwise_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_ELEMENTWISE_H */
