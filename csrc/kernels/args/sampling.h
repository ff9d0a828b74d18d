/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of the random kernels that do not work element by element (csrc/kernels/sampling.cpp).
 * Seed and offset as in args/random.h. */
#ifndef PUONE_KERNELS_ARGS_SAMPLING_H
#define PUONE_KERNELS_ARGS_SAMPLING_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernel "multinomial": out[row][i] = a category, drawn with replacement with the probability
 * weights[row][category] / sum of weights[row]. The launch fails if a row has no positive weight.
 * Number row * samples + i decides; two of 32 bits each. Both operands are contiguous. */
typedef struct puone_multinomial_args {
  uint64_t seed;
  uint64_t offset;
  int64_t rows;
  int64_t categories;
  int64_t samples;
  void* weights; /* double; replaced by their running sums */
  void* out;     /* int64 */
} puone_multinomial_args;

/* Kernel "randperm": out = a permutation of 0 ... n-1, all equally likely. */
typedef struct puone_randperm_args {
  uint64_t seed;
  uint64_t offset;
  int64_t n;
  void* out; /* int64, contiguous */
} puone_randperm_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_SAMPLING_H */
