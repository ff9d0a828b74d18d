/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of the kernels that find elements by indices, and of those that find them by a
 * mask. */
#ifndef PUONE_KERNELS_ARGS_INDEXING_H
#define PUONE_KERNELS_ARGS_INDEXING_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PUONE_MAX_INDICES 8
#define PUONE_MAX_NAME 32

typedef enum puone_reduction {
  PUONE_REDUCE_SUM = 0,
  PUONE_REDUCE_PRODUCT = 1,
  PUONE_REDUCE_MINIMUM = 2,
  PUONE_REDUCE_MAXIMUM = 3
} puone_reduction;

/* Kernels "index_get", "index_put" and "index_reduce", for
 *   p = i * table.strides + sum over k of index[k][i] * index_strides[k]:
 * elements[i] = table[p], table[p] = elements[i], and table[p] = reduction(table[p], elements[i]).
 *
 * Table strides are 0 along the dimensions whose place the indices choose; these, in their order,
 * decide which write comes last or how a sum is rounded. An index outside [0, index_sizes[k]) fails
 * the launch; nothing outside the table is touched. */
typedef struct puone_indexing_args {
  char name[PUONE_MAX_NAME]; /* of the operator, for the message */
  int32_t ndim;
  int32_t element_size; /* 1, 2, 4, 8 or 16 */
  int32_t dtype;        /* index_reduce: a puone_dtype */
  int32_t reduction;    /* index_reduce: a puone_reduction */
  int32_t index_count;  /* of index[] that are used, at least 1 */
  int32_t index_dtype;  /* INT32 or INT64 */
  int32_t wraps;        /* 1: negative indices count from the end */
  int32_t immediate;    /* 1: every element is `value`, and `elements` is unused */
  unsigned char value[16];
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand table;
  puone_operand elements;
  puone_operand index[PUONE_MAX_INDICES];
  int64_t index_sizes[PUONE_MAX_INDICES];
  int64_t index_strides[PUONE_MAX_INDICES]; /* bytes */
} puone_indexing_args;

/* Kernel "masked_fill": out[i] = value[i] where mask[i], elements of element_size bytes. */
typedef struct puone_masked_fill_args {
  int32_t ndim;
  int32_t element_size;
  int32_t immediate; /* 1: the value is in `immediate_value`, and `value` is unused */
  int32_t reserved;
  unsigned char immediate_value[16];
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand out;
  puone_operand mask; /* bool */
  puone_operand value;
} puone_masked_fill_args;

/* Elements that one entry of `offsets` below stands for. */
#define PUONE_OFFSETS_CHUNK 4096

/* Kernel "nonzero_offsets": offsets[c] = how many of the first c * PUONE_OFFSETS_CHUNK elements of
 * a contiguous array are not zero, for c up to ceil(n / PUONE_OFFSETS_CHUNK): the last is the
 * total. */
typedef struct puone_nonzero_offsets_args {
  int64_t n;
  int32_t dtype;
  int32_t reserved;
  void* in;
  void* offsets; /* int64 */
} puone_nonzero_offsets_args;

/* Kernel "nonzero": out[k] = the ndim coordinates of the k-th element that is not zero, for k up to
 * out_rows. `in` is contiguous; sizes[0] is the outermost dimension here. */
typedef struct puone_nonzero_args {
  int64_t n;
  int64_t out_rows;
  int32_t dtype;
  int32_t ndim;
  int64_t sizes[64];
  void* in;
  void* offsets;
  void* out; /* int64 [out_rows, ndim] */
} puone_nonzero_args;

/* Kernels "masked_pack": packed[k] = spread[i], and "masked_unpack": spread[i] = packed[k], where i
 * is the k-th place at which the mask is true. All contiguous. Fails if there are more than
 * packed_size such places. */
typedef struct puone_packing_args {
  int64_t n;
  int64_t packed_size;
  int32_t element_size;
  int32_t reserved;
  void* mask; /* bool */
  void* offsets;
  void* spread;
  void* packed;
} puone_packing_args;

#define PUONE_MAX_MESSAGE 256

/* Kernel "assert_nonzero": fails with the message if the one element is zero. */
typedef struct puone_assert_nonzero_args {
  void* in;
  int32_t dtype;
  int32_t reserved;
  char message[PUONE_MAX_MESSAGE];
} puone_assert_nonzero_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_INDEXING_H */
