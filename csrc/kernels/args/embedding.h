/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of the kernel of EmbeddingBag. */
#ifndef PUONE_KERNELS_ARGS_EMBEDDING_H
#define PUONE_KERNELS_ARGS_EMBEDDING_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum puone_bag_mode {
  PUONE_BAG_SUM = 0,
  PUONE_BAG_MEAN = 1,
  PUONE_BAG_MAX = 2
} puone_bag_mode;

/* Kernel "embedding_bag": out[b] = sum, mean or maximum of the rows weight[indices[j]] for j in
 * [offsets[b], offsets[b + 1]), the last bag ending at index_count; indices equal to padding do not
 * count. What is not said to have strides is contiguous. An empty bag is 0. */
typedef struct puone_embedding_bag_args {
  int64_t bags;
  int64_t columns;
  int64_t rows;
  int64_t index_count;
  int64_t offset_count;
  int64_t padding;
  int32_t mode;
  int32_t dtype;       /* FLOAT16, BFLOAT16, FLOAT32 or FLOAT64 */
  int32_t index_dtype; /* of indices, offsets and the last three: INT32 or INT64 */
  int32_t reserved;
  int64_t weight_strides[2]; /* bytes: row, column */
  void* weight;
  void* indices;
  void* offsets;
  void* scales;      /* a factor for each index, or NULL */
  void* out;         /* [bags, columns] */
  void* offset2bag;  /* the bag of each index */
  void* bag_size;    /* [bags] */
  void* max_indices; /* mode MAX: [bags, columns], the index of each maximum; else NULL */
} puone_embedding_bag_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_EMBEDDING_H */
