// SPDX-License-Identifier: BSD-3-Clause
// Indices come in device memory: only the kernel sees them, so only it can refuse one. As a device
// assertion does, it lets the launch fail: the error arrives at the next synchronisation.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace puone::kernels {

class IndexCheck {
 public:
  /// Is 0 <= index < size? If not, nothing must be read or written there. Any thread may ask.
  bool operator()(int64_t index, int64_t size) {
    if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size)) return true;
    if (!failed_.exchange(true)) {
      index_ = index;
      size_ = size;
    }
    return false;
  }

  /// After the work: throws if an index was out of bounds.
  void finish(const std::string& name) const {
    if (!failed_) return;
    throw std::out_of_range(
        name + ": index " + std::to_string(index_) + " is out of bounds for dimension with size " +
        std::to_string(size_));
  }

 private:
  std::atomic<bool> failed_{false};
  int64_t index_ = 0;
  int64_t size_ = 0;
};

} // namespace puone::kernels
