// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/device_allocator.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>

#include <exception>
#include <memory>

#include "runtime/block_table.h"
#include "runtime/device.h"
#include "runtime/device_cache.h"
#include "runtime/driver.h"
#include "runtime/shared_storage.h"
#include "runtime/stream.h"

namespace puone {
namespace {

class CachingAllocator final : public c10::DeviceAllocator {
 public:
  // On the current device and for its current stream. Zero bytes are a null pointer.
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* dest, const void* src, size_t count) const override;

  bool initialized() override {
    return driverState().available();
  }
  void emptyCache(c10::MempoolId_t pool) override;
  void recordStream(const c10::DataPtr& ptr, c10::Stream stream) override;
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return cache(device).stats();
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    cache(device).resetAccumulatedStats();
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    cache(device).resetPeakStats();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override;

  DeviceCache& cache(c10::DeviceIndex device);
  std::vector<std::unique_ptr<DeviceCache>>& caches();
  void release(void* ptr) noexcept;

 private:
  BlockTable blocks_;
};

CachingAllocator& instance() {
  // Leaked: storages may die during static destruction.
  static auto* allocator = new CachingAllocator();
  return *allocator;
}

void deleteDeviceMemory(void* ptr) {
  instance().release(ptr);
}

// `bytes` is negative for a free.
void reportToProfiler(void* ptr, int64_t bytes, DeviceCache& cache, c10::DeviceIndex device) {
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
    const auto [allocated, reserved] = cache.totals();
    c10::reportMemoryUsageToProfiler(
        ptr, bytes, allocated, reserved, c10::Device(kDeviceType, device));
  }
}

std::vector<std::unique_ptr<DeviceCache>>& CachingAllocator::caches() {
  static auto* caches = [] {
    if (c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments()) {
      TORCH_WARN_ONCE("puone does not support expandable_segments; the option is ignored");
    }
    auto* result = new std::vector<std::unique_ptr<DeviceCache>>();
    for (c10::DeviceIndex device = 0; device < deviceCount(); ++device) {
      result->push_back(std::make_unique<DeviceCache>(device));
    }
    return result;
  }();
  return *caches;
}

DeviceCache& CachingAllocator::cache(c10::DeviceIndex device) {
  return *caches()[static_cast<size_t>(resolveDevice(device))];
}

// [quote: allocate]
c10::DataPtr CachingAllocator::allocate(size_t bytes) {
  const c10::DeviceIndex device = currentDevice();
  const c10::Device where(kDeviceType, device);
  if (bytes == 0) {
    return {nullptr, nullptr, &deleteDeviceMemory, where};
  }
  auto& devices_cache = *caches()[static_cast<size_t>(device)];
  Block* block = devices_cache.allocate(bytes, getCurrentStream(device));
  void* ptr = block->ptr;
  blocks_.insert(ptr, block);
  reportToProfiler(ptr, static_cast<int64_t>(block->size), devices_cache, device);
  return {ptr, ptr, &deleteDeviceMemory, where};
}
// [end: allocate]

void CachingAllocator::release(void* ptr) noexcept {
  // After shutdown and in a forked child the memory is not ours to manage any more.
  if (ptr == nullptr || driverIsDown() || inBadFork()) {
    return;
  }
  Block* block = blocks_.take(ptr);
  if (block == nullptr) {
    return; // not allocated here, or freed before
  }
  auto& devices_cache = block->arena->cache;
  const auto device = block->arena->stream.deviceIndex();
  const auto bytes = static_cast<int64_t>(block->size);
  devices_cache.free(block);
  reportToProfiler(ptr, -bytes, devices_cache, device);
}

c10::DeleterFnPtr CachingAllocator::raw_deleter() const {
  return &deleteDeviceMemory;
}

void CachingAllocator::copy_data(void* dest, const void* src, size_t count) const {
  const auto stream = getCurrentStream();
  PUONE_CHECK(hal().memcpy_async(dest, src, count, PUONE_MEMCPY_DEVICE_TO_DEVICE, stream.handle()));
}

void CachingAllocator::emptyCache(c10::MempoolId_t pool) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      pool == c10::MempoolId_t({0, 0}),
      "puone: the memory of a graph's pool goes back when its last graph is reset");
  if (!initialized()) {
    return;
  }
  collectSentStorages();
  for (auto& devices_cache : caches()) {
    devices_cache->emptyCache();
  }
}

void CachingAllocator::recordStream(const c10::DataPtr& ptr, c10::Stream stream) {
  // An allocation that has been wrapped (from_blob, sharing) is not tracked here.
  if (ptr.get() == nullptr || ptr.get_deleter() != &deleteDeviceMemory) {
    return;
  }
  TORCH_CHECK(
      ptr.device() == stream.device(),
      "record_stream: the tensor is on ",
      ptr.device(),
      " but the stream is of ",
      stream.device());
  if (Block* block = blocks_.find(ptr.get())) {
    block->arena->cache.recordStream(block, Stream(stream).id());
  }
}

std::pair<size_t, size_t> CachingAllocator::getMemoryInfo(c10::DeviceIndex device) {
  const auto [unused, total] = memoryInfo(resolveDevice(device));
  return {unused, total};
}

// [quote: registration]
const bool allocator_registered = [] {
  c10::SetAllocator(kDeviceType, &instance());
  return true;
}();
// [end: registration]

} // namespace

c10::DeviceAllocator& deviceAllocator() {
  return instance();
}

DeviceCache& deviceCache(c10::DeviceIndex device) {
  return instance().cache(device);
}

std::vector<c10::CachingDeviceAllocator::SegmentInfo> memorySnapshot() {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;
  for (auto& devices_cache : instance().caches()) {
    devices_cache->snapshot(segments);
  }
  return segments;
}

void retainPool(c10::MempoolId_t pool) {
  for (auto& devices_cache : instance().caches()) {
    devices_cache->retainPool(pool);
  }
}

void releasePool(c10::MempoolId_t pool) {
  if (driverIsDown() || inBadFork()) return;
  std::exception_ptr error;
  for (auto& devices_cache : instance().caches()) {
    try {
      devices_cache->releasePool(pool);
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

void recordDeferredFrees() noexcept {
  if (driverIsDown() || inBadFork()) return;
  for (auto& devices_cache : instance().caches()) {
    devices_cache->recordDeferredFrees();
  }
}

void setMemoryFraction(double fraction, c10::DeviceIndex device) {
  TORCH_CHECK(fraction > 0 && fraction <= 1, "memory fraction must be in (0, 1], got ", fraction);
  instance().cache(device).setMemoryFraction(fraction);
}

void recordMemoryHistory(
    bool enabled,
    CreateContextFn recorder,
    size_t max_entries,
    RecordContext when,
    bool clear,
    uint32_t skipped) {
  for (auto& devices_cache : instance().caches()) {
    devices_cache->history().configure(enabled, recorder, max_entries, when, clear, skipped);
  }
}

void attachAllocatorTraceTracker(const AllocatorTraceTracker& tracker) {
  for (auto& devices_cache : instance().caches()) {
    devices_cache->history().attachTracker(tracker);
  }
}

void attachOutOfMemoryObserver(const OutOfMemoryObserver& observer) {
  for (auto& devices_cache : instance().caches()) {
    devices_cache->history().attachObserver(observer);
  }
}

std::vector<std::vector<TraceEntry>> memoryTraces() {
  std::vector<std::vector<TraceEntry>> traces;
  for (auto& devices_cache : instance().caches()) {
    traces.push_back(devices_cache->history().entries());
  }
  return traces;
}

} // namespace puone
