// SPDX-License-Identifier: BSD-3-Clause
// What the flavours of convolutions share: sizes and strides of windows.
#pragma once

#include <cstdint>

#include "kernels/args/convolution.h"
#include "kernels/isa.h"

namespace puone::kernels::PUONE_ISA {

inline int64_t volume(const int64_t (&sizes)[3]) {
  return sizes[0] * sizes[1] * sizes[2];
}

/// Whether these are the strides of contiguous memory.
inline bool isDense(const int64_t (&sizes)[3], const int64_t (&strides)[3]) {
  int64_t expected = 1;
  for (int d = 2; d >= 0; --d) {
    if (sizes[d] > 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

/// With one channel and at most this many rows, a matrix product is not faster.
constexpr int64_t kDepthwiseRows = 4;

template <class Args>
bool isDepthwise(const Args& args) {
  return args.channels == 1 && args.rows <= kDepthwiseRows;
}

} // namespace puone::kernels::PUONE_ISA
