/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of the kernels that rearrange elements or make them from their position. */
#ifndef PUONE_KERNELS_ARGS_SHAPE_H
#define PUONE_KERNELS_ARGS_SHAPE_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PUONE_MAX_PARTS 64

/* A contiguous input of "cat", its rows row_bytes long and at `offset` in those of the output. */
typedef struct puone_part {
  void* data;
  int64_t offset;
  int64_t row_bytes;
} puone_part;

/* Kernel "cat": rows of the output are made of rows of the parts, which follow each other without
 * gaps from parts[0].offset on. */
typedef struct puone_cat_args {
  void* out;
  int64_t rows;
  int64_t out_row_bytes; /* from row to row */
  int64_t count;
  puone_part parts[PUONE_MAX_PARTS];
} puone_cat_args;

/* Kernel "triangle": out[i, j] = in[i, j] if j - i >= diagonal (upper) or <= diagonal (lower), else
 * zero. Dimension 0 is the columns, 1 the rows, the others are matrices. */
typedef struct puone_triangle_args {
  int32_t ndim; /* at least 2 */
  int32_t element_size;
  int64_t diagonal;
  int64_t upper;
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand out;
  puone_operand in; /* may be the very same memory */
} puone_triangle_args;

/* Kernel "triangle_indices": out[0][k], out[1][k] = row and column of the k-th element of a
 * triangle of a rows x columns matrix, in row-major order. */
typedef struct puone_triangle_indices_args {
  int64_t rows;
  int64_t columns;
  int64_t diagonal;
  int64_t count; /* of elements in the triangle */
  int32_t upper;
  int32_t dtype; /* INT32 or INT64 */
  void* out;     /* contiguous [2, count] */
} puone_triangle_indices_args;

typedef enum puone_progression {
  PUONE_FROM_START = 0, /* start + i * step */
  PUONE_FROM_BOTH = 1,  /* the same up to the middle, then end - (n - 1 - i) * step */
  PUONE_POWERS = 2,     /* pow(base, that of FROM_BOTH) */
  PUONE_KAISER = 3 /* i0(base * sqrt(1 - x * x)) / i0(base), x that of FROM_START, in FLOAT64 */
} puone_progression;

/* Kernel "sequence": out[i] for i in [0, n), computed in `compute`, cast to the output's dtype. */
typedef struct puone_sequence_args {
  int64_t n;
  void* out;
  int64_t out_stride; /* bytes */
  int32_t dtype;
  int32_t compute; /* INT64, FLOAT64 or COMPLEX128 */
  int32_t progression;
  int32_t reserved;
  unsigned char start[16]; /* elements of `compute` */
  unsigned char step[16];
  unsigned char end[16];
  double base;
} puone_sequence_args;

/* Kernel "repeat_interleave": out[k] = i for k in [ends[i] - repeats[i], ends[i]). All contiguous;
 * fails if a count is negative or does not fit. */
typedef struct puone_repeat_args {
  int64_t n;
  int64_t out_size;
  int32_t dtype; /* of repeats and out: INT32 or INT64 */
  int32_t reserved;
  void* repeats;
  void* ends; /* int64: cumulative sums of repeats */
  void* out;
} puone_repeat_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_SHAPE_H */
