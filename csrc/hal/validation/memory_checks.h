// SPDX-License-Identifier: BSD-3-Clause
// The checks of ranges and blocks of memory: whose they are, how far they reach, and whether a copy
// between two of them is possible.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hal/hal.h"

namespace puone::validation {

/// What the driver says of a pointer; if it fails, the message names `entry`.
puone_status attributesOf(const char* entry, const void* pointer, puone_pointer_attributes& found);

/// To be called before memory ends: what threads remember of blocks no longer holds.
void announceEndOfMemory() noexcept;

/// A range of device memory that work of `stream_device` may address.
puone_status checkDeviceRange(
    const char* entry, const char* what, const void* pointer, size_t bytes, int32_t stream_device);

/// Both ranges of a copy on a stream of `stream_device`.
puone_status checkCopy(
    const char* entry,
    const void* to,
    const void* from,
    size_t bytes,
    puone_memcpy_kind kind,
    int32_t stream_device);

/// The start of a live block of this kind.
puone_status checkBlock(const char* entry, const void* pointer, puone_memory_kind kind);

} // namespace puone::validation
