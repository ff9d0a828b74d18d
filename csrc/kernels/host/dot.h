// SPDX-License-Identifier: BSD-3-Clause
// Sums of products on a host: one core per chunk.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/dot.h"

namespace puone::kernels::PUONE_ISA {

/// Maximum number of chunks of the vectors; minimum elements per chunk.
constexpr int64_t kDotChunks = 256;
constexpr int64_t kDotChunk = 16 << 10;
/// Independent sums, so that the loop over them vectorises.
constexpr int kDotSums = 32;

namespace detail {

template <class E>
[[gnu::always_inline]] inline ComputeValue<E> dotOf(
    const Factors<E>& factors, int64_t a_stride, int64_t b_stride, int64_t begin, int64_t n) {
  using Value = ComputeValue<E>;
  const unsigned char* const a = factors.a + begin * a_stride;
  const unsigned char* const b = factors.b + begin * b_stride;
  const auto product = [=](int64_t i) {
    return factors.product(load<E>(a + i * a_stride), load<E>(b + i * b_stride));
  };
  Value sums[kDotSums] = {};
  int64_t i = 0;
  for (; i + kDotSums <= n; i += kDotSums) {
    for (int j = 0; j < kDotSums; ++j) sums[j] = plus(sums[j], product(i + j));
  }
  for (int j = 0; i + j < n; ++j) sums[j] = plus(sums[j], product(i + j));
  Value total = sums[0];
  for (int j = 1; j < kDotSums; ++j) total = plus(total, sums[j]);
  return total;
}

template <class E>
ComputeValue<E> dotOfChunk(const Factors<E>& factors, int64_t begin, int64_t n) {
  if (factors.a_stride == sizeof(E) && factors.b_stride == sizeof(E)) {
    return dotOf<E>(factors, sizeof(E), sizeof(E), begin, n);
  }
  return dotOf<E>(factors, factors.a_stride, factors.b_stride, begin, n);
}

} // namespace detail

template <class E>
void dot(Launch& launch, const Factors<E>& factors, unsigned char* out) {
  using Value = ComputeValue<E>;
  const int64_t n = factors.n;
  const int64_t chunk = std::max(kDotChunk, (n + kDotChunks - 1) / kDotChunks);
  const int64_t chunks = (n + chunk - 1) / chunk;
  Value partial[kDotChunks];
  launch.forRanges(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      partial[i] = detail::dotOfChunk<E>(factors, i * chunk, std::min(chunk, n - i * chunk));
    }
  });
  Value total{};
  for (int64_t i = 0; i < chunks; ++i) total = plus(total, partial[i]);
  store(out, cast<E>(total));
}

} // namespace puone::kernels::PUONE_ISA
