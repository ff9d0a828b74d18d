// SPDX-License-Identifier: BSD-3-Clause
// Which blocks are being freed at present. Thread-safe; a fork() has to hold the lock.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

namespace puone::validation {

/// Blocks that a thread is freeing: if two threads free one block, the second is refused.
class Releasing {
 public:
  explicit Releasing(const void* block) : block_(block) {
    const std::lock_guard guard(mutex());
    auto& all = blocks();
    is_first_ = std::find(all.begin(), all.end(), block) == all.end();
    if (is_first_) all.push_back(block);
  }
  ~Releasing() {
    if (!is_first_) return;
    const std::lock_guard guard(mutex());
    std::erase(blocks(), block_);
  }
  Releasing(const Releasing&) = delete;
  Releasing& operator=(const Releasing&) = delete;

  bool isFirst() const {
    return is_first_;
  }
  static std::mutex& mutex() {
    static auto* const only = new std::mutex();
    return *only;
  }

 private:
  static std::vector<const void*>& blocks() {
    static auto* const all = new std::vector<const void*>();
    return *all;
  }

  const void* const block_;
  bool is_first_ = false;
};

} // namespace puone::validation
