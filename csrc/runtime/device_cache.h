// SPDX-License-Identifier: BSD-3-Clause
// The cached memory of one device: segments taken from the driver, the blocks they are split into,
// and the free blocks waiting to be reused. device_allocator.cpp puts c10's interface over it.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/event.h"
#include "runtime/stream.h"

namespace puone {

struct BlockPool;

// A part of a segment. Blocks of one segment form a list in address order; neighbours that are both
// free are merged.
struct Block {
  c10::StreamId stream; // the stream it was allocated on
  char* ptr;
  size_t size;          // bytes, a multiple of 512
  size_t requested = 0; // bytes the caller asked for
  BlockPool* pool;
  bool allocated = false; // in a caller's hands
  int pending_events = 0; // events that other streams must pass before reuse
  int gc_age = 0;         // allocations since it became free
  Block* prev = nullptr;
  Block* next = nullptr;
  std::unordered_set<c10::StreamId> users{}; // other streams, from recordStream()

  bool isSplit() const noexcept {
    return prev != nullptr || next != nullptr;
  }
};

// Smallest first within a stream, so lower_bound finds the best fit.
struct BlockOrder {
  bool operator()(const Block* a, const Block* b) const noexcept;
};

// Free blocks of small (<= 1 MiB) and of large requests are kept apart, against fragmentation.
struct BlockPool {
  explicit BlockPool(bool small_) : small(small_) {}
  const bool small;
  std::set<Block*, BlockOrder> free;
};

// Thread-safe.
class DeviceCache {
 public:
  explicit DeviceCache(c10::DeviceIndex device) : device_(device) {}

  // Returns device memory for `stream`, waiting for nothing. Throws c10::OutOfMemoryError after
  // everything cached has been given back to the driver in vain.
  void* allocate(size_t bytes, c10::StreamId stream);

  // Takes a block back; does nothing for a pointer that is not of this device.
  void free(void* ptr);

  // `ptr` must not be reused before the work queued on `stream` so far when it is freed is done.
  void recordStream(void* ptr, c10::StreamId stream);

  // Gives every unused segment back to the driver.
  void emptyCache();

  c10::CachingDeviceAllocator::DeviceStats stats();
  void resetAccumulatedStats();
  void resetPeakStats();
  void setMemoryFraction(double fraction);
  void snapshot(std::vector<c10::CachingDeviceAllocator::SegmentInfo>& out);

 private:
  using StatTypes = c10::CachingAllocator::StatTypes;

  BlockPool& poolFor(size_t size);
  StatTypes statTypes(const BlockPool& pool) const;

  Block* findFree(size_t size, c10::StreamId stream, BlockPool& pool);
  Block* allocateSegment(size_t size, c10::StreamId stream, BlockPool& pool);
  void* driverMalloc(size_t bytes);
  void releaseCached();
  bool releaseAtLeast(size_t size, c10::StreamId stream, BlockPool& pool);
  void collectGarbage();
  void releaseSegment(Block* block);
  [[noreturn]] void throwOutOfMemory(size_t requested, size_t size);

  bool shouldSplit(const Block& block, size_t size) const;
  Block* split(Block* block, size_t size);
  void makeFree(Block* block);
  size_t mergeWith(Block* block, Block* neighbour);

  void recordEvents(Block* block);
  void processEvents(bool wait);

  const c10::DeviceIndex device_;
  std::mutex mutex_;
  BlockPool small_{true};
  BlockPool large_{false};
  std::unordered_map<void*, Block*> live_; // allocated, or freed with events pending
  std::deque<std::pair<Event, Block*>> events_;
  c10::CachingDeviceAllocator::DeviceStats stats_;
  size_t limit_ = 0; // bytes the driver may be asked for in total; 0 is no limit
};

} // namespace puone
