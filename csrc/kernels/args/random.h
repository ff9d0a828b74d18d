/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of the random kernels (csrc/kernels/random.h). */
#ifndef PUONE_KERNELS_ARGS_RANDOM_H
#define PUONE_KERNELS_ARGS_RANDOM_H

#include "kernels/args/elementwise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An elementwise kernel whose functor also gets random bits. Element i of the output, counted as
 * if it were contiguous, gets its bits from the Philox blocks of the counter
 *
 *     i / (elements that share a block) : offset / 4
 *
 * and from no others: equal seeds and offsets give equal numbers, whatever the memory layout, the
 * number of cores or threads, the stream and the driver. The dimensions must therefore be in the
 * order of the output's (innermost first), not in that of its strides. A call whose elements draw
 * up to n numbers of 32 bits each occupies the offsets [offset, offset + n rounded up to 4). No
 * operand may be an immediate. */
typedef struct puone_random_args {
  uint64_t seed;
  uint64_t offset; /* a multiple of 4 */
  puone_elementwise_args elementwise;
} puone_random_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_RANDOM_H */
