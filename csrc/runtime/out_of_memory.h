// SPDX-License-Identifier: BSD-3-Clause
// The error that users see when a device is full.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace puone {

// "1.50 GiB"
std::string formatBytes(uint64_t bytes);

struct MemoryUse {
  size_t free;      // bytes that the driver can still give out
  size_t total;     // bytes of the device
  size_t limit;     // bytes that the allocator may take, 0 for all
  size_t allocated; // bytes owned by callers
  size_t reserved;  // bytes taken from the driver
};

// Throws c10::OutOfMemoryError for a request of that many bytes.
[[noreturn]] void throwOutOfMemory(c10::DeviceIndex device, size_t requested, const MemoryUse& use);

} // namespace puone
