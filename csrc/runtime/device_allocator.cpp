// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/device_allocator.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>

#include <memory>

#include "runtime/device.h"
#include "runtime/device_cache.h"
#include "runtime/driver.h"
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
};

CachingAllocator& instance() {
  // Leaked: storages may die during static destruction.
  static auto* allocator = new CachingAllocator();
  return *allocator;
}

void deleteDeviceMemory(void* ptr) {
  instance().release(ptr);
}

void reportToProfiler(void* ptr, int64_t bytes, DeviceCache& cache, c10::DeviceIndex device) {
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
    const auto stats = cache.stats();
    c10::reportMemoryUsageToProfiler(
        ptr,
        bytes,
        stats.allocated_bytes[0].current,
        stats.reserved_bytes[0].current,
        c10::Device(kDeviceType, device));
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

c10::DataPtr CachingAllocator::allocate(size_t bytes) {
  const c10::DeviceIndex device = currentDevice();
  const c10::Device where(kDeviceType, device);
  if (bytes == 0) {
    return {nullptr, nullptr, &deleteDeviceMemory, where};
  }
  auto& devices_cache = *caches()[static_cast<size_t>(device)];
  void* ptr = devices_cache.allocate(bytes, getCurrentStream(device).id());
  reportToProfiler(ptr, static_cast<int64_t>(bytes), devices_cache, device);
  return {ptr, ptr, &deleteDeviceMemory, where};
}

void CachingAllocator::release(void* ptr) noexcept {
  // After shutdown and in a forked child the memory is not ours to manage any more.
  if (ptr == nullptr || driverIsDown() || inBadFork()) {
    return;
  }
  try {
    // The deleter knows no device; asking each cache is one hash lookup per device.
    for (auto& devices_cache : caches()) {
      devices_cache->free(ptr);
    }
  } catch (const c10::Error& e) {
    // Recording an event on a lost device fails; its memory cannot be reused anyway.
    TORCH_WARN(
        "puone: memory is leaked because its last use cannot be tracked: ",
        e.what_without_backtrace());
  }
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
      pool == c10::MempoolId_t({0, 0}), "puone has no private memory pools");
  if (!initialized()) {
    return;
  }
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
  cache(ptr.device().index()).recordStream(ptr.get(), Stream(stream).id());
}

std::pair<size_t, size_t> CachingAllocator::getMemoryInfo(c10::DeviceIndex device) {
  const auto [unused, total] = memoryInfo(resolveDevice(device));
  return {unused, total};
}

const bool registered = [] {
  c10::SetAllocator(kDeviceType, &instance());
  return true;
}();

} // namespace

c10::DeviceAllocator& deviceAllocator() {
  return instance();
}

std::vector<c10::CachingDeviceAllocator::SegmentInfo> memorySnapshot() {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;
  for (auto& devices_cache : instance().caches()) {
    devices_cache->snapshot(segments);
  }
  return segments;
}

void setMemoryFraction(double fraction, c10::DeviceIndex device) {
  TORCH_CHECK(fraction > 0 && fraction <= 1, "memory fraction must be in (0, 1], got ", fraction);
  instance().cache(device).setMemoryFraction(fraction);
}

} // namespace puone
