// SPDX-License-Identifier: BSD-3-Clause
// The map idiom on a device: a thread per index.
#pragma once

#include <cstdint>

#include "kernels/launch.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

constexpr uint32_t kMapThreads = 256;
/// Maximum number of blocks of a launch.
constexpr int64_t kMaxBlocks = 0x7fffffff;

namespace detail {

template <class F>
PUONE_GLOBAL(kMapThreads, 1)
void mapKernel(int64_t n, F f) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}

} // namespace detail

template <class F>
void map(Launch& launch, int64_t n, const F& f, int64_t /*grain*/ = 0) {
  if (n <= 0) return;
  dialect::start<dialect::Threads::kIndependent>(
      launch.stream(),
      detail::mapKernel<F>,
      static_cast<uint32_t>((n + kMapThreads - 1) / kMapThreads),
      kMapThreads,
      n,
      f);
}

} // namespace puone::kernels::PUONE_ISA
