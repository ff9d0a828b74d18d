// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/host_allocator.h"

#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/event.h"
#include "runtime/stream.h"

#include <chrono>
#include <mutex>

namespace puone {
namespace {

// Behind the last use of a block by a stream. Nothing can be recorded while the stream is being
// captured: the event then waits for the end of the capture.
class UseEvent {
 public:
  explicit UseEvent(const Stream& stream) : stream_(stream) {}

  // Returns whether it is recorded.
  bool record() {
    if (!recorded_ && !isCapturing(stream_)) {
      event_.record(stream_);
      recorded_ = true;
    }
    return recorded_;
  }

  bool query() {
    return record() && event_.query();
  }

 private:
  Stream stream_;
  Event event_;
  bool recorded_ = false;
};

// Adds how long it lives, in microseconds, to a statistic.
class Timed {
 public:
  Timed(std::mutex& mutex, c10::CachingAllocator::DurationStat& stat)
      : mutex_(mutex), stat_(stat) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  ~Timed() {
    using std::chrono::microseconds;
    const auto lasted = std::chrono::duration_cast<microseconds>(Clock::now() - begin_);
    const std::lock_guard lock(mutex_);
    stat_.increase(lasted.count());
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex& mutex_;
  c10::CachingAllocator::DurationStat& stat_;
  Clock::time_point begin_ = Clock::now();
};

struct HostAllocatorImpl final : at::CachingHostAllocatorImpl<Stream, UseEvent> {
 public:
  // A graph would use the memory at each replay, when its owner has long freed it.
  std::pair<void*, void*> allocate(size_t size) override {
    refuseInCapture(getCurrentStream(), "pinned memory cannot be allocated");
    return CachingHostAllocatorImpl::allocate(size);
  }

 private:
  void allocate_host_memory(size_t size, void** ptr) override {
    const Timed timed(stats_.timing_mutex_, stats_.host_alloc_time);
    PUONE_CHECK(hal().host_malloc(size, ptr));
  }

  void free_block(at::HostBlock<Stream>* block) override {
    const Timed timed(stats_.timing_mutex_, stats_.host_free_time);
    PUONE_CHECK(hal().host_free(block->ptr_));
  }

  void record_stream(std::optional<std::vector<UseEvent>>& events, Stream stream) override {
    events->emplace_back(stream).record();
  }

  bool query_event(UseEvent& event) override {
    return event.query();
  }

  Stream get_current_stream() const override {
    return getCurrentStream();
  }

  bool stream_is_capturing(Stream stream) const override {
    return isCapturing(stream);
  }
};

void deletePinnedMemory(void* context);

struct HostAllocator final
    : at::CachingHostAllocatorInterface<HostAllocatorImpl, deletePinnedMemory> {};

HostAllocator& instance() {
  // Leaked: pinned tensors may die during static destruction.
  static auto* allocator = new HostAllocator();
  return *allocator;
}

void deletePinnedMemory(void* context) {
  // After shutdown and in a forked child the memory is not ours to manage any more.
  if (!driverIsDown() && !inBadFork()) {
    instance().free(context);
  }
}

const bool host_allocator_registered = [] {
  at::setHostAllocator(at::kPrivateUse1, &instance());
  return true;
}();

} // namespace

at::HostAllocator& hostAllocator() {
  return instance();
}

bool isPinned(const void* ptr) {
  return halOrNull() != nullptr && pointerAttributes(ptr).kind == PUONE_MEMORY_HOST;
}

} // namespace puone
