// SPDX-License-Identifier: BSD-3-Clause
// Gradient scaling of mixed precision.
#include <atomic>
#include <cmath>

#include "kernels/entry.h"
#include "kernels/families.h"
#include "kernels/multi_tensor.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// Multiplies, and says whether an element was not finite.
template <class T>
bool unscale(T* data, int64_t n, float inv_scale) {
  int bad = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T value = data[i];
    bad |= value - value == 0 ? 0 : 1; // infinity - infinity and NaN are not 0
    data[i] = inv_scale == 1 ? value : value * static_cast<T>(inv_scale);
  }
  return bad != 0;
}

template <class T>
void unscaleIn(Launch& launch, const puone_amp_unscale_args& args) {
  const float inv_scale = load<float>(launch.resolve(args.inv_scale));
  std::atomic<bool> bad{false}; // set by any core, never cleared: the order does not matter
  forTensors(launch, args, [&](int t, int64_t begin, int64_t end) {
    const std::array<unsigned char*, 1> data{launch.resolve(args.tensors[t].data)};
    updateArrays<T>(data, args.dtype, begin, end, [&](const auto& arrays, int64_t n) {
      if (unscale(arrays[0], n, inv_scale)) bad.store(true, std::memory_order_relaxed);
    });
  });
  if (bad.load(std::memory_order_relaxed)) store(launch.resolve(args.found_inf), 1.0f);
}

void ampUnscale(Launch& launch, const puone_amp_unscale_args& args) {
  if (args.dtype == PUONE_FLOAT64) {
    unscaleIn<double>(launch, args);
  } else {
    unscaleIn<float>(launch, args);
  }
}

void ampUpdateScale(Launch& launch, const puone_amp_update_scale_args& args) {
  unsigned char* const scale = launch.resolve(args.scale);
  unsigned char* const tracker = launch.resolve(args.growth_tracker);
  const float current = load<float>(scale);
  int32_t successes = 0;
  if (load<float>(launch.resolve(args.found_inf)) != 0) {
    store(scale, static_cast<float>(current * args.backoff_factor));
  } else {
    successes = load<int32_t>(tracker) + 1;
    if (successes == args.growth_interval) {
      const float grown = static_cast<float>(current * args.growth_factor);
      if (std::isfinite(grown)) store(scale, grown);
      successes = 0;
    }
  }
  store(tracker, successes);
}

constexpr Kernel kKernels[] = {
    entry<puone_amp_unscale_args, ampUnscale>("amp_unscale"),
    entry<puone_amp_update_scale_args, ampUpdateScale>("amp_update_scale"),
};

} // namespace

std::span<const Kernel> ampKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
