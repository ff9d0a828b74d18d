// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/stream_memory.h"

#include "runtime/block.h"
#include "runtime/device_allocator.h"
#include "runtime/device_cache.h"
#include "runtime/driver.h"

namespace puone {

StreamMemory::StreamMemory(size_t bytes, const Stream& stream) {
  if (bytes > 0) {
    block_ = deviceCache(stream.deviceIndex()).allocate(bytes, stream);
  }
}

StreamMemory::~StreamMemory() {
  // No other stream was announced, so this asks nothing of the driver.
  if (block_ != nullptr && !driverIsDown() && !inBadFork()) {
    block_->arena->cache.free(block_);
  }
}

void* StreamMemory::get() const noexcept {
  return block_ == nullptr ? nullptr : block_->ptr;
}

} // namespace puone
