// SPDX-License-Identifier: BSD-3-Clause
// Events, and the pool of native ones behind them.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/cuda/device_errors.h"
#include "hal/hal.h"

namespace puone::cuda {

constexpr uint32_t kEventFlags = PUONE_EVENT_TIMING | PUONE_EVENT_BLOCKING_SYNC;

/// Native events of one device, by flags, kept for later use. A wait that is queued on an event
/// refers to the record that it was queued for, so an event can be used again at once. Thread-safe.
class EventPool {
 public:
  ~EventPool();

  /// The device is current for CUDA.
  cudaEvent_t take(uint32_t flags);
  void give(uint32_t flags, cudaEvent_t event);

 private:
  std::mutex mutex_;
  std::array<std::vector<cudaEvent_t>, kEventFlags + 1> resting_;
};

/// A native event from the pool, given back at the end.
class NativeEvent {
 public:
  NativeEvent(EventPool& pool, uint32_t flags)
      : pool_(&pool), flags_(flags), event_(pool.take(flags)) {}
  ~NativeEvent() {
    if (pool_ != nullptr) pool_->give(flags_, event_);
  }
  NativeEvent(NativeEvent&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), flags_(other.flags_), event_(other.event_) {}
  NativeEvent& operator=(NativeEvent&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(flags_, other.flags_);
    std::swap(event_, other.event_);
    return *this;
  }

  cudaEvent_t get() const {
    return event_;
  }

 private:
  EventPool* pool_;
  uint32_t flags_;
  cudaEvent_t event_;
};

class NativeStream;

/// One event_record(): where it was, and which failures it covers.
struct Record {
  NativeStream* stream;
  Ticket until;
  bool captured; // into a graph: nothing was queued
};

struct Event {
  Event(int32_t d, uint32_t flags, EventPool& pool) : device(d), native(pool, flags) {}

  const int32_t device;
  const NativeEvent native;
  std::mutex mutex; // guards last, held while it is recorded
  std::optional<Record> last;
};

} // namespace puone::cuda
