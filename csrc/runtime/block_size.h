// SPDX-License-Identifier: BSD-3-Clause
// Sizes of blocks and segments, in bytes: the policy of c10/cuda/CUDACachingAllocator.h, configured
// by PYTORCH_ALLOC_CONF.
#pragma once

#include <cstddef>

namespace puone {

// Bytes that a request occupies: a multiple of 512, or a power-of-two division if so configured.
// Throws c10::OutOfMemoryError for what no device can address.
size_t blockSize(size_t requested);

// Whether a block of `size` is for the pool of small requests.
bool isSmall(size_t size) noexcept;

// Bytes to ask the driver for when a request of `size` finds no cached block.
size_t segmentSize(size_t size);

// Largest block that may be split.
size_t maxSplitSize();

// Whether a free block of `available` bytes may serve a request of `size` <= available: a block too
// large to be split would waste what the request leaves over.
bool mayServe(size_t available, size_t size);

// Whether that block is split, or handed out whole.
bool shouldSplit(bool small, size_t available, size_t size);

} // namespace puone
