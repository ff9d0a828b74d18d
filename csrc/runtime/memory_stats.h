// SPDX-License-Identifier: BSD-3-Clause
// The allocator's statistics of one device: what memory_stats() shows.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <cstddef>
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
  // What is counted for each pool; the first eight share a cache line.
  enum Quantity : size_t {
    kAllocation,
    kAllocatedBytes,
    kActive,
    kActiveBytes,
    kRequestedBytes,
    kInactiveSplit,
    kInactiveSplitBytes,
    kSegment,
    kReservedBytes,
    kQuantities,
  };
  using Counts = std::array<int64_t, kQuantities>;

  // A pool's numbers, apart by how often they are written: threads that allocate for streams of
  // their own meet in these cache lines only. What was freed follows from the others.
  struct alignas(64) Pool {
    Counts current{};
    alignas(64) Counts allocated{};
    alignas(64) Counts peak{};
    Counts at_reset{}; // `current` when `allocated` was set to 0

    void increase(Quantity quantity, int64_t amount) noexcept;
    void decrease(Quantity quantity, int64_t amount) noexcept;
    c10::CachingAllocator::Stat stat(Quantity quantity) const noexcept;
  };
  struct Values {
    // By c10's StatType: all, small blocks, large blocks.
    std::array<Pool, static_cast<size_t>(c10::CachingAllocator::StatType::NUM_TYPES)> pools;
    c10::CachingAllocator::Stat oversize_allocations, oversize_segments;
    int64_t num_alloc_retries = 0;
    int64_t num_ooms = 0;
    int64_t num_device_alloc = 0;
    int64_t num_device_free = 0;

    StatArray array(Quantity quantity) const noexcept;
  };

  void increase(Quantity quantity, bool small, size_t amount) noexcept;
  void decrease(Quantity quantity, bool small, size_t amount) noexcept;
  void change(Quantity quantity, bool small, int64_t amount) noexcept;
  void returned(bool small, size_t size);
  void reusable(bool small, size_t size, size_t requested, const SplitChange& split);
  void changeSplit(bool small, const SplitChange& split);

  mutable SpinLock lock_;
  Values values_;
};

} // namespace puone
