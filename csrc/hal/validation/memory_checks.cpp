// SPDX-License-Identifier: BSD-3-Clause
#include "hal/validation/memory_checks.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hal/validation/checks.h"
#include "hal/validation/memory_extents.h"
#include "hal/validation/refusals.h"
#include "hal/validation/state.h"

namespace puone::validation {
namespace {

/// Increases before memory ends.
std::atomic<uint64_t> memory_version{1};

/// The block of device memory in which this thread's last range was. The next one is usually in it
/// too, and needs no question to the driver while no memory has ended.
struct LastBlock {
  uint64_t version = 0; // of the memory, from before the driver was asked
  uintptr_t start = 0;
  uintptr_t end = 0;
  int32_t device = -1;

  bool holds(const void* pointer, size_t bytes) const noexcept {
    return version == memory_version.load(std::memory_order_acquire) && address(pointer) >= start &&
           address(pointer) < end && bytes <= end - address(pointer);
  }
};
thread_local LastBlock last_block;

/// A range of host memory: inside one live pinned block, or touching none.
puone_status checkHostRange(
    const char* entry, const char* what, const void* pointer, size_t bytes) {
  if (pointer == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "%s is NULL", what);
  if (bytes - 1 > UINTPTR_MAX - address(pointer)) {
    return refuse(
        PUONE_INVALID_ARGUMENT, entry, "%s %p + %zu bytes wraps around", what, pointer, bytes);
  }
  if (knows_own_memory_only && !device_extent.touches(pointer, bytes) &&
      !pinned_extent.touches(pointer, bytes)) {
    return PUONE_OK;
  }
  puone_pointer_attributes first;
  puone_pointer_attributes last;
  CHECKED(attributesOf(entry, pointer, first));
  CHECKED(attributesOf(entry, static_cast<const char*>(pointer) + (bytes - 1), last));
  if (first.kind == PUONE_MEMORY_DEVICE || last.kind == PUONE_MEMORY_DEVICE) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "%s %p is device memory, host memory was claimed",
        what,
        pointer);
  }
  if (first.base == last.base) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%s %p + %zu bytes crosses the edge of pinned memory",
      what,
      pointer,
      bytes);
}

} // namespace

puone_status attributesOf(const char* entry, const void* pointer, puone_pointer_attributes& found) {
  found = puone_pointer_attributes{};
  found.struct_size = sizeof found;
  return passedOn(driver->pointer_attributes(pointer, &found), entry);
}

void announceEndOfMemory() noexcept {
  memory_version.fetch_add(1, std::memory_order_acq_rel);
}

puone_status checkDeviceRange(
    const char* entry, const char* what, const void* pointer, size_t bytes, int32_t stream_device) {
  LastBlock& last = last_block;
  if (last.device == stream_device && last.holds(pointer, bytes)) [[likely]]
    return PUONE_OK;
  const uint64_t version = memory_version.load(std::memory_order_acquire);
  puone_pointer_attributes block;
  CHECKED(attributesOf(entry, pointer, block));
  if (block.kind != PUONE_MEMORY_DEVICE) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "%s %p is not in a live block of device memory",
        what,
        pointer);
  }
  const size_t room = address(block.base) + block.size - address(pointer);
  if (block.size != 0 && bytes > room) { // it is 0 for memory that does not belong to the driver
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "%s %p + %zu bytes runs %zu bytes over the end of its block (%p + %zu bytes, device %d)",
        what,
        pointer,
        bytes,
        bytes - room,
        block.base,
        block.size,
        block.device);
  }
  if (block.device == stream_device) {
    if (knows_own_memory_only && block.size != 0) {
      last = {version, address(block.base), address(block.base) + block.size, block.device};
    }
    return PUONE_OK;
  }
  int32_t can = 0;
  if (has(PUONE_CAP_PEER_ACCESS)) {
    CHECKED(passedOn(driver->device_can_access_peer(stream_device, block.device, &can), entry));
  }
  if (can != 0) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%s %p is on device %d, which the stream's device %d cannot access",
      what,
      pointer,
      block.device,
      stream_device);
}

puone_status checkCopy(
    const char* entry,
    const void* to,
    const void* from,
    size_t bytes,
    puone_memcpy_kind kind,
    int32_t stream_device) {
  if (kind < PUONE_MEMCPY_HOST_TO_HOST || kind > PUONE_MEMCPY_DEVICE_TO_DEVICE) {
    return refuse(
        PUONE_INVALID_ARGUMENT, entry, "%d is not a puone_memcpy_kind", static_cast<int>(kind));
  }
  if (bytes == 0) return PUONE_OK;
  CHECKED(
      (kind & 1) != 0 ? checkDeviceRange(entry, "dst", to, bytes, stream_device)
                      : checkHostRange(entry, "dst", to, bytes));
  CHECKED(
      (kind & 2) != 0 ? checkDeviceRange(entry, "src", from, bytes, stream_device)
                      : checkHostRange(entry, "src", from, bytes));
  if (address(to) - address(from) >= bytes && address(from) - address(to) >= bytes) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT, entry, "the ranges %p and %p of %zu bytes overlap", to, from, bytes);
}

puone_status checkBlock(const char* entry, const void* pointer, puone_memory_kind kind) {
  const char* const what = kind == PUONE_MEMORY_DEVICE ? "device memory" : "pinned memory";
  puone_pointer_attributes block;
  CHECKED(attributesOf(entry, pointer, block));
  if (block.kind != kind || block.size == 0) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "%p is not a live block of %s", pointer, what);
  }
  if (block.base == pointer) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%p is inside a block of %s, not its start %p",
      pointer,
      what,
      block.base);
}

} // namespace puone::validation
