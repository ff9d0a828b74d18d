// SPDX-License-Identifier: BSD-3-Clause
// Polling before sleeping: a futex wake and a context switch cost more than most waits last.
#pragma once

#include <chrono>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace puone::sim {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Polls `ready` for at most `limit`; true as soon as it is.
template <class Ready>
bool spinUntil(std::chrono::nanoseconds limit, const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

} // namespace puone::sim
