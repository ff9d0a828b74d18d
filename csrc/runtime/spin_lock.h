// SPDX-License-Identifier: BSD-3-Clause
// A lock for sections of a few dozen instructions that call nothing: cheaper than std::mutex, and a
// thread that waits does not sleep. Use with std::lock_guard.
#pragma once

#include <atomic>
#include <thread>

namespace puone {

class SpinLock {
 public:
  void lock() noexcept {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      wait();
    }
  }
  void unlock() noexcept {
    locked_.store(false, std::memory_order_release);
  }

 private:
  // Looks without writing, so that the holder keeps the cache line. Yields after a while: the
  // holder may wait for this core.
  void wait() const noexcept {
    constexpr int kLooks = 64;
    for (int look = 0; locked_.load(std::memory_order_relaxed); ++look) {
      if (look >= kLooks) {
        std::this_thread::yield();
      } else {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    }
  }

  std::atomic<bool> locked_{false};
};

} // namespace puone
