// SPDX-License-Identifier: BSD-3-Clause
// The checks that entries of every kind share, and how an entry makes a handle live and ends one.
// They are in a header because each launch runs several of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <optional>

#include "hal/hal.h"
#include "hal/live_set.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/refusals.h"
#include "hal/validation/state.h"

namespace puone::validation {

// PUONE_OK is 0: a check's result is true if it refused.
#define CHECKED(check)                                        \
  do {                                                        \
    if (const puone_status refused_ = (check)) [[unlikely]] { \
      return refused_;                                        \
    }                                                         \
  } while (false)

inline puone_status checkRunning(const char* entry) {
  if (running.load(std::memory_order_acquire)) return PUONE_OK;
  return refuse(PUONE_INTERNAL, entry, "init() has not been called, or shutdown() has");
}

inline puone_status checkOut(const char* entry, const void* out) {
  if (out != nullptr) return PUONE_OK;
  return refuse(PUONE_INVALID_ARGUMENT, entry, "an out-parameter is NULL");
}

/// A struct that the driver fills.
template <class T>
puone_status checkStruct(const char* entry, const T* out) {
  // A caller may have been compiled with any minor. A struct that grows is still compared with its
  // size in minor 0.
  static_assert(PUONE_HAL_ABI_MINOR == 0, "did a struct grow?");
  CHECKED(checkOut(entry, out));
  if (out->struct_size >= sizeof(T)) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "struct_size is %u, and the struct of this ABI has %zu bytes",
      out->struct_size,
      sizeof(T));
}

inline puone_status checkDevice(const char* entry, int32_t device) {
  int32_t count = known_count.load(std::memory_order_relaxed);
  if (count < 0) {
    CHECKED(passedOn(driver->device_count(&count), entry));
    known_count.store(count, std::memory_order_relaxed);
  }
  if (device >= 0 && device < count) return PUONE_OK;
  return refuse(PUONE_INVALID_DEVICE, entry, "device %d is not in [0, %d)", device, count);
}

/// Sets `bits` to the bits that are stored with the handle, if it is alive.
inline puone_status checkHandle(
    const char* entry, const char* what, const LiveSet& set, const void* handle, uint64_t& bits) {
  if (const std::optional<uint64_t> found = set.get(handle)) [[likely]] {
    bits = *found;
    return PUONE_OK;
  }
  CHECKED(checkRunning(entry));
  if (handle == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "%s is NULL", what);
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%p is not a live %s: it has been destroyed, or never was one",
      handle,
      what);
}

inline puone_status checkStream(const char* entry, puone_stream stream, uint64_t& bits) {
  return checkHandle(entry, "stream", live().streams, stream, bits);
}
inline puone_status checkStream(const char* entry, puone_stream stream) {
  uint64_t bits = 0;
  return checkStream(entry, stream, bits);
}
inline puone_status checkEvent(const char* entry, puone_event event, uint64_t& bits) {
  return checkHandle(entry, "event", live().events, event, bits);
}
inline puone_status checkEvent(const char* entry, puone_event event) {
  uint64_t bits = 0;
  return checkEvent(entry, event, bits);
}

/// Makes a new handle live. If there is no memory to store it, `destroy` destroys it again.
template <class Handle>
puone_status keep(
    const char* entry,
    LiveSet& set,
    Handle handle,
    uint64_t bits,
    puone_status (*destroy)(Handle)) {
  try {
    set.insert(handle, bits);
    return PUONE_OK;
  } catch (const std::bad_alloc&) {
    if (destroy != nullptr) destroy(handle);
    return refuse(PUONE_OUT_OF_MEMORY, entry, "the host is out of memory");
  }
}

/// A destroy entry. The handle leaves the set first, so that one of two threads that destroy it is
/// refused. If the driver refuses, it is alive again.
template <class Handle>
puone_status destroy(
    const char* entry,
    const char* what,
    LiveSet& set,
    Handle handle,
    puone_status (*inner)(Handle)) {
  if (handle == nullptr) return PUONE_OK;
  uint64_t bits = 0;
  CHECKED(checkHandle(entry, what, set, handle, bits));
  if (!set.erase(handle)) return checkHandle(entry, what, set, handle, bits);
  const puone_status status = answered(inner(handle));
  if (status != PUONE_OK) keep<Handle>(entry, set, handle, bits, nullptr);
  return status;
}

} // namespace puone::validation
