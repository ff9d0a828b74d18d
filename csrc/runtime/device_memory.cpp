// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/device_memory.h"

#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/primary_context.h"

namespace puone {
namespace {

// A driver that puts memory on another device would corrupt silently.
void checkPlace(void* ptr, c10::DeviceIndex device) {
  const puone_pointer_attributes where = pointerAttributes(ptr);
  TORCH_CHECK(
      where.kind == PUONE_MEMORY_DEVICE && where.device == device,
      "puone driver error in malloc: memory asked of puone:",
      static_cast<int>(device),
      " was placed on puone:",
      where.device);
}

} // namespace

bool DeviceMemory::claim(size_t bytes) noexcept {
  const size_t limit = limit_.load();
  size_t claimed = claimed_.load();
  do {
    if (limit > 0 && claimed + bytes > limit) {
      return false;
    }
  } while (!claimed_.compare_exchange_weak(claimed, claimed + bytes));
  return true;
}

void* DeviceMemory::allocate(size_t bytes) {
  const puone_hal_api& driver = hal();
  if (!claim(bytes)) {
    return nullptr;
  }
  void* ptr = nullptr;
  auto undo = c10::make_scope_exit([&] {
    if (ptr != nullptr) {
      driver.free(ptr);
    }
    claimed_.fetch_sub(bytes);
  });
  const puone_status status = driver.malloc(device_, bytes, &ptr);
  if (status == PUONE_OUT_OF_MEMORY) {
    return nullptr;
  }
  PUONE_CHECK_STATUS(status, "malloc");
  checkPlace(ptr, device_);
  primaryContextFlag(device_).store(true);
  undo.release();
  return ptr;
}

void DeviceMemory::free(void* ptr, size_t bytes) {
  PUONE_CHECK(hal().free(ptr));
  claimed_.fetch_sub(bytes);
}

} // namespace puone
