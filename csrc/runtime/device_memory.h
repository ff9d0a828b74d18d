// SPDX-License-Identifier: BSD-3-Clause
// Memory from the driver, up to a limit: the allocator's only way to malloc() and free().
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstddef>

namespace puone {

// Thread-safe; holds no lock while the driver works.
class DeviceMemory {
 public:
  explicit DeviceMemory(c10::DeviceIndex device) : device_(device) {}

  // NULL when the device, or the part of it that may be taken, is full; throws on anything else.
  void* allocate(size_t bytes);

  // Waits for queued work of the device (hal.h). Throws if the driver refuses; nothing is freed
  // then. `bytes` as allocated.
  void free(void* ptr, size_t bytes);

  // Bytes that may be taken in total; 0 is no limit. What is taken already stays.
  void setLimit(size_t bytes) noexcept {
    limit_.store(bytes);
  }
  size_t limit() const noexcept {
    return limit_.load();
  }

 private:
  bool claim(size_t bytes) noexcept;

  const c10::DeviceIndex device_;
  std::atomic<size_t> limit_{0};
  std::atomic<size_t> claimed_{0}; // bytes taken, or about to be
};

} // namespace puone
