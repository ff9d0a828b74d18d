// SPDX-License-Identifier: BSD-3-Clause
// Sums of products on a device: many blocks compute partial sums, then one block adds them up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/dot.h"
#include "kernels/simt/blocks.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

constexpr uint32_t kDotThreads = 512;
/// Independent sums per thread, so that several loads are in flight.
constexpr int kDotAhead = 8;

template <class Value>
PUONE_DEVICE Value total(Value mine) {
  return Block().all(mine, [](const Value& a, const Value& b) { return plus(a, b); });
}

template <class E>
PUONE_GLOBAL(kDotThreads, 1)
void dotParts(Factors<E> factors, ComputeValue<E>* parts) {
  using Value = ComputeValue<E>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kDotThreads;
  Value sums[kDotAhead] = {};
  int64_t first = static_cast<int64_t>(blockIdx.x) * kDotThreads + threadIdx.x;
  for (; first < factors.n; first += step * kDotAhead) {
    E x[kDotAhead], y[kDotAhead];
    PUONE_UNROLL
    for (int e = 0; e < kDotAhead; ++e) {
      const int64_t i = first + e * step;
      if (i >= factors.n) break;
      x[e] = load<E>(factors.a + i * factors.a_stride);
      y[e] = load<E>(factors.b + i * factors.b_stride);
    }
    PUONE_UNROLL
    for (int e = 0; e < kDotAhead; ++e) {
      if (first + e * step >= factors.n) break;
      sums[e] = plus(sums[e], factors.product(x[e], y[e]));
    }
  }
  PUONE_UNROLL
  for (int half = kDotAhead / 2; half > 0; half /= 2) {
    PUONE_UNROLL
    for (int e = 0; e < half; ++e) sums[e] = plus(sums[e], sums[e + half]);
  }
  const Value all = total(sums[0]);
  if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

template <class E>
PUONE_GLOBAL(kDotThreads, 1)
void dotTotal(const ComputeValue<E>* parts, int32_t n, unsigned char* out) {
  ComputeValue<E> mine{};
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < n; i += kDotThreads) {
    mine = plus(mine, parts[i]);
  }
  const auto all = total(mine);
  if (threadIdx.x == 0) store(out, cast<E>(all));
}

} // namespace detail

template <class E>
void dot(Launch& launch, const Factors<E>& factors, unsigned char* out) {
  constexpr int64_t kPerBlock = int64_t{detail::kDotThreads} * detail::kDotAhead;
  const int64_t blocks = std::clamp<int64_t>(
      (factors.n + kPerBlock - 1) / kPerBlock, 1, int64_t{launch.multiprocessors()} * 4);
  auto* const parts = static_cast<ComputeValue<E>*>(
      launch.scratch(static_cast<size_t>(blocks) * sizeof(ComputeValue<E>)));
  dialect::start<dialect::Threads::kCooperating>(
      launch.stream(),
      detail::dotParts<E>,
      static_cast<uint32_t>(blocks),
      detail::kDotThreads,
      factors,
      parts);
  dialect::start<dialect::Threads::kCooperating>(
      launch.stream(),
      detail::dotTotal<E>,
      uint32_t{1},
      detail::kDotThreads,
      static_cast<const ComputeValue<E>*>(parts),
      static_cast<int32_t>(blocks),
      out);
}

} // namespace puone::kernels::PUONE_ISA
