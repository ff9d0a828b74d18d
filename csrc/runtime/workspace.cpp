// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/workspace.h"

#include "runtime/block.h"
#include "runtime/device_allocator.h"
#include "runtime/device_cache.h"
#include "runtime/driver.h"

namespace puone {

Workspace::Workspace(size_t bytes, const Stream& stream) {
  if (bytes > 0) {
    block_ = deviceCache(stream.deviceIndex()).allocate(bytes, stream);
  }
}

Workspace::~Workspace() {
  // No other stream was announced, so this asks nothing of the driver.
  if (block_ != nullptr && !driverIsDown() && !inBadFork()) {
    block_->arena->cache.free(block_);
  }
}

void* Workspace::get() const noexcept {
  return block_ == nullptr ? nullptr : block_->ptr;
}

} // namespace puone
