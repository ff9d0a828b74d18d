// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/host_allocator.h"

#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/event.h"
#include "runtime/stream.h"

namespace puone {
namespace {

struct HostAllocatorImpl final : at::CachingHostAllocatorImpl<Stream, Event> {
 private:
  void allocate_host_memory(size_t size, void** ptr) override {
    PUONE_CHECK(hal().host_malloc(size, ptr));
  }

  void free_block(at::HostBlock<Stream>* block) override {
    PUONE_CHECK(hal().host_free(block->ptr_));
  }

  void record_stream(std::optional<std::vector<Event>>& events, Stream stream) override {
    Event event;
    event.record(stream);
    events->push_back(std::move(event));
  }

  bool query_event(Event& event) override {
    return event.query();
  }

  Stream get_current_stream() const override {
    return getCurrentStream();
  }

  bool stream_is_capturing(Stream) const override {
    return false;
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
