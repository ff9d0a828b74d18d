// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <set>

#include "liar.h"

namespace puone::liar {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr size_t kHostAlignment = 64;

std::mutex ordinary_mutex;
std::set<void*> ordinary; // blocks that pretend to be pinned

constexpr size_t roundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

void synchronizeEverything() {
  int32_t count = 0;
  truth().device_count(&count);
  for (int32_t device = 0; device < count; ++device) truth().device_synchronize(device);
}

// Maps ordinary memory over the pages of a block. The wrapped driver keeps the block's contents
// elsewhere, so its own work is not affected: the host reads and writes something else.
void openToTheHost(void* block, size_t bytes) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(block) & ~(kPage - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(block) + bytes + kPage - 1) & ~(kPage - 1);
  mmap(
      reinterpret_cast<void*>(start),
      end - start,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
      -1,
      0);
}

} // namespace

void allocationIsReportedOnDevice0(puone_hal_api& table) {
  table.pointer_attributes = [](const void* pointer, puone_pointer_attributes* out) {
    puone_status status = truth().pointer_attributes(pointer, out);
    if (status == PUONE_OK && out->kind == PUONE_MEMORY_DEVICE) out->device = 0;
    return status;
  };
}

void deviceMemoryIsOpenToTheHost(puone_hal_api& table) {
  table.malloc = [](int32_t device, size_t bytes, void** out) {
    puone_status status = truth().malloc(device, bytes, out);
    if (status == PUONE_OK) openToTheHost(*out, bytes);
    return status;
  };
}

void freeNeverUnmaps(puone_hal_api& table) {
  table.free = [](void* block) {
    if (block == nullptr) return PUONE_OK;
    const puone_pointer_attributes found = attributesOf(block);
    if (found.kind != PUONE_MEMORY_DEVICE || found.base != block) return truth().free(block);
    return truth().device_synchronize(found.device); // it waits as it should, and that is all
  };
}

void memcpyCopiesNothing(puone_hal_api& table) {
  table.memcpy_async = [](void*, const void*, size_t, puone_memcpy_kind, puone_stream) {
    return PUONE_OK;
  };
}

void pinnedMemoryIsNotPinned(puone_hal_api& table) {
  table.host_malloc = [](size_t bytes, void** out) {
    if (bytes == 0 || out == nullptr) return PUONE_INVALID_ARGUMENT;
    void* block = std::aligned_alloc(kHostAlignment, roundUp(bytes, kHostAlignment));
    if (block == nullptr) return PUONE_OUT_OF_MEMORY;
    const std::lock_guard guard(ordinary_mutex);
    ordinary.insert(block);
    *out = block;
    return PUONE_OK;
  };
  table.host_free = [](void* block) {
    if (block == nullptr) return PUONE_OK;
    {
      const std::lock_guard guard(ordinary_mutex);
      if (ordinary.erase(block) == 0) return PUONE_INVALID_ARGUMENT;
    }
    synchronizeEverything();
    std::free(block);
    return PUONE_OK;
  };
}

} // namespace puone::liar
