// SPDX-License-Identifier: BSD-3-Clause
// The elements of operands with strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

namespace puone::host {

/// Calls `visit` with the byte offset of each element in each of N operands.
template <size_t N, class Visit>
void forEach(
    int32_t ndim,
    const int64_t* sizes,
    const std::array<const puone_operand*, N>& operands,
    const Visit& visit) {
  for (int32_t d = 0; d < ndim; ++d) {
    if (sizes[d] == 0) return;
  }
  std::array<int64_t, PUONE_MAX_DIMS> index{};
  std::array<int64_t, N> offsets{};
  while (true) {
    visit(offsets);
    int32_t d = 0;
    for (; d < ndim; ++d) {
      const bool carries = ++index[d] == sizes[d];
      for (size_t i = 0; i < N; ++i) {
        const int64_t stride = operands[i]->strides[d];
        offsets[i] += carries ? -stride * (sizes[d] - 1) : stride;
      }
      if (!carries) break;
      index[d] = 0;
    }
    if (d == ndim) return;
  }
}

} // namespace puone::host
