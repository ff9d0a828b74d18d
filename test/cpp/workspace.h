// SPDX-License-Identifier: BSD-3-Clause
// A launch context that takes workspace from malloc() and gives it back at its end.
#pragma once

#include <cstdint>
#include <vector>

#include "hal/hal.h"

namespace puone::test {

class Workspace {
 public:
  explicit Workspace(const puone_hal_api& hal, int32_t device = 0) : hal_(hal), device_(device) {}
  ~Workspace() {
    for (void* block : blocks_) hal_.free(block); // waits for the launch
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const puone_launch_context* context() const {
    return &context_;
  }
  size_t blocks() const {
    return blocks_.size();
  }

  puone_status answer = PUONE_OK; // of the callback, if not OK

 private:
  static puone_status allocate(void* user, size_t bytes, void** out) {
    auto& self = *static_cast<Workspace*>(user);
    if (self.answer != PUONE_OK) return self.answer;
    const puone_status status = self.hal_.malloc(self.device_, bytes, out);
    if (status == PUONE_OK) self.blocks_.push_back(*out);
    return status;
  }

  const puone_hal_api& hal_;
  const int32_t device_;
  std::vector<void*> blocks_;
  const puone_launch_context context_{sizeof(puone_launch_context), 0, &allocate, this};
};

} // namespace puone::test
