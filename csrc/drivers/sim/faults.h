// SPDX-License-Identifier: BSD-3-Clause
// Injected faults: what the "fault" extension of hal.h arms and the driver's entries consult. Lost
// devices belong to the scheduler, because pending work has to be dropped with them.
#pragma once

#include <atomic>
#include <cstdint>

namespace puone::sim {

/// Fires once, at the nth call of fires() after arm(n). Thread-safe.
class Countdown {
 public:
  void arm(uint64_t nth) {
    left_.store(nth, std::memory_order_relaxed);
  }

  bool armed() const {
    return left_.load(std::memory_order_relaxed) != 0;
  }

  bool fires() {
    uint64_t left = left_.load(std::memory_order_relaxed);
    while (left != 0) {
      if (left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return left == 1;
    }
    return false;
  }

 private:
  std::atomic<uint64_t> left_{0}; // 0: not armed
};

struct InjectedFaults {
  Countdown out_of_memory;
  Countdown kernel_error;
};

} // namespace puone::sim
