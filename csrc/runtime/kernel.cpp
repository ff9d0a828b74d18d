// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/kernel.h"

#include <c10/util/Exception.h>

#include "runtime/driver.h"
#include "runtime/kernels.h" // so that the generated handles are compiled
#include "runtime/workspace.h"

namespace puone {

// [quote: find]
void KernelBase::find() const {
  puone_kernel handle = nullptr;
  puone_kernel_info info{};
  info.struct_size = sizeof(info);
  const puone_status status = hal().kernel_find(name_, &info, &handle);
  if (status != PUONE_UNSUPPORTED) {
    PUONE_CHECK_STATUS(status, "kernel_find");
  }
  if (status == PUONE_OK && info.version == version_) {
    handle_.store(handle, std::memory_order_relaxed);
    element_types_.store(info.element_types, std::memory_order_relaxed);
  }
  known_.store(true, std::memory_order_release);
}
// [end: find]

void KernelBase::throwMissing() const {
  const DriverState& driver = driverState();
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "the driver \"",
      driver.name,
      "\" (",
      driver.path,
      ") does not have version ",
      version_,
      " of the kernel \"",
      name_,
      "\". Move the operands to the CPU for this operation, or add the kernel to the driver: "
      "csrc/hal/kernels.yaml describes it");
}

void KernelBase::launchBytes(const void* args, size_t bytes, const Stream& stream) const {
  const puone_kernel handle = found().handle;
  if (C10_UNLIKELY(handle == nullptr)) throwMissing();
  launchKernel(handle, args, bytes, stream);
}

void launchKernel(puone_kernel kernel, const void* args, size_t bytes, const Stream& stream) {
  Workspace workspace(stream);
  const puone_status status =
      hal().kernel_launch(kernel, args, bytes, stream.handle(), workspace.context());
  if (C10_UNLIKELY(status != PUONE_OK)) {
    workspace.rethrow();
    PUONE_CHECK_STATUS(status, "kernel_launch");
  }
}

} // namespace puone
