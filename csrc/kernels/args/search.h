/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of the kernel that searches sorted sequences. */
#ifndef PUONE_KERNELS_ARGS_SEARCH_H
#define PUONE_KERNELS_ARGS_SEARCH_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernel "search_sorted": out[i] = the first place of a sequence of `length` elements where
 * values[i] could be inserted, or the last if `right`. Values [r * row, (r + 1) * row) go with
 * sequence r, or all with the only one if row is 0. All contiguous. */
typedef struct puone_search_sorted_args {
  int64_t n; /* values */
  int64_t length;
  int64_t row;
  int32_t dtype;     /* of values and sequences; not complex */
  int32_t out_dtype; /* INT32 or INT64 */
  int32_t right;
  int32_t reserved;
  void* sequences;
  void* sorter; /* int64, like sequences: element k of a sequence is at sorter[k]; or NULL */
  void* values;
  void* out;
} puone_search_sorted_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_SEARCH_H */
