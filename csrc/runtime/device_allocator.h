// SPDX-License-Identifier: BSD-3-Clause
// The caching device allocator: c10::DeviceAllocator over the HAL. Memory is taken from the driver
// in segments, split into blocks, and a freed block is reused at once by the stream it was
// allocated on, because work on one stream is ordered. Other streams must be announced by
// recordStream(). The policy (sizes, rounding, splitting) is that of
// c10/cuda/CUDACachingAllocator.h, and PYTORCH_ALLOC_CONF configures it through
// c10::CachingAllocator::AcceleratorAllocatorConfig.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

namespace puone {

// The one instance, registered for the device type. Never destroyed.
c10::DeviceAllocator& deviceAllocator();

// Every segment and its blocks, for memory_snapshot().
std::vector<c10::CachingDeviceAllocator::SegmentInfo> memorySnapshot();

// Upper bound, as a fraction of the device's memory, that the allocator may take; (0, 1].
void setMemoryFraction(double fraction, c10::DeviceIndex device);

} // namespace puone
