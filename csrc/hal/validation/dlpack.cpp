// SPDX-License-Identifier: BSD-3-Clause
// The entries of the extension "dlpack".
#include "hal/hal.h"
#include "hal/validation/checks.h"
#include "hal/validation/extensions.h"
#include "hal/validation/refusals.h"

namespace puone::validation {
namespace {

const puone_dlpack_api* dlpack = nullptr;

puone_status deviceId(int32_t device, int32_t* out) {
  constexpr const char* entry = "dlpack.device_id";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  return answered(dlpack->device_id(device, out));
}

puone_status nativeStreamWaitEvent(void* native_stream, puone_event event) {
  constexpr const char* entry = "dlpack.native_stream_wait_event";
  if (native_stream == nullptr) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "native_stream is NULL");
  }
  CHECKED(checkEvent(entry, event));
  return answered(dlpack->native_stream_wait_event(native_stream, event));
}

puone_dlpack_api wrapped(const puone_dlpack_api& api) {
  puone_dlpack_api result = api;
  result.device_id = deviceId;
  result.native_stream_wait_event = nativeStreamWaitEvent;
  return result;
}

} // namespace

const void* wrappedDlpack(const void* found) {
  return wrappedOnce<wrapped>(found, dlpack);
}

} // namespace puone::validation
