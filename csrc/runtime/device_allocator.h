// SPDX-License-Identifier: BSD-3-Clause
// The caching device allocator: c10::DeviceAllocator over the HAL. Memory is taken from the driver
// in segments, split into blocks, and a freed block is reused at once by the stream it was
// allocated on, because work on one stream is ordered. Other streams must be announced by
// recordStream(). The policy (sizes, rounding, splitting) is that of
// c10/cuda/CUDACachingAllocator.h, and PYTORCH_ALLOC_CONF configures it through
// c10::CachingAllocator::AcceleratorAllocatorConfig.
//
// Files:
//   device_allocator  this interface, for tensors
//   stream_memory     the same for the memory of a launch
//   device_cache      one device: its arenas and its history
//   arena             one stream: its segments and blocks
//   private_pools     the memory of graphs
//   block_table       from an address to its block, for all devices
//   pending_frees     freed blocks that streams still use
//   device_memory     the driver's malloc and free
//   block_size        the policy
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

#include "runtime/memory_history.h"

namespace puone {

class DeviceCache;

// The one instance, registered for the device type. Never destroyed. Thread-safe, as are the
// functions below.
c10::DeviceAllocator& deviceAllocator();

// The cache behind it. Throws for what is not the index of a device; -1 is the current one.
DeviceCache& deviceCache(c10::DeviceIndex device);

// Every segment and its blocks, for memory_snapshot().
std::vector<c10::CachingDeviceAllocator::SegmentInfo> memorySnapshot();

// DeviceCache's functions of these names, for all devices. They do nothing after shutdown.
void retainPool(c10::MempoolId_t pool);
void releasePool(c10::MempoolId_t pool);
void recordDeferredFrees() noexcept;

// Upper bound, as a fraction of the device's memory, that the allocator may take; (0, 1].
void setMemoryFraction(double fraction, c10::DeviceIndex device);

// The functions of c10::cuda::CUDACachingAllocator of these names, for all devices;
// memory_history.h documents them.
void recordMemoryHistory(
    bool enabled,
    CreateContextFn recorder,
    size_t max_entries,
    RecordContext when,
    bool clear,
    uint32_t skipped = 0);
void attachAllocatorTraceTracker(const AllocatorTraceTracker& tracker);
void attachOutOfMemoryObserver(const OutOfMemoryObserver& observer);

// What was recorded, by device, oldest first.
std::vector<std::vector<TraceEntry>> memoryTraces();

} // namespace puone
