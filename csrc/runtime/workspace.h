// SPDX-License-Identifier: BSD-3-Clause
// Workspace of a kernel launch, from the caching device allocator: counted in its statistics, under
// its limits, and tried again after the cache is emptied.
#pragma once

#include <c10/util/SmallVector.h>

#include <exception>

#include "hal/hal.h"
#include "runtime/stream.h"
#include "runtime/stream_memory.h"

namespace puone {

// What one launch asked for. The blocks go back to the cache of the stream when this ends, after
// the launch was queued: later work of the stream may use them, since it runs behind the launch.
class Workspace {
 public:
  // For a launch on `stream`, which must outlive this.
  explicit Workspace(const Stream& stream) noexcept
      : stream_(stream), context_{sizeof(puone_launch_context), 0, &allocate, this} {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // What kernel_launch() takes; valid as long as this.
  const puone_launch_context* context() const noexcept {
    return &context_;
  }

  // Throws what the allocator threw, which says more than the launch's status; else nothing.
  void rethrow() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  static puone_status allocate(void* user, size_t bytes, void** out) noexcept;

  const Stream& stream_;
  const puone_launch_context context_;
  c10::SmallVector<StreamMemory, 2> blocks_;
  std::exception_ptr error_;
};

} // namespace puone
