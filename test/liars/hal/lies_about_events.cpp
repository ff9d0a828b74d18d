// SPDX-License-Identifier: BSD-3-Clause
#include <sys/eventfd.h>

#include <map>
#include <mutex>
#include <set>

#include "liar.h"

namespace puone::liar {
namespace {

// One idle stream per device: whatever is recorded there is complete at once.
puone_stream idleStream(int32_t device) {
  static std::mutex mutex;
  static std::map<int32_t, puone_stream> streams;
  const std::lock_guard guard(mutex);
  puone_stream& stream = streams[device];
  if (stream == nullptr) {
    truth().stream_create(device, 0, &stream);
  }
  return stream;
}

// The device of an event and a stream: the one whose idle stream takes the record.
puone_status recordElsewhere(puone_event event) {
  int32_t count = 0;
  truth().device_count(&count);
  puone_status status = PUONE_INVALID_ARGUMENT;
  for (int32_t device = 0; device < count && status == PUONE_INVALID_ARGUMENT; ++device) {
    status = truth().event_record(event, idleStream(device));
  }
  return status;
}

std::mutex recorded_mutex;
std::set<puone_event> recorded;

bool wasRecorded(puone_event event) {
  const std::lock_guard guard(recorded_mutex);
  return recorded.count(event) > 0;
}

puone_status record(puone_event event, puone_stream stream) {
  puone_status status = truth().event_record(event, stream);
  const std::lock_guard guard(recorded_mutex);
  if (status == PUONE_OK) recorded.insert(event);
  return status;
}

puone_status forget(puone_event event) {
  const std::lock_guard guard(recorded_mutex);
  recorded.erase(event);
  return truth().event_destroy(event);
}

} // namespace

void elapsedIsConstant(puone_hal_api& table) {
  table.event_elapsed_ms = [](puone_event start, puone_event end, float* out) {
    puone_status status = truth().event_elapsed_ms(start, end, out);
    if (status == PUONE_OK) *out = 1.0f;
    return status;
  };
}

void eventsCompleteAtOnce(puone_hal_api& table) {
  table.event_record = [](puone_event event, puone_stream stream) {
    return stream == nullptr ? PUONE_INVALID_ARGUMENT : recordElsewhere(event);
  };
}

void eventSynchronizeDoesNothing(puone_hal_api& table) {
  table.event_synchronize = [](puone_event event) {
    return event == nullptr ? PUONE_INVALID_ARGUMENT : PUONE_OK;
  };
}

void recordingWaits(puone_hal_api& table) {
  table.event_record = [](puone_event event, puone_stream stream) {
    puone_status status = truth().event_record(event, stream);
    return status == PUONE_OK ? truth().stream_synchronize(stream) : status;
  };
}

void newEventsArePending(puone_hal_api& table) {
  table.event_record = record;
  table.event_destroy = forget;
  table.event_query = [](puone_event event) {
    return event != nullptr && !wasRecorded(event) ? PUONE_NOT_READY : truth().event_query(event);
  };
}

void newEventsCannotBeWaitedFor(puone_hal_api& table) {
  table.event_record = record;
  table.event_destroy = forget;
  table.stream_wait_event = [](puone_stream stream, puone_event event) {
    return wasRecorded(event) ? truth().stream_wait_event(stream, event) : PUONE_INVALID_ARGUMENT;
  };
}

void firstRecordCounts(puone_hal_api& table) {
  table.event_destroy = forget;
  table.event_record = [](puone_event event, puone_stream stream) {
    return wasRecorded(event) && stream != nullptr ? PUONE_OK : record(event, stream);
  };
}

void unknownFlagsAreIgnored(puone_hal_api& table) {
  table.event_create = [](int32_t device, uint32_t flags, puone_event* out) {
    return truth().event_create(
        device, flags & (PUONE_EVENT_TIMING | PUONE_EVENT_BLOCKING_SYNC), out);
  };
}

void eventsBelongToNoDevice(puone_hal_api& table) {
  table.event_record = [](puone_event event, puone_stream stream) {
    puone_status status = truth().event_record(event, stream);
    const bool given = event != nullptr && stream != nullptr;
    return given && status == PUONE_INVALID_ARGUMENT ? PUONE_OK : status;
  };
}

void elapsedIsAlwaysKnown(puone_hal_api& table) {
  table.event_elapsed_ms = [](puone_event start, puone_event end, float* out) {
    if (start == nullptr || end == nullptr || out == nullptr) return PUONE_INVALID_ARGUMENT;
    if (truth().event_elapsed_ms(start, end, out) != PUONE_OK) *out = 0.0f;
    return PUONE_OK;
  };
}

void elapsedIsInSeconds(puone_hal_api& table) {
  table.event_elapsed_ms = [](puone_event start, puone_event end, float* out) {
    puone_status status = truth().event_elapsed_ms(start, end, out);
    if (status == PUONE_OK) *out /= 1000.0f;
    return status;
  };
}

void eventsLeaveFiles(puone_hal_api& table) {
  table.event_create = [](int32_t device, uint32_t flags, puone_event* out) {
    puone_status status = truth().event_create(device, flags, out);
    if (status == PUONE_OK && eventfd(0, 0) < 0) return PUONE_INTERNAL;
    return status;
  };
}

} // namespace puone::liar
