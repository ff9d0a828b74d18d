// SPDX-License-Identifier: BSD-3-Clause
// The entries of events.
#include "hal/validation/checked_entries.h"
#include "hal/validation/checks.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/refusals.h"
#include "hal/validation/state.h"

namespace puone::validation {

puone_status eventCreate(int32_t device, uint32_t flags, puone_event* out) {
  constexpr const char* entry = "event_create";
  constexpr uint32_t known = PUONE_EVENT_TIMING | PUONE_EVENT_BLOCKING_SYNC;
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if ((flags & ~known) != 0) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "unknown event flags 0x%x", flags);
  }
  puone_event made = nullptr;
  CHECKED(answered(driver->event_create(device, flags, &made)));
  CHECKED(keep(entry, live().events, made, eventBits(device, flags), driver->event_destroy));
  *out = made;
  return PUONE_OK;
}

puone_status eventDestroy(puone_event event) {
  return destroy("event_destroy", "event", live().events, event, driver->event_destroy);
}

puone_status eventRecord(puone_event event, puone_stream stream) {
  constexpr const char* entry = "event_record";
  uint64_t event_bits = 0;
  uint64_t stream_bits = 0;
  CHECKED(checkEvent(entry, event, event_bits));
  CHECKED(checkStream(entry, stream, stream_bits));
  if (deviceOf(event_bits) != deviceOf(stream_bits)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the event is of device %d, the stream of device %d",
        deviceOf(event_bits),
        deviceOf(stream_bits));
  }
  const puone_status status = answered(driver->event_record(event, stream));
  if (status == PUONE_OK && (event_bits & kRecorded) == 0) live().events.add(event, kRecorded);
  return status;
}

puone_status eventQuery(puone_event event) {
  CHECKED(checkEvent("event_query", event));
  return answered(driver->event_query(event));
}

puone_status eventSynchronize(puone_event event) {
  CHECKED(checkEvent("event_synchronize", event));
  return answered(driver->event_synchronize(event));
}

puone_status eventElapsedMs(puone_event start, puone_event end, float* out) {
  constexpr const char* entry = "event_elapsed_ms";
  uint64_t from = 0;
  uint64_t to = 0;
  CHECKED(checkOut(entry, out));
  CHECKED(checkEvent(entry, start, from));
  CHECKED(checkEvent(entry, end, to));
  if (!isTimed(from & to)) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "both events need PUONE_EVENT_TIMING");
  }
  if ((from & to & kRecorded) == 0) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "both events must have been recorded");
  }
  if (deviceOf(from) != deviceOf(to)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "the events are of devices %d and %d",
        deviceOf(from),
        deviceOf(to));
  }
  return answered(driver->event_elapsed_ms(start, end, out));
}

} // namespace puone::validation
