// SPDX-License-Identifier: BSD-3-Clause
// The clocks of traces: the HAL's is the host's CLOCK_MONOTONIC, Kineto's the time of day. Both in
// ns.
#pragma once

#include <chrono>
#include <cstdint>

namespace puone::profiler {

template <class Clock>
int64_t nowNs() {
  const auto now = Clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

inline int64_t monotonicNs() {
  return nowNs<std::chrono::steady_clock>();
}

/// What to add to a monotonic time to get the time of day. The shortest of several readings is off
/// by half of it at most.
inline int64_t dayMinusMonotonicNs() {
  int64_t shortest = INT64_MAX;
  int64_t difference = 0;
  for (int i = 0; i < 5; ++i) {
    const int64_t before = monotonicNs();
    const int64_t day = nowNs<std::chrono::system_clock>();
    const int64_t took = monotonicNs() - before;
    if (took >= shortest) continue;
    shortest = took;
    difference = day - (before + took / 2);
  }
  return difference;
}

} // namespace puone::profiler
