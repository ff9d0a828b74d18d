// SPDX-License-Identifier: BSD-3-Clause
// The allocator under test over the sim driver, and the little that the tests need besides.
#pragma once

#include <c10/core/Allocator.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "hal/hal.h"
#include "runtime/device_allocator.h"
#include "runtime/stream.h"

namespace puone::test {

constexpr size_t kMiB = size_t{1} << 20;

const puone_fault_api& fault();

/// A tensor's memory, allocated for a stream.
c10::DataPtr allocate(size_t bytes, const Stream& stream);
void recordStream(const c10::DataPtr& ptr, const Stream& stream);

/// Keeps a stream busy for that long; returns at once.
void keepBusy(const Stream& stream, std::chrono::milliseconds time);

int64_t allocated(c10::DeviceIndex device = 0);
int64_t active(c10::DeviceIndex device = 0);
int64_t reserved(c10::DeviceIndex device = 0);

/// No fault, empty caches and idle devices before a test and after it; fails the test unless then
/// nothing is allocated.
class Clean {
 public:
  Clean();
  ~Clean();
  Clean(const Clean&) = delete;
  Clean& operator=(const Clean&) = delete;
};

/// How long a call takes.
template <typename F>
std::chrono::milliseconds timeOf(F&& f) {
  const auto begun = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun);
}

} // namespace puone::test
