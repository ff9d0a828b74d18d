// SPDX-License-Identifier: BSD-3-Clause
// The entries of memory, and of copies and fills on a stream.
#include <cstddef>
#include <cstdint>

#include "hal/validation/checked_entries.h"
#include "hal/validation/checks.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/memory_checks.h"
#include "hal/validation/memory_extents.h"
#include "hal/validation/refusals.h"
#include "hal/validation/releasing.h"
#include "hal/validation/state.h"

namespace puone::validation {
namespace {

puone_status release(
    const char* entry, void* pointer, puone_memory_kind kind, puone_status (*inner)(void*)) {
  if (pointer == nullptr) return PUONE_OK;
  CHECKED(checkRunning(entry));
  const Releasing releasing(pointer);
  if (!releasing.isFirst()) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "%p is being freed on another thread", pointer);
  }
  if (has(PUONE_CAP_MEMORY)) CHECKED(checkBlock(entry, pointer, kind));
  announceEndOfMemory();
  return answered(inner(pointer));
}

} // namespace

puone_status allocate(int32_t device, size_t bytes, void** out) {
  constexpr const char* entry = "malloc";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (bytes == 0) return refuse(PUONE_INVALID_ARGUMENT, entry, "bytes is 0");
  CHECKED(answered(driver->malloc(device, bytes, out)));
  device_extent.include(*out, bytes);
  return PUONE_OK;
}

puone_status release(void* pointer) {
  if (pointer != nullptr && live().mappings.get(pointer)) {
    return refuse(
        PUONE_INVALID_ARGUMENT, "free", "%p is of ipc.open_memory: close it instead", pointer);
  }
  return release("free", pointer, PUONE_MEMORY_DEVICE, driver->free);
}

puone_status allocateHost(size_t bytes, void** out) {
  constexpr const char* entry = "host_malloc";
  CHECKED(checkOut(entry, out));
  if (bytes == 0) return refuse(PUONE_INVALID_ARGUMENT, entry, "bytes is 0");
  CHECKED(answered(driver->host_malloc(bytes, out)));
  pinned_extent.include(*out, bytes);
  return PUONE_OK;
}

puone_status releaseHost(void* pointer) {
  return release("host_free", pointer, PUONE_MEMORY_HOST, driver->host_free);
}

puone_status pointerAttributes(const void* pointer, puone_pointer_attributes* out) {
  CHECKED(checkStruct("pointer_attributes", out));
  return answered(driver->pointer_attributes(pointer, out));
}

puone_status memcpyAsync(
    void* to, const void* from, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
  constexpr const char* entry = "memcpy_async";
  uint64_t bits = 0;
  CHECKED(checkStream(entry, stream, bits));
  CHECKED(checkCopy(entry, to, from, bytes, kind, deviceOf(bits)));
  return answered(driver->memcpy_async(to, from, bytes, kind, stream));
}

puone_status memsetAsync(void* to, int32_t value, size_t bytes, puone_stream stream) {
  constexpr const char* entry = "memset_async";
  uint64_t bits = 0;
  CHECKED(checkStream(entry, stream, bits));
  if (bytes > 0) CHECKED(checkDeviceRange(entry, "dst", to, bytes, deviceOf(bits)));
  return answered(driver->memset_async(to, value, bytes, stream));
}

} // namespace puone::validation
