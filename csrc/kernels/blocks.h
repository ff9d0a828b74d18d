// SPDX-License-Identifier: BSD-3-Clause
// The block idiom: threads that compute one result together, e.g. a row of a softmax.
//
//   struct Row { // trivially copyable: it is copied to the device
//     PUONE_DEVICE void operator()(const Block& block, int64_t row) const {
//       const float top = block.reduce(columns, -kInfinity, [=](int64_t i) {...}, max);
//       block.each(columns, [=](int64_t i) { y[...] = exp(x[...] - top); });
//     }
//     ...
//   };
//   blocks(launch, rows, columns, Row{...});
//
// Every thread of a block must make the same calls in the same order; after each call all threads
// see what the others wrote to memory. Local variables are private to a thread: of a local array,
// only the elements for which the thread was called are valid. The order of the operations depends
// only on the sizes: equal inputs give equal bits.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/blocks.h"
#else
#include "kernels/host/blocks.h"
#endif
