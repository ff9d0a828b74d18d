// SPDX-License-Identifier: BSD-3-Clause
// Lies about where blocks are, how they are asked for, and how they are given back.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "liar.h"

namespace puone::liar {
namespace {

constexpr size_t kOff = 8;

char* shifted(void* block, ptrdiff_t by) {
  return block == nullptr ? nullptr : static_cast<char*>(block) + by;
}

bool onDevice(const void* pointer) {
  const puone_pointer_attributes found = attributesOf(pointer);
  return found.kind == PUONE_MEMORY_DEVICE;
}

std::mutex mutex;
struct Shared {
  void* block = nullptr;
  int holders = 0;
};
std::map<size_t, Shared> by_size;

// Counts a holder of the block of this size that is given already, if one more may have it.
bool giveAgain(size_t bytes, void** out) {
  Shared& shared = by_size[bytes];
  if (shared.holders != 1) return false;
  ++shared.holders;
  *out = shared.block;
  return true;
}

// Releases a block unless it has another holder.
puone_status freeShared(void* block) {
  const std::lock_guard guard(mutex);
  for (auto& [bytes, shared] : by_size) {
    if (block != nullptr && shared.block == block && --shared.holders > 0) return PUONE_OK;
  }
  return truth().free(block);
}

std::atomic<int> inside{0};
constexpr std::chrono::microseconds kSlow{200};

// Releases a block in a thread of its own: whoever asked for it need not wait.
template <typename Free>
puone_status freeLater(void* block, puone_memory_kind kind, Free entry) {
  const puone_pointer_attributes found = attributesOf(block);
  if (found.kind != kind || found.base != block) return entry(block);
  std::thread([=] { entry(block); }).detach();
  return PUONE_OK;
}

} // namespace

void blocksAreMisaligned(puone_hal_api& table) {
  table.malloc = [](int32_t device, size_t bytes, void** out) {
    puone_status status = truth().malloc(device, bytes == 0 ? 0 : bytes + kOff, out);
    if (status == PUONE_OK) *out = shifted(*out, kOff);
    return status;
  };
  table.free = [](void* block) {
    return truth().free(onDevice(block) ? shifted(block, -ptrdiff_t{kOff}) : block);
  };
  table.pointer_attributes = [](const void* pointer, puone_pointer_attributes* out) {
    puone_status status = truth().pointer_attributes(pointer, out);
    if (status == PUONE_OK && out->kind == PUONE_MEMORY_DEVICE) {
      out->base = shifted(out->base, kOff);
      out->size -= kOff;
    }
    return status;
  };
}

void liveBlocksAreGivenAgain(puone_hal_api& table) {
  table.malloc = [](int32_t device, size_t bytes, void** out) {
    const std::lock_guard guard(mutex);
    if (out != nullptr && giveAgain(bytes, out)) return PUONE_OK;
    puone_status status = truth().malloc(device, bytes, out);
    if (status == PUONE_OK) by_size[bytes] = {*out, 1};
    return status;
  };
  table.free = freeShared;
}

void threadsShareBlocks(puone_hal_api& table) {
  table.malloc = [](int32_t device, size_t bytes, void** out) {
    const bool alone = inside++ == 0;
    std::this_thread::sleep_for(kSlow); // so that they do meet
    const std::lock_guard guard(mutex);
    --inside;
    constexpr size_t kAnySize = 0;
    if (!alone && out != nullptr && giveAgain(kAnySize, out)) return PUONE_OK;
    puone_status status = truth().malloc(device, bytes, out);
    if (status == PUONE_OK) by_size[kAnySize] = {*out, 1};
    return status;
  };
  table.free = freeShared;
}

void nothingIsAllocated(puone_hal_api& table) {
  table.malloc = [](int32_t device, size_t bytes, void** out) {
    return truth().malloc(device, bytes == 0 ? 1 : bytes, out);
  };
}

void runningOutIsAnInternalError(puone_hal_api& table) {
  table.malloc = [](int32_t device, size_t bytes, void** out) {
    puone_status status = truth().malloc(device, bytes, out);
    return status == PUONE_OUT_OF_MEMORY ? PUONE_INTERNAL : status;
  };
}

void anythingCanBeFreed(puone_hal_api& table) {
  table.free = [](void* block) {
    truth().free(block);
    return PUONE_OK;
  };
}

void freeDoesNotWait(puone_hal_api& table) {
  table.free = [](void* block) { return freeLater(block, PUONE_MEMORY_DEVICE, truth().free); };
}

void anythingPinnedCanBeFreed(puone_hal_api& table) {
  table.host_free = [](void* block) {
    truth().host_free(block);
    return PUONE_OK;
  };
}

void hostFreeDoesNotWait(puone_hal_api& table) {
  table.host_free = [](void* block) {
    return freeLater(block, PUONE_MEMORY_HOST, truth().host_free);
  };
}

void onlyTheStartIsKnown(puone_hal_api& table) {
  table.pointer_attributes = [](const void* pointer, puone_pointer_attributes* out) {
    puone_status status = truth().pointer_attributes(pointer, out);
    if (status == PUONE_OK && out->base != pointer) {
      *out = {out->struct_size, PUONE_MEMORY_UNREGISTERED, -1, 0, nullptr, 0};
    }
    return status;
  };
}

void freeMemoryIsAConstant(puone_hal_api& table) {
  table.device_memory_info = [](int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
    puone_status status = truth().device_memory_info(device, free_bytes, total_bytes);
    if (status == PUONE_OK) *free_bytes = *total_bytes;
    return status;
  };
}

} // namespace puone::liar
