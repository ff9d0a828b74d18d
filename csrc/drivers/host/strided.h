// SPDX-License-Identifier: BSD-3-Clause
// The elements of operands with strides, row by row: a row is what lies along dimension 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

namespace puone::host {

/// Calls `visit` with the byte offset of each row in each of N operands, and its number of
/// elements. Within a row, elements are strides[0] apart.
template <size_t N, class Visit>
void forEachRow(
    int32_t ndim,
    const int64_t* sizes,
    const std::array<const puone_operand*, N>& operands,
    const Visit& visit) {
  for (int32_t d = 0; d < ndim; ++d) {
    if (sizes[d] == 0) return;
  }
  const int64_t length = ndim == 0 ? 1 : sizes[0];
  std::array<int64_t, PUONE_MAX_DIMS> index{};
  std::array<int64_t, N> offsets{};
  while (true) {
    visit(offsets, length);
    int32_t d = 1;
    for (; d < ndim; ++d) {
      const bool carries = ++index[d] == sizes[d];
      for (size_t i = 0; i < N; ++i) {
        const int64_t stride = operands[i]->strides[d];
        offsets[i] += carries ? -stride * (sizes[d] - 1) : stride;
      }
      if (!carries) break;
      index[d] = 0;
    }
    if (d >= ndim) return;
  }
}

} // namespace puone::host
