// SPDX-License-Identifier: BSD-3-Clause
// The entries of the extension "ipc".
#include <cstdint>

#include "hal/ipc.h"
#include "hal/validation/checks.h"
#include "hal/validation/extensions.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/memory_checks.h"
#include "hal/validation/memory_extents.h"
#include "hal/validation/refusals.h"

namespace puone::validation {
namespace {

const puone_ipc_api* ipc = nullptr;

puone_status exportMemory(void* block, puone_ipc_memory_handle* out) {
  constexpr const char* entry = "ipc.export_memory";
  CHECKED(checkOut(entry, out));
  CHECKED(checkRunning(entry));
  CHECKED(checkBlock(entry, block, PUONE_MEMORY_DEVICE));
  if (live().mappings.get(block)) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "%p is memory of another process", block);
  }
  return answered(ipc->export_memory(block, out));
}

puone_status openMemory(int32_t device, const puone_ipc_memory_handle* handle, void** out) {
  constexpr const char* entry = "ipc.open_memory";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (handle == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "handle is NULL");
  void* made = nullptr;
  CHECKED(answered(ipc->open_memory(device, handle, &made)));
  puone_pointer_attributes block;
  CHECKED(attributesOf(entry, made, block));
  device_extent.include(made, block.size);
  CHECKED(keep(entry, live().mappings, made, 0, ipc->close_memory));
  *out = made;
  return PUONE_OK;
}

puone_status closeMemory(void* ptr) {
  announceEndOfMemory();
  return destroy("ipc.close_memory", "mapping", live().mappings, ptr, ipc->close_memory);
}

puone_ipc_api wrapped(const puone_ipc_api& api) {
  puone_ipc_api result = api;
  result.export_memory = exportMemory;
  result.open_memory = openMemory;
  result.close_memory = closeMemory;
  return result;
}

} // namespace

const void* wrappedIpc(const void* found) {
  return wrappedOnce<wrapped>(found, ipc);
}

} // namespace puone::validation
