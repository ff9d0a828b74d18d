// SPDX-License-Identifier: BSD-3-Clause
// Gradients are unscaled on a host.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "kernels/amp.h"
#include "kernels/args/multi_tensor.h"
#include "kernels/host/multi_tensor.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// Multiplies; returns whether an element was not finite.
template <class T>
bool unscaleAll(T* data, int64_t n, const Unscale<T> unscale) {
  int bad = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T value = data[i];
    bad |= unscale.isBad(value) ? 1 : 0;
    data[i] = unscale(value);
  }
  return bad != 0;
}

template <class T>
void unscaleTensors(Launch& launch, const puone_amp_unscale_args& args) {
  const Unscale<T> unscale{load<float>(launch.resolve(args.inv_scale))};
  std::atomic<bool> bad{false}; // set by any core, never cleared: the order does not matter
  forTensors(launch, args, [&](int t, int64_t begin, int64_t end) {
    const std::array<unsigned char*, 1> data{launch.resolve(args.tensors[t].data)};
    updateArrays<T>(data, args.dtype, begin, end, [&](const auto& arrays, int64_t n) {
      if (unscaleAll(arrays[0], n, unscale)) bad.store(true, std::memory_order_relaxed);
    });
  });
  if (bad.load(std::memory_order_relaxed)) store(launch.resolve(args.found_inf), 1.0f);
}

} // namespace puone::kernels::PUONE_ISA
