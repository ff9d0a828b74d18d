// SPDX-License-Identifier: BSD-3-Clause
// Generated elements on a host: pieces are computed, then cast.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cast.h"
#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA {

template <class T, class F>
void generate(
    Launch& launch, int64_t n, unsigned char* out, int64_t stride, int32_t dtype, const F& f) {
  constexpr int64_t kPiece = 256;
  const RowFunction cast_row = castRowOf(dtype, kDtype<T>);
  launch.forRanges(n, kGrain, [&](int64_t begin, int64_t end) {
    T piece[kPiece];
    for (int64_t i = begin; i < end; i += kPiece) {
      const int64_t m = std::min(kPiece, end - i);
      for (int64_t j = 0; j < m; ++j) piece[j] = f(i + j);
      const auto* const in = reinterpret_cast<const unsigned char*>(piece);
      cast_row(out + i * stride, stride, in, sizeof(T), m);
    }
  });
}

} // namespace puone::kernels::PUONE_ISA
