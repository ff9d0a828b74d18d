// SPDX-License-Identifier: BSD-3-Clause
// The numbers that tie the records of a trace to the calls that queued the work.
#pragma once

#include <atomic>
#include <cstdint>

namespace puone {

/// Thread-safe.
class Correlation {
 public:
  /// A number that the process has not used yet, from 1; the calling thread's last one from now on.
  static uint64_t next() {
    return last_ = count_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  /// The calling thread's last number, 0 if there is none.
  static uint64_t last() {
    return last_;
  }

 private:
  static inline std::atomic<uint64_t> count_{0};
  static inline thread_local uint64_t last_ = 0;
};

} // namespace puone
