// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/kernel.h"

#include "runtime/driver.h"
#include "runtime/workspace.h"

namespace puone {

void Kernel::launch(const void* args, size_t bytes, const Stream& stream) const {
  // Looking up twice in a race is harmless: both threads find the same handle.
  puone_kernel kernel = kernel_.load(std::memory_order_acquire);
  if (C10_UNLIKELY(kernel == nullptr)) {
    PUONE_CHECK(hal().kernel_find(name_, nullptr, &kernel));
    kernel_.store(kernel, std::memory_order_release);
  }
  Workspace workspace(stream);
  const puone_status status =
      hal().kernel_launch(kernel, args, bytes, stream.handle(), workspace.context());
  if (C10_UNLIKELY(status != PUONE_OK)) {
    workspace.rethrow();
    PUONE_CHECK_STATUS(status, "kernel_launch");
  }
}

} // namespace puone
