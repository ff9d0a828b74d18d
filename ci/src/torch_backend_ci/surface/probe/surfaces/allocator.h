// SPDX-License-Identifier: BSD-3-Clause
// Device memory: an allocator, its registration, what is reported to the profiler.
#pragma once

#include "version.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#if PROBE_TORCH(2, 9)
#include <c10/core/CachingDeviceAllocator.h>
#endif
#if PROBE_TORCH(2, 10)
#include <c10/core/AllocatorConfig.h>
#endif

namespace probe {
namespace {

struct PlainAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t) override;
  bool is_simple_data_ptr(const c10::DataPtr&) const override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

#if PROBE_TORCH(2, 9)
struct CachingAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t) override;
  bool is_simple_data_ptr(const c10::DataPtr&) const override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void*, const void*, std::size_t) const override;
  bool initialized() override;
  void emptyCache(c10::MempoolId_t) override;
  void recordStream(const c10::DataPtr&, c10::Stream) override;
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    stats.allocated_bytes[all].increase(1);
    stats.reserved_bytes[all].decrease(1);
    stats.active_bytes[all].reset_peak();
    stats.requested_bytes[all].reset_accumulated();
    stats.num_alloc_retries = stats.num_ooms = stats.max_split_size = 0;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override;
  void resetPeakStats(c10::DeviceIndex) override;
#if PROBE_TORCH(2, 10)
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override;
#endif
};

c10::DeviceAllocator* deviceAllocator() {
  return c10::getDeviceAllocator(c10::DeviceType::PrivateUse1);
}

CachingAllocator* instance() {
  return new CachingAllocator();
}
#endif

struct MemoryReport final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, int64_t, size_t, size_t, c10::Device) override;
  void reportOutOfMemory(int64_t, size_t, size_t, c10::Device) override;
  bool memoryProfilingEnabled() const override;
};

struct Context final : c10::GatheredContext {};

void useAllocators(void* memory, void (*deleter)(void*), c10::Device device) {
  new MemoryReport();
  new Context();
  auto* allocator = new PlainAllocator();
  c10::SetAllocator(c10::DeviceType::PrivateUse1, allocator);
  c10::SetAllocator(c10::DeviceType::PrivateUse1, allocator, 1);
  c10::Allocator* registered = c10::GetAllocator(c10::DeviceType::PrivateUse1);
  registered->raw_deallocate(registered->raw_allocate(1));
  c10::DataPtr copy = registered->clone(memory, 1);
  c10::DataPtr whole(memory, device);
  c10::DataPtr data(memory, memory, deleter, device);
  data.get_deleter()(data.release_context());
  (void)data.compare_exchange_deleter(deleter, deleter);
  (void)data.mutable_get();
  data.unsafe_set_device(data.device());
  copy = c10::InefficientStdFunctionContext::makeDataPtr(memory, deleter, device);
  (void)c10::GetCPUAllocator()->is_simple_data_ptr(copy);
  (void)c10::GetDefaultCPUAllocator();
  if (c10::memoryProfilingEnabled()) {
    c10::reportMemoryUsageToProfiler(memory, 1, 1, 1, device);
    c10::reportOutOfMemoryToProfiler(1, 1, 1, device);
  }
#if PROBE_TORCH(2, 10)
  (void)c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments();
#endif
}

PlainAllocator the_allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &the_allocator)

} // namespace
} // namespace probe
