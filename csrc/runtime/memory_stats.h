// SPDX-License-Identifier: BSD-3-Clause
// The allocator's statistics of one device: what memory_stats() shows.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <cstdint>

#include "runtime/spin_lock.h"

namespace puone {

// How an operation changed the free blocks that are parts of a segment.
struct SplitChange {
  int64_t blocks = 0;
  int64_t bytes = 0;
};

// Thread-safe. A block is allocated while a caller owns it, and active until it can be reused.
class MemoryStats {
 public:
  using StatArray = c10::CachingAllocator::StatArray;

  void blockAllocated(bool small, size_t size, size_t requested, const SplitChange& split);
  // A caller returned the block: to be followed by blockReusable(), at once or later.
  void blockReturned(bool small, size_t size);
  void blockReusable(bool small, size_t size, size_t requested, const SplitChange& split);
  // Both in one.
  void blockFreed(bool small, size_t size, size_t requested, const SplitChange& split);

  void segmentAllocated(bool small, size_t bytes);
  void segmentFreed(bool small, size_t bytes);

  void allocationRetried();
  void ranOutOfMemory();

  // Bytes of the callers, and bytes taken from the driver.
  struct Totals {
    size_t allocated;
    size_t reserved;
  };
  Totals totals() const;

  c10::CachingDeviceAllocator::DeviceStats get() const;
  void resetAccumulated();
  void resetPeaks();

 private:
  struct Values {
    StatArray allocation, segment, active, inactive_split;
    StatArray allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
    c10::CachingAllocator::Stat oversize_allocations, oversize_segments;
    int64_t num_alloc_retries = 0;
    int64_t num_ooms = 0;
    int64_t num_device_alloc = 0;
    int64_t num_device_free = 0;
  };

  void returned(bool small, size_t size);
  void reusable(bool small, size_t size, size_t requested, const SplitChange& split);
  void changeSplit(bool small, const SplitChange& split);
  template <typename F>
  void forEach(F&& f);

  mutable SpinLock lock_;
  Values values_;
};

} // namespace puone
