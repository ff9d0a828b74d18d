// SPDX-License-Identifier: BSD-3-Clause
// Lies about memory of several processes: the extension "ipc".
#include "hal/ipc.h"

#include <cstring>

#include "liar.h"

namespace puone::liar {
namespace {

const puone_ipc_api* true_ipc = nullptr;
puone_ipc_api ipc; // what the caller gets: the true entries but for one
void* exported = nullptr;
puone_ipc_memory_handle its_handle{};
void* opened = nullptr;

// get_extension() of the driver, with `change` made to the table of "ipc".
template <auto change>
puone_status changedIpc(const char* name, uint32_t min_version, const void** out) {
  const puone_status status = truth().get_extension(name, min_version, out);
  if (status != PUONE_OK || name == nullptr || std::strcmp(name, PUONE_IPC_EXTENSION) != 0) {
    return status;
  }
  true_ipc = static_cast<const puone_ipc_api*>(*out);
  ipc = *true_ipc;
  change();
  *out = &ipc;
  return status;
}

puone_status openACopy(int32_t device, const puone_ipc_memory_handle* handle, void** out) {
  void* mapped = nullptr;
  const puone_status status = true_ipc->open_memory(device, handle, &mapped);
  if (status != PUONE_OK) return status;
  const size_t bytes = attributesOf(mapped).size;
  puone_stream stream = nullptr;
  truth().stream_create(device, 0, &stream);
  truth().malloc(device, bytes, out);
  truth().memcpy_async(*out, mapped, bytes, PUONE_MEMCPY_DEVICE_TO_DEVICE, stream);
  truth().stream_synchronize(stream);
  truth().stream_destroy(stream);
  return true_ipc->close_memory(mapped);
}

puone_status exportWithANumber(void* block, puone_ipc_memory_handle* out) {
  static uint8_t number = 0;
  const puone_status status = true_ipc->export_memory(block, out);
  if (status == PUONE_OK) out->bytes[sizeof out->bytes - 1] = ++number;
  return status;
}

puone_status openAndRemember(int32_t device, const puone_ipc_memory_handle* handle, void** out) {
  const puone_status status = true_ipc->open_memory(device, handle, out);
  if (status == PUONE_OK) opened = *out;
  return status;
}

puone_status sizeOfPages(const void* pointer, puone_pointer_attributes* out) {
  const puone_status status = truth().pointer_attributes(pointer, out);
  if (status == PUONE_OK && opened != nullptr && out->base == opened) {
    out->size = (out->size + 4095) / 4096 * 4096;
  }
  return status;
}

puone_status exportAndRemember(void* block, puone_ipc_memory_handle* out) {
  const puone_status status = true_ipc->export_memory(block, out);
  if (status != PUONE_OK) return status;
  exported = block;
  its_handle = *out;
  return status;
}

puone_status openOwn(int32_t device, const puone_ipc_memory_handle* handle, void** out) {
  if (exported == nullptr || std::memcmp(handle, &its_handle, sizeof its_handle) != 0) {
    return true_ipc->open_memory(device, handle, out);
  }
  *out = exported;
  return PUONE_OK;
}

puone_status closeNothing(void*) {
  return PUONE_OK;
}

} // namespace

void openedMemoryIsACopy(puone_hal_api& table) {
  table.get_extension = changedIpc<[] { ipc.open_memory = openACopy; }>;
}

void handlesHaveNumbers(puone_hal_api& table) {
  table.get_extension = changedIpc<[] { ipc.export_memory = exportWithANumber; }>;
}

void openedMemoryIsOfWholePages(puone_hal_api& table) {
  table.get_extension = changedIpc<[] { ipc.open_memory = openAndRemember; }>;
  table.pointer_attributes = sizeOfPages;
}

void ownHandlesAreOpened(puone_hal_api& table) {
  table.get_extension = changedIpc<[] {
    ipc.export_memory = exportAndRemember;
    ipc.open_memory = openOwn;
  }>;
}

void closingDoesNothing(puone_hal_api& table) {
  table.get_extension = changedIpc<[] { ipc.close_memory = closeNothing; }>;
}

} // namespace puone::liar
