// SPDX-License-Identifier: BSD-3-Clause
// The block idiom: threads that work on one thing together - a row of a softmax, a group of a norm.
//
//   struct Row {                                    // trivially copyable: it is copied to the
//   device
//     PUONE_DEVICE void operator()(const Block& block, int64_t row) const {
//       const float top = block.reduce(columns, -kInfinity, [=](int64_t i) {...}, max);
//       block.each(columns, [=](int64_t i) { y[...] = exp(x[...] - top); });
//     }
//     ...
//   };
//   blocks(launch, rows, columns, Row{...});
//
// Every thread of a block makes the same calls in the same order; after each call all of them see
// what the others wrote to memory. A variable of the function is a thread's own: of an array, only
// the elements that the thread itself was called for. The order of the operations depends on the
// sizes alone: equal inputs give equal bits.
#pragma once

#ifdef PUONE_SIMT
#include "kernels/simt/blocks.h"
#else
#include "kernels/host/blocks.h"
#endif
