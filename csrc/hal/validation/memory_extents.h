// SPDX-License-Identifier: BSD-3-Clause
// Where the blocks of device memory and of pinned memory have been. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace puone::validation {

inline uintptr_t address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// The addresses between which all blocks of one kind of memory have been. Outside of them no block
/// needs to be looked for, which saves a copy to ordinary memory two questions to the driver.
class Extent {
 public:
  void include(const void* block, size_t bytes) noexcept {
    const uintptr_t start = address(block);
    uintptr_t lowest = start_.load(std::memory_order_relaxed);
    while (start < lowest && !start_.compare_exchange_weak(lowest, start)) {
    }
    uintptr_t highest = end_.load(std::memory_order_relaxed);
    while (start + bytes > highest && !end_.compare_exchange_weak(highest, start + bytes)) {
    }
  }
  bool touches(const void* pointer, size_t bytes) const noexcept {
    return address(pointer) < end_.load() && address(pointer) + bytes > start_.load();
  }

 private:
  std::atomic<uintptr_t> start_{UINTPTR_MAX};
  std::atomic<uintptr_t> end_{0};
};

inline Extent device_extent;
inline Extent pinned_extent;

} // namespace puone::validation
