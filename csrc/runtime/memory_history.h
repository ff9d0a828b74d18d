// SPDX-License-Identifier: BSD-3-Clause
// What happened to the memory of one device: a ring of trace entries, stacks, and observers. The
// types and the meaning of the arguments are those of c10::cuda::CUDACachingAllocator, which the
// tools that read the entries know.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/ApproximateClock.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace puone {

using c10::CachingDeviceAllocator::AllocatorTraceTracker;
using c10::CachingDeviceAllocator::CreateContextFn;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::TraceEntry;

// (device, bytes of the failed request, bytes that the allocator may take, bytes free)
using OutOfMemoryObserver =
    std::function<void(int64_t device, size_t allocated, size_t device_total, size_t device_free)>;

// Thread-safe. While nothing is recorded and nobody observes, an operation costs one load.
class MemoryHistory {
 public:
  using Context = std::shared_ptr<c10::GatheredContext>;

  explicit MemoryHistory(c10::DeviceIndex device) : device_(device) {}

  // Starts or stops recording. Keeps the last `max_entries` entries. `recorder` gathers a stack; it
  // is called without a lock and may take the GIL. `when` says for what; NEVER for nothing. Entries
  // of the actions in `skipped`, a set of bits (1 << action), are not kept.
  void configure(
      bool enabled,
      CreateContextFn recorder,
      size_t max_entries,
      RecordContext when,
      bool clear,
      uint32_t skipped = 0);

  // Called for each entry from then on, by the thread that caused it, before the operation returns:
  // for SEGMENT_FREE before the driver gets the memory back. The allocator's locks are held: a
  // tracker may neither allocate, free nor wait for a thread that does, nor take the GIL.
  void attachTracker(AllocatorTraceTracker tracker);

  // Called without a lock before OutOfMemoryError is thrown; it may take the GIL and free memory.
  void attachObserver(OutOfMemoryObserver observer);

  // The stack of the calling thread, NULL unless stacks are recorded at `level`. Call it without a
  // lock.
  Context gather(RecordContext level) const {
    return when_.load(std::memory_order_relaxed) < level ? nullptr : gatherNow();
  }

  // `stream` is the driver's handle.
  void record(
      TraceEntry::Action action,
      const void* address,
      size_t size,
      void* stream,
      c10::MempoolId_t mempool,
      const Context& context = nullptr) {
    if (active_.load(std::memory_order_relaxed)) {
      recordNow(action, reinterpret_cast<size_t>(address), size, stream, mempool, context);
    }
  }
  bool active() const noexcept {
    return active_.load(std::memory_order_relaxed);
  }

  // Records OOM and calls the observers.
  void outOfMemory(
      size_t size,
      size_t limit,
      size_t free,
      void* stream,
      c10::MempoolId_t mempool,
      const Context& context);

  // Oldest first, with Unix times in nanoseconds.
  std::vector<TraceEntry> entries() const;

 private:
  Context gatherNow() const;
  void recordNow(
      TraceEntry::Action action,
      size_t address,
      size_t size,
      void* stream,
      c10::MempoolId_t mempool,
      const Context& context);
  void keep(TraceEntry entry);

  const c10::DeviceIndex device_;
  std::atomic<bool> active_{false}; // recording_ or a tracker is attached
  std::atomic<RecordContext> when_{RecordContext::NEVER};
  std::atomic<CreateContextFn> recorder_{nullptr};

  mutable std::mutex mutex_;
  bool recording_ = false;
  size_t max_entries_ = 1;
  uint32_t skipped_ = 0;
  std::vector<TraceEntry> ring_;
  size_t oldest_ = 0; // once the ring is full
  // From before the first entry: to a time before its own beginning it gives 0.
  mutable std::optional<c10::ApproximateClockToUnixTimeConverter> clock_;
  std::shared_ptr<const std::vector<AllocatorTraceTracker>> trackers_;
  std::vector<OutOfMemoryObserver> observers_;
};

} // namespace puone
