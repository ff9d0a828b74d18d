// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/memory_history.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace puone {

void MemoryHistory::configure(
    bool enabled,
    CreateContextFn recorder,
    size_t max_entries,
    RecordContext when,
    bool clear,
    uint32_t skipped) {
  TORCH_CHECK(when == RecordContext::NEVER || recorder != nullptr, "stacks need a recorder");
  std::lock_guard<std::mutex> lock(mutex_);
  if (enabled && !clock_) clock_.emplace();
  recording_ = enabled;
  skipped_ = skipped;
  recorder_.store(recorder);
  when_.store(enabled ? when : RecordContext::NEVER);
  if (!enabled || clear || max_entries != max_entries_) {
    ring_.clear();
    oldest_ = 0;
  }
  max_entries_ = std::max<size_t>(max_entries, 1);
  active_.store(recording_ || trackers_ != nullptr);
}

void MemoryHistory::attachTracker(AllocatorTraceTracker tracker) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto trackers = std::make_shared<std::vector<AllocatorTraceTracker>>();
  if (trackers_ != nullptr) {
    *trackers = *trackers_;
  }
  trackers->push_back(std::move(tracker));
  trackers_ = std::move(trackers);
  active_.store(true);
}

void MemoryHistory::attachObserver(OutOfMemoryObserver observer) {
  std::lock_guard<std::mutex> lock(mutex_);
  observers_.push_back(std::move(observer));
}

MemoryHistory::Context MemoryHistory::gatherNow() const {
  const CreateContextFn recorder = recorder_.load();
  return recorder == nullptr ? nullptr : recorder();
}

void MemoryHistory::recordNow(
    TraceEntry::Action action,
    size_t address,
    size_t size,
    void* stream,
    c10::MempoolId_t mempool,
    const Context& context) {
  TraceEntry entry(
      action,
      device_,
      address,
      size,
      stream,
      mempool,
      c10::getApproximateTime(),
      when_.load() >= RecordContext::ALLOC ? context : nullptr);
  std::shared_ptr<const std::vector<AllocatorTraceTracker>> trackers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    trackers = trackers_;
    if (recording_ && (skipped_ >> action & 1) == 0) {
      keep(entry);
    }
  }
  if (trackers != nullptr) {
    for (const auto& tracker : *trackers) {
      tracker(entry);
    }
  }
}

void MemoryHistory::keep(TraceEntry entry) {
  if (ring_.size() < max_entries_) {
    ring_.push_back(std::move(entry));
    return;
  }
  ring_[oldest_] = std::move(entry);
  oldest_ = (oldest_ + 1) % max_entries_;
}

void MemoryHistory::outOfMemory(
    size_t size,
    size_t limit,
    size_t free,
    void* stream,
    c10::MempoolId_t mempool,
    const Context& context) {
  if (active()) {
    recordNow(TraceEntry::OOM, free, size, stream, mempool, context);
  }
  std::vector<OutOfMemoryObserver> observers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    observers = observers_;
  }
  for (const auto& observer : observers) {
    observer(device_, size, limit, free);
  }
}

std::vector<TraceEntry> MemoryHistory::entries() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<TraceEntry> result = ring_;
  if (result.empty()) return result;
  std::rotate(result.begin(), result.begin() + static_cast<ptrdiff_t>(oldest_), result.end());
  const auto toUnixTime = clock_->makeConverter();
  for (TraceEntry& entry : result) {
    entry.time_.t_ = toUnixTime(entry.time_.approx_t_);
  }
  return result;
}

} // namespace puone
