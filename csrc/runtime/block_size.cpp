// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/block_size.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>

#include <bit>

#include "runtime/out_of_memory.h"

namespace puone {

using c10::CachingAllocator::AcceleratorAllocatorConfig;
namespace cfg = c10::CachingAllocator; // kMinBlockSize and friends: CUDA's policy, shared by c10

namespace {

size_t roundUp(size_t size, size_t multiple) {
  return multiple * ((size + multiple - 1) / multiple);
}

} // namespace

size_t blockSize(size_t requested) {
  // Rounding up could wrap around: no device has half of the address space.
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      requested < (size_t{1} << 62),
      "puone out of memory. Tried to allocate ",
      formatBytes(requested),
      ", more than any device can address.");
  if (requested < cfg::kMinBlockSize) {
    return cfg::kMinBlockSize;
  }
  const size_t divisions = AcceleratorAllocatorConfig::roundup_power2_divisions(requested);
  if (divisions > 1 && requested > cfg::kMinBlockSize * divisions) {
    const size_t power = std::bit_floor(requested);
    return power == requested ? requested : roundUp(requested, power / divisions);
  }
  return roundUp(requested, cfg::kMinBlockSize);
}

bool isSmall(size_t size) noexcept {
  return size <= cfg::kSmallSize;
}

size_t segmentSize(size_t size) {
  if (isSmall(size)) {
    return cfg::kSmallBuffer;
  }
  if (size < cfg::kMinLargeAlloc) {
    return AcceleratorAllocatorConfig::large_segment_size();
  }
  return roundUp(size, cfg::kRoundLarge);
}

size_t maxSplitSize() {
  return AcceleratorAllocatorConfig::max_split_size();
}

bool mayServe(size_t available, size_t size) {
  if (available <= cfg::kSmallBuffer) {
    return true; // the smallest limit that can be set is larger
  }
  const size_t max_split = maxSplitSize();
  if (size < max_split) {
    return available < max_split;
  }
  return available < size + AcceleratorAllocatorConfig::max_non_split_rounding_size();
}

bool shouldSplit(bool small, size_t available, size_t size) {
  const size_t remaining = available - size;
  if (small) {
    return remaining >= cfg::kMinBlockSize;
  }
  return remaining > cfg::kSmallSize && size < maxSplitSize();
}

} // namespace puone
