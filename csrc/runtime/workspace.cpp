// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/workspace.h"

#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include "runtime/device_allocator.h"

namespace puone {

puone_status Workspace::allocate(void* user, size_t bytes, void** out) noexcept {
  auto& self = *static_cast<Workspace*>(user);
  try {
    const c10::StreamGuard on(self.stream_.unwrap());
    self.blocks_.push_back(deviceAllocator().allocate(bytes));
    *out = self.blocks_.back().get();
    return PUONE_OK;
  } catch (const c10::OutOfMemoryError&) {
    self.error_ = std::current_exception();
    return PUONE_OUT_OF_MEMORY;
  } catch (...) {
    self.error_ = std::current_exception();
    return PUONE_INTERNAL;
  }
}

} // namespace puone
