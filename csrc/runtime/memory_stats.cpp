// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/memory_stats.h"

#include <algorithm>
#include <mutex>

#include "runtime/block_size.h"

namespace puone {

using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

namespace {

constexpr size_t indexOf(StatType type) {
  return static_cast<size_t>(type);
}

constexpr size_t poolIndex(bool small) {
  return indexOf(small ? StatType::SMALL_POOL : StatType::LARGE_POOL);
}

void increase(StatArray& array, bool small, size_t amount) {
  array[indexOf(StatType::AGGREGATE)].increase(amount);
  array[poolIndex(small)].increase(amount);
}

void decrease(StatArray& array, bool small, size_t amount) {
  array[indexOf(StatType::AGGREGATE)].decrease(amount);
  array[poolIndex(small)].decrease(amount);
}

void change(StatArray& array, bool small, int64_t amount) {
  if (amount > 0) {
    increase(array, small, static_cast<size_t>(amount));
  } else if (amount < 0) {
    decrease(array, small, static_cast<size_t>(-amount));
  }
}

size_t total(const StatArray& array) {
  return static_cast<size_t>(array[indexOf(StatType::AGGREGATE)].current);
}

bool isOversize(bool small, size_t size) {
  return !small && size >= maxSplitSize();
}

} // namespace

void MemoryStats::blockAllocated(
    bool small, size_t size, size_t requested, const SplitChange& split) {
  const bool oversize = isOversize(small, size);
  std::lock_guard<SpinLock> lock(lock_);
  increase(values_.allocation, small, 1);
  increase(values_.allocated_bytes, small, size);
  increase(values_.active, small, 1);
  increase(values_.active_bytes, small, size);
  increase(values_.requested_bytes, small, requested);
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
  decrease(values_.allocation, small, 1);
  decrease(values_.allocated_bytes, small, size);
  if (isOversize(small, size)) {
    values_.oversize_allocations.decrease(1);
  }
}

void MemoryStats::reusable(bool small, size_t size, size_t requested, const SplitChange& split) {
  decrease(values_.active, small, 1);
  decrease(values_.active_bytes, small, size);
  decrease(values_.requested_bytes, small, requested);
  changeSplit(small, split);
}

void MemoryStats::changeSplit(bool small, const SplitChange& split) {
  change(values_.inactive_split, small, split.blocks);
  change(values_.inactive_split_bytes, small, split.bytes);
}

void MemoryStats::segmentAllocated(bool small, size_t bytes) {
  const bool oversize = isOversize(small, bytes);
  std::lock_guard<SpinLock> lock(lock_);
  ++values_.num_device_alloc;
  increase(values_.segment, small, 1);
  increase(values_.reserved_bytes, small, bytes);
  if (oversize) {
    values_.oversize_segments.increase(1);
  }
}

void MemoryStats::segmentFreed(bool small, size_t bytes) {
  const bool oversize = isOversize(small, bytes);
  std::lock_guard<SpinLock> lock(lock_);
  ++values_.num_device_free;
  decrease(values_.segment, small, 1);
  decrease(values_.reserved_bytes, small, bytes);
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
  return {total(values_.allocated_bytes), total(values_.reserved_bytes)};
}

c10::CachingDeviceAllocator::DeviceStats MemoryStats::get() const {
  Values values;
  {
    std::lock_guard<SpinLock> lock(lock_);
    values = values_;
  }
  c10::CachingDeviceAllocator::DeviceStats stats;
  stats.allocation = values.allocation;
  stats.segment = values.segment;
  stats.active = values.active;
  stats.inactive_split = values.inactive_split;
  stats.allocated_bytes = values.allocated_bytes;
  stats.reserved_bytes = values.reserved_bytes;
  stats.active_bytes = values.active_bytes;
  stats.inactive_split_bytes = values.inactive_split_bytes;
  stats.requested_bytes = values.requested_bytes;
  stats.oversize_allocations = values.oversize_allocations;
  stats.oversize_segments = values.oversize_segments;
  stats.num_alloc_retries = values.num_alloc_retries;
  stats.num_ooms = values.num_ooms;
  stats.num_device_alloc = values.num_device_alloc;
  stats.num_device_free = values.num_device_free;
  stats.max_split_size = static_cast<int64_t>(maxSplitSize());
  return stats;
}

template <typename F>
void MemoryStats::forEach(F&& f) {
  for (auto* array :
       {&values_.allocation,
        &values_.segment,
        &values_.active,
        &values_.inactive_split,
        &values_.allocated_bytes,
        &values_.reserved_bytes,
        &values_.active_bytes,
        &values_.inactive_split_bytes,
        &values_.requested_bytes}) {
    std::for_each(array->begin(), array->end(), f);
  }
  f(values_.oversize_allocations);
  f(values_.oversize_segments);
}

void MemoryStats::resetAccumulated() {
  std::lock_guard<SpinLock> lock(lock_);
  forEach([](auto& stat) { stat.reset_accumulated(); });
  values_.num_alloc_retries = 0;
  values_.num_ooms = 0;
  values_.num_device_alloc = 0;
  values_.num_device_free = 0;
}

void MemoryStats::resetPeaks() {
  std::lock_guard<SpinLock> lock(lock_);
  forEach([](auto& stat) { stat.reset_peak(); });
}

} // namespace puone
