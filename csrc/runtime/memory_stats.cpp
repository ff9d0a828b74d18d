// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/memory_stats.h"

#include <algorithm>
#include <mutex>

#include "runtime/block_size.h"

namespace puone {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatType;

namespace {

constexpr size_t indexOf(StatType type) {
  return static_cast<size_t>(type);
}

constexpr size_t poolIndex(bool small) {
  return indexOf(small ? StatType::SMALL_POOL : StatType::LARGE_POOL);
}

bool isOversize(bool small, size_t size) {
  return !small && size >= maxSplitSize();
}

} // namespace

void MemoryStats::Pool::increase(Quantity quantity, int64_t amount) noexcept {
  current[quantity] += amount;
  allocated[quantity] += amount;
  // A write only if it is higher: else the line stays in every core's cache.
  if (current[quantity] > peak[quantity]) {
    peak[quantity] = current[quantity];
  }
}

void MemoryStats::Pool::decrease(Quantity quantity, int64_t amount) noexcept {
  current[quantity] -= amount;
}

Stat MemoryStats::Pool::stat(Quantity quantity) const noexcept {
  Stat stat;
  stat.current = current[quantity];
  stat.peak = peak[quantity];
  stat.allocated = allocated[quantity];
  stat.freed = at_reset[quantity] + allocated[quantity] - current[quantity];
  return stat;
}

MemoryStats::StatArray MemoryStats::Values::array(Quantity quantity) const noexcept {
  StatArray array;
  std::transform(pools.begin(), pools.end(), array.begin(), [&](const Pool& pool) {
    return pool.stat(quantity);
  });
  return array;
}

void MemoryStats::increase(Quantity quantity, bool small, size_t amount) noexcept {
  for (const size_t pool : {indexOf(StatType::AGGREGATE), poolIndex(small)}) {
    values_.pools[pool].increase(quantity, static_cast<int64_t>(amount));
  }
}

void MemoryStats::decrease(Quantity quantity, bool small, size_t amount) noexcept {
  for (const size_t pool : {indexOf(StatType::AGGREGATE), poolIndex(small)}) {
    values_.pools[pool].decrease(quantity, static_cast<int64_t>(amount));
  }
}

void MemoryStats::change(Quantity quantity, bool small, int64_t amount) noexcept {
  if (amount > 0) {
    increase(quantity, small, static_cast<size_t>(amount));
  } else if (amount < 0) {
    decrease(quantity, small, static_cast<size_t>(-amount));
  }
}

void MemoryStats::blockAllocated(
    bool small, size_t size, size_t requested, const SplitChange& split) {
  const bool oversize = isOversize(small, size);
  std::lock_guard<SpinLock> lock(lock_);
  increase(kAllocation, small, 1);
  increase(kAllocatedBytes, small, size);
  increase(kActive, small, 1);
  increase(kActiveBytes, small, size);
  increase(kRequestedBytes, small, requested);
  changeSplit(small, split);
  if (oversize) {
    values_.oversize_allocations.increase(1);
  }
}

void MemoryStats::blockReturned(bool small, size_t size) {
  std::lock_guard<SpinLock> lock(lock_);
  returned(small, size);
}

void MemoryStats::blockReusable(
    bool small, size_t size, size_t requested, const SplitChange& split) {
  std::lock_guard<SpinLock> lock(lock_);
  reusable(small, size, requested, split);
}

void MemoryStats::blockFreed(bool small, size_t size, size_t requested, const SplitChange& split) {
  std::lock_guard<SpinLock> lock(lock_);
  returned(small, size);
  reusable(small, size, requested, split);
}

void MemoryStats::returned(bool small, size_t size) {
  decrease(kAllocation, small, 1);
  decrease(kAllocatedBytes, small, size);
  if (isOversize(small, size)) {
    values_.oversize_allocations.decrease(1);
  }
}

void MemoryStats::reusable(bool small, size_t size, size_t requested, const SplitChange& split) {
  decrease(kActive, small, 1);
  decrease(kActiveBytes, small, size);
  decrease(kRequestedBytes, small, requested);
  changeSplit(small, split);
}

void MemoryStats::changeSplit(bool small, const SplitChange& split) {
  change(kInactiveSplit, small, split.blocks);
  change(kInactiveSplitBytes, small, split.bytes);
}

void MemoryStats::segmentAllocated(bool small, size_t bytes) {
  const bool oversize = isOversize(small, bytes);
  std::lock_guard<SpinLock> lock(lock_);
  ++values_.num_device_alloc;
  increase(kSegment, small, 1);
  increase(kReservedBytes, small, bytes);
  if (oversize) {
    values_.oversize_segments.increase(1);
  }
}

void MemoryStats::segmentFreed(bool small, size_t bytes) {
  const bool oversize = isOversize(small, bytes);
  std::lock_guard<SpinLock> lock(lock_);
  ++values_.num_device_free;
  decrease(kSegment, small, 1);
  decrease(kReservedBytes, small, bytes);
  if (oversize) {
    values_.oversize_segments.decrease(1);
  }
}

void MemoryStats::allocationRetried() {
  std::lock_guard<SpinLock> lock(lock_);
  ++values_.num_alloc_retries;
}

void MemoryStats::ranOutOfMemory() {
  std::lock_guard<SpinLock> lock(lock_);
  ++values_.num_ooms;
}

MemoryStats::Totals MemoryStats::totals() const {
  std::lock_guard<SpinLock> lock(lock_);
  const Counts& all = values_.pools[indexOf(StatType::AGGREGATE)].current;
  return {static_cast<size_t>(all[kAllocatedBytes]), static_cast<size_t>(all[kReservedBytes])};
}

c10::CachingDeviceAllocator::DeviceStats MemoryStats::get() const {
  Values values;
  {
    std::lock_guard<SpinLock> lock(lock_);
    values = values_;
  }
  c10::CachingDeviceAllocator::DeviceStats stats;
  stats.allocation = values.array(kAllocation);
  stats.segment = values.array(kSegment);
  stats.active = values.array(kActive);
  stats.inactive_split = values.array(kInactiveSplit);
  stats.allocated_bytes = values.array(kAllocatedBytes);
  stats.reserved_bytes = values.array(kReservedBytes);
  stats.active_bytes = values.array(kActiveBytes);
  stats.inactive_split_bytes = values.array(kInactiveSplitBytes);
  stats.requested_bytes = values.array(kRequestedBytes);
  stats.oversize_allocations = values.oversize_allocations;
  stats.oversize_segments = values.oversize_segments;
  stats.num_alloc_retries = values.num_alloc_retries;
  stats.num_ooms = values.num_ooms;
  stats.num_device_alloc = values.num_device_alloc;
  stats.num_device_free = values.num_device_free;
  stats.max_split_size = static_cast<int64_t>(maxSplitSize());
  return stats;
}

void MemoryStats::resetAccumulated() {
  std::lock_guard<SpinLock> lock(lock_);
  for (Pool& pool : values_.pools) {
    pool.allocated = {};
    pool.at_reset = pool.current;
  }
  values_.oversize_allocations.reset_accumulated();
  values_.oversize_segments.reset_accumulated();
  values_.num_alloc_retries = 0;
  values_.num_ooms = 0;
  values_.num_device_alloc = 0;
  values_.num_device_free = 0;
}

void MemoryStats::resetPeaks() {
  std::lock_guard<SpinLock> lock(lock_);
  for (Pool& pool : values_.pools) {
    pool.peak = pool.current;
  }
  values_.oversize_allocations.reset_peak();
  values_.oversize_segments.reset_peak();
}

} // namespace puone
