// SPDX-License-Identifier: BSD-3-Clause
// The cached memory of one device: an arena per stream, those of graphs (private_pools.h), the
// driver's memory behind them, and what concerns all of them: statistics, history, running out of
// memory. device_allocator.cpp puts c10's
// interface over it.
//
// Locks, in the order in which they are taken: Arena::growth, reclaiming_, Arena::mutex; statistics
// and history have leaf locks of their own. Only the first two are held while the driver allocates,
// frees or waits; a free takes Arena::mutex only, and an allocation that finds a cached block too.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/arena.h"
#include "runtime/block.h"
#include "runtime/device_memory.h"
#include "runtime/memory_history.h"
#include "runtime/memory_stats.h"
#include "runtime/private_pools.h"
#include "runtime/stream.h"

namespace puone {

// Thread-safe.
class DeviceCache {
 public:
  explicit DeviceCache(c10::DeviceIndex device)
      : device_(device), memory_(device), history_(device) {}

  // Memory for work on `stream`, a stream of this device. Does not wait while there is free memory.
  // Throws c10::OutOfMemoryError if there is not enough even after the whole cache was released.
  Block* allocate(size_t bytes, const Stream& stream);

  // Takes a block back, for reuse in stream order.
  void free(Block* block);

  // The block must not be reused before the work queued on `stream` when it is freed is done.
  void recordStream(Block* block, c10::StreamId stream);

  // Gives every unused segment back to the driver, except those of graphs. Waits for the streams
  // that recordStream() announced.
  void emptyCache();

  // One more graph has its memory in the pool; one less, which gives the unused segments of a pool
  // without graphs back to the driver and waits for the device to do so.
  void retainPool(c10::MempoolId_t pool);
  void releasePool(c10::MempoolId_t pool);

  // Looks again at the frees that had to wait for the end of a capture.
  void recordDeferredFrees();

  c10::CachingDeviceAllocator::DeviceStats stats() const;
  MemoryStats::Totals totals() const {
    return stats_.totals();
  }
  void resetAccumulatedStats();
  void resetPeakStats();
  void setMemoryFraction(double fraction);
  void snapshot(std::vector<c10::CachingDeviceAllocator::SegmentInfo>& out);

  MemoryHistory& history() noexcept {
    return history_;
  }

  // Number of requests so far; only counted if garbage collection is on.
  uint64_t now() const noexcept {
    return clock_.load(std::memory_order_relaxed);
  }

 private:
  struct Request {
    size_t size;      // of the block
    size_t requested; // by the caller
    MemoryHistory::Context context;
  };

  Arena& arenaOf(const Stream& stream);
  Arena& createArena(const Stream& stream);
  std::vector<Arena*> arenas();
  std::vector<Arena*> releasableArenas();

  Block* allocateCached(Arena& arena, const Request& request);
  Block* allocateSegment(Arena& arena, const Request& request);
  void* allocateAfterRelease(Arena& arena, size_t bytes);
  void handOut(Block* block, const Request& request, const SplitChange& change);
  [[noreturn]] void runOutOfMemory(Arena& arena, const Request& request);

  void recordEvents(Arena& arena, Block* block, const std::vector<c10::StreamId>& users);
  void processEvents(Arena& arena);
  void completeFree(Block* block);
  void completeFrees(const std::vector<Block*>& blocks);

  size_t releaseFree(const std::vector<Arena*>& arenas);
  size_t releaseAtLeast(Arena& arena, size_t bytes);
  size_t release(std::vector<Segment>& segments);
  void waitForUses(Arena& arena);
  std::exception_ptr waitForEvents(Arena& arena);
  std::exception_ptr waitForStreams(Arena& arena);
  void collectGarbage();

  void trace(
      TraceEntry::Action action,
      const Arena& arena,
      const void* ptr,
      size_t size,
      const MemoryHistory::Context& context = nullptr);

  static constexpr size_t kDirect = 256; // stream ids with a place in direct_

  const c10::DeviceIndex device_;
  DeviceMemory memory_;
  MemoryStats stats_;
  MemoryHistory history_;
  std::atomic<uint64_t> clock_{0};

  // Held while segments are on their way back to the driver: who runs out of memory waits for them.
  std::mutex reclaiming_;

  std::array<std::atomic<Arena*>, kDirect> direct_{};
  std::mutex arenas_mutex_;
  std::unordered_map<c10::StreamId, std::unique_ptr<Arena>> arenas_;
  PrivatePools pools_;

  // Uses by streams that are being captured: an event on them would become part of the graph.
  struct DeferredUse {
    Block* block;
    c10::StreamId user;
  };
  std::mutex deferred_mutex_;
  std::vector<DeferredUse> deferred_;
};

} // namespace puone
