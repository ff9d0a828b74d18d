// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory: at::CachingHostAllocatorImpl over the HAL.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace puone {

// The one instance, registered for the device type.
at::HostAllocator& hostAllocator();

// True if `ptr` lies in page-locked memory of this driver.
bool isPinned(const void* ptr);

} // namespace puone
