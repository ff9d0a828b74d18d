// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/workspace.h"

#include <c10/util/Exception.h>

namespace puone {

puone_status Workspace::allocate(void* user, size_t bytes, void** out) noexcept {
  auto& self = *static_cast<Workspace*>(user);
  try {
    self.blocks_.emplace_back(bytes, self.stream_);
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
