// SPDX-License-Identifier: BSD-3-Clause
// The entries of streams.
#include "hal/validation/checked_entries.h"
#include "hal/validation/checks.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/refusals.h"
#include "hal/validation/state.h"

namespace puone::validation {

puone_status streamCreate(int32_t device, int32_t priority, puone_stream* out) {
  constexpr const char* entry = "stream_create";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  puone_stream made = nullptr;
  CHECKED(answered(driver->stream_create(device, priority, &made)));
  CHECKED(keep(entry, live().streams, made, eventBits(device, 0), driver->stream_destroy));
  *out = made;
  return PUONE_OK;
}

puone_status streamFromNative(int32_t device, void* native, puone_stream* out) {
  constexpr const char* entry = "stream_from_native";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (native == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "native is NULL");
  puone_stream made = nullptr;
  CHECKED(answered(driver->stream_from_native(device, native, &made)));
  CHECKED(keep(entry, live().streams, made, eventBits(device, 0), driver->stream_destroy));
  *out = made;
  return PUONE_OK;
}

puone_status streamDestroy(puone_stream stream) {
  return destroy("stream_destroy", "stream", live().streams, stream, driver->stream_destroy);
}

puone_status streamQuery(puone_stream stream) {
  CHECKED(checkStream("stream_query", stream));
  return answered(driver->stream_query(stream));
}

puone_status streamSynchronize(puone_stream stream) {
  CHECKED(checkStream("stream_synchronize", stream));
  return answered(driver->stream_synchronize(stream));
}

puone_status streamWaitEvent(puone_stream stream, puone_event event) {
  constexpr const char* entry = "stream_wait_event";
  CHECKED(checkStream(entry, stream));
  CHECKED(checkEvent(entry, event));
  return answered(driver->stream_wait_event(stream, event));
}

puone_status streamHostFunc(puone_stream stream, puone_host_func function, void* user_data) {
  constexpr const char* entry = "stream_host_func";
  CHECKED(checkStream(entry, stream));
  if (function == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "fn is NULL");
  return answered(driver->stream_host_func(stream, function, user_data));
}

puone_status streamNativeHandle(puone_stream stream, void** out) {
  constexpr const char* entry = "stream_native_handle";
  CHECKED(checkOut(entry, out));
  CHECKED(checkStream(entry, stream));
  return answered(driver->stream_native_handle(stream, out));
}

} // namespace puone::validation
