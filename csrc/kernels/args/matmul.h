/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of the matrix product kernels. Strides are bytes and may be zero (broadcast). */
#ifndef PUONE_KERNELS_ARGS_MATMUL_H
#define PUONE_KERNELS_ARGS_MATMUL_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One matrix per batch index. */
typedef struct puone_matrix {
  void* data;            /* device address of element [0, 0] of batch 0 */
  int64_t row_stride;    /* bytes */
  int64_t column_stride; /* bytes */
  int64_t batch_stride;  /* bytes */
  int64_t conj;          /* 1: stands for its complex conjugate; of a factor only */
} puone_matrix;

/* A number in every form a kernel may compute in: the caller fills those that exist. */
typedef struct puone_factor {
  double real;
  double imaginary;
  int64_t integer;
} puone_factor;

/* Kernel "gemm": out = beta * self + alpha * (a @ b), a being m x k and b k x n, for every batch
 * index. With beta 0 `self` is not read, and its data may be null. float16 and bfloat16 are summed
 * in float, integers wrap. `out` must not overlap a, b, or another part of itself; it may be
 * `self`. All four have the same dtype. */
typedef struct puone_gemm_args {
  int32_t dtype;
  int32_t reserved;
  int64_t batch;
  int64_t m;
  int64_t n;
  int64_t k;
  puone_factor alpha;
  puone_factor beta;
  puone_matrix out;
  puone_matrix self;
  puone_matrix a;
  puone_matrix b;
} puone_gemm_args;

/* Kernel "dot": out = sum of a[i] * b[i], of which either may be conjugated. Summed in chunks of a
 * fixed length, so that the result does not depend on the number of cores. */
typedef struct puone_dot_args {
  int32_t dtype;
  int32_t reserved;
  int64_t n;
  void* out;
  void* a;
  void* b;
  int64_t a_stride; /* bytes */
  int64_t b_stride; /* bytes */
  int64_t a_conj;   /* 1: conjugated */
  int64_t b_conj;
} puone_dot_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_MATMUL_H */
