// SPDX-License-Identifier: BSD-3-Clause
// What host/masked.h and simt/masked.h share. They have maskedFill(), countNonzeros(), which stores
// the number of each chunk's nonzero elements in offsets[chunk], nonzero(), maskedPack() and
// maskedUnpack().
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "kernels/args/indexing.h"
#include "kernels/cast.h"
#include "kernels/index_check.h"
#include "kernels/isa.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

constexpr int64_t kMaskChunk = PUONE_OFFSETS_CHUNK;

PUONE_FN int64_t maskChunks(int64_t n) {
  return (n + kMaskChunk - 1) / kMaskChunk;
}

/// Checks positions in the packed array, which may be too short.
inline IndexCheck packedCheck(Launch& launch) {
  return {launch, "the mask is true more often than there are elements to take"};
}

/// Calls f(T{}) for the element type.
template <class F, size_t... kIndex>
void withType(int32_t dtype, const F& f, std::index_sequence<kIndex...> /*all*/) {
  const bool found =
      ((dtype == static_cast<int32_t>(kIndex) &&
        (f(std::tuple_element_t<kIndex, Types>{}), true)) ||
       ...);
  if (!found) throw std::invalid_argument("not a puone_dtype");
}

template <class F>
void withType(int32_t dtype, const F& f) {
  withType(dtype, f, std::make_index_sequence<kTypes>());
}

} // namespace puone::kernels::PUONE_ISA
