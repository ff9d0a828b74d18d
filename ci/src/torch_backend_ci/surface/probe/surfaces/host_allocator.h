// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory: the caching allocator of PyTorch on top of a driver, and one from scratch.
#pragma once

#include "version.h"

#include <ATen/core/CachingHostAllocator.h>

namespace probe {
namespace {

struct HostEvent {};

using Block = at::HostBlock<c10::Stream>;

struct HostCache final : at::CachingHostAllocatorImpl<c10::Stream, HostEvent> {
  std::pair<void*, void*> allocate(size_t) override;
  void free(void*) override;
  bool record_event(void*, void*, c10::Stream) override;
  void empty_cache() override;
  void copy_data(void*, const void*, std::size_t) const override;
#if PROBE_TORCH(2, 6)
  bool pinned_use_background_threads() override;
#endif

 private:
  void allocate_host_memory(size_t, void**) override;
  void free_block(Block*) override;
  void record_stream(std::optional<std::vector<HostEvent>>&, c10::Stream) override;
  bool query_event(HostEvent&) override;
#if PROBE_TORCH(2, 11)
  void add_allocated_block(Block*, BlockPool&) override;
  Block* get_free_block(size_t, BlockPool&) override;
  c10::Stream get_current_stream() const override;
  bool stream_is_capturing(c10::Stream) const override;
#else
  void add_allocated_block(Block*) override;
  Block* get_free_block(size_t) override;
#endif
#if PROBE_TORCH(2, 14)
  using History = std::shared_ptr<c10::GatheredContext>;
  void process_events(BlockPool&, const History&) override;
  void process_events_for_specific_size(int64_t, BlockPool&, const History&) override;
#elif PROBE_TORCH(2, 11)
  void process_events(BlockPool&) override;
  void process_events_for_specific_size(int64_t, BlockPool&) override;
#else
  void process_events() override;
#if PROBE_TORCH(2, 6)
  void process_events_for_specific_size(int64_t) override;
#endif
#endif
#if PROBE_TORCH(2, 13)
  size_t pinned_max_round_threshold() const override;
  size_t pinned_max_cached_size() const override;
#endif
};

#if PROBE_TORCH(2, 8)
DECLARE_HOST_ALLOCATOR(CachingHostAllocator, HostCache, deletePinnedMemory, caching_host_allocator)
REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &caching_host_allocator)

struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t) override;
  void copy_data(void*, const void*, std::size_t) const override;
  bool record_event(void*, void*, c10::Stream) override;
  void empty_cache() override;
  at::HostStats get_stats() override;
  void reset_accumulated_stats() override;
  void reset_peak_stats() override;
#if PROBE_TORCH(2, 11)
  void begin_allocate_to_pool(c10::MempoolId_t, std::function<bool(c10::Stream)>) override;
  void end_allocate_to_pool(c10::MempoolId_t) override;
  void release_pool(c10::MempoolId_t) override;
#endif
#if PROBE_TORCH(2, 14)
  void record_history(
      bool,
      c10::CachingDeviceAllocator::CreateContextFn,
      size_t,
      c10::CachingDeviceAllocator::RecordContext,
      bool) override;
  bool is_history_enabled() const override;
  std::vector<at::HostSegmentInfo> get_segments() override;
  std::vector<c10::CachingDeviceAllocator::TraceEntry> get_traces() override;
  void record_external_register(void*, size_t) override;
  void record_external_unregister(void*) override;
#endif
};

void useHostAllocators() {
  at::setHostAllocator(at::kPrivateUse1, new PinnedAllocator());
  at::setHostAllocator(at::kPrivateUse1, &caching_host_allocator, 1);
  at::getHostAllocator(at::kPrivateUse1)->empty_cache();
  caching_host_allocator.free(nullptr);
}
#else
struct CachingHostAllocator final : at::CachingHostAllocatorInterface<HostCache> {
  c10::DataPtr allocate(size_t) override;
};

void useHostAllocators(c10::Stream stream) {
  auto* allocator = new CachingHostAllocator();
  allocator->record_event(nullptr, nullptr, stream);
  allocator->empty_cache();
  allocator->free(nullptr);
}
#endif

} // namespace
} // namespace probe
