// SPDX-License-Identifier: BSD-3-Clause
// Random permutations on a host, on one core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/permutation.h"
#include "kernels/random.h"

namespace puone::kernels::PUONE_ISA {

inline void permute(Launch& launch, const puone_randperm_args& args, int64_t* out) {
  const Position position(launch, args);
  drawing::Draws<uint64_t> draws;
  for (int64_t first = 0; first < args.n; first += drawing::kPiece) {
    const int64_t n = std::min(drawing::kPiece, args.n - first);
    const uint64_t* const bits = draws.of(position, first, n);
    for (int64_t i = first; i < first + n; ++i) {
      out[i] = i;
      std::swap(out[i], out[partner(bits[i - first], i)]);
    }
  }
}

} // namespace puone::kernels::PUONE_ISA
