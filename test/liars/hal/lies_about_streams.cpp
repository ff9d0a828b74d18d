// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "liar.h"

namespace puone::liar {
namespace {

std::mutex mutex;
std::map<int32_t, puone_stream> only_stream; // of each device

} // namespace

void streamQueryIsAlwaysTrue(puone_hal_api& table) {
  table.stream_query = [](puone_stream stream) {
    puone_status status = truth().stream_query(stream);
    return status == PUONE_NOT_READY ? PUONE_OK : status;
  };
}

void streamQueryIsNeverTrue(puone_hal_api& table) {
  table.stream_query = [](puone_stream stream) {
    puone_status status = truth().stream_query(stream);
    return status == PUONE_OK ? PUONE_NOT_READY : status;
  };
}

void streamSynchronizeDoesNothing(puone_hal_api& table) {
  table.stream_synchronize = [](puone_stream stream) {
    return stream == nullptr ? PUONE_INVALID_ARGUMENT : PUONE_OK;
  };
}

void waitEventDoesNothing(puone_hal_api& table) {
  table.stream_wait_event = [](puone_stream stream, puone_event event) {
    return stream == nullptr || event == nullptr ? PUONE_INVALID_ARGUMENT : PUONE_OK;
  };
}

void oneWaitInFourIsForgotten(puone_hal_api& table) {
  table.stream_wait_event = [](puone_stream stream, puone_event event) {
    static std::atomic<uint32_t> waits{0};
    if (stream == nullptr || event == nullptr || ++waits % 4 != 0) {
      return truth().stream_wait_event(stream, event);
    }
    return PUONE_OK;
  };
}

void streamsAreOneAndTheSame(puone_hal_api& table) {
  table.stream_create = [](int32_t device, int32_t priority, puone_stream* out) {
    if (out == nullptr) return PUONE_INVALID_ARGUMENT;
    const std::lock_guard guard(mutex);
    puone_stream& stream = only_stream[device];
    puone_status status =
        stream == nullptr ? truth().stream_create(device, priority, &stream) : PUONE_OK;
    if (status == PUONE_OK) *out = stream;
    return status;
  };
  table.stream_destroy = [](puone_stream) { return PUONE_OK; };
}

void streamsWaitForTheDevice(puone_hal_api& table) {
  table.stream_synchronize = [](puone_stream stream) {
    int32_t count = 0;
    truth().device_count(&count);
    for (int32_t i = 0; i < count && stream != nullptr; ++i) truth().device_synchronize(i);
    return truth().stream_synchronize(stream);
  };
}

void hostFunctionsAreDropped(puone_hal_api& table) {
  table.stream_host_func = [](puone_stream stream, puone_host_func function, void*) {
    return stream == nullptr || function == nullptr ? PUONE_INVALID_ARGUMENT : PUONE_OK;
  };
}

void nativeHandlesChange(puone_hal_api& table) {
  table.stream_native_handle = [](puone_stream stream, void** out) {
    static std::atomic<uintptr_t> next{0x1000};
    puone_status status = truth().stream_native_handle(stream, out);
    if (status == PUONE_OK) *out = reinterpret_cast<void*>(next += 0x10);
    return status;
  };
}

void noStreamCannotBeDestroyed(puone_hal_api& table) {
  table.stream_destroy = [](puone_stream stream) {
    return stream == nullptr ? PUONE_INVALID_ARGUMENT : truth().stream_destroy(stream);
  };
}

void streamsLeaveThreads(puone_hal_api& table) {
  table.stream_create = [](int32_t device, int32_t priority, puone_stream* out) {
    puone_status status = truth().stream_create(device, priority, out);
    if (status == PUONE_OK) std::thread([] { pause(); }).detach();
    return status;
  };
}

void noStreamIsIdle(puone_hal_api& table) {
  table.stream_query = [](puone_stream stream) {
    return stream == nullptr ? PUONE_OK : truth().stream_query(stream);
  };
}

void nativeStreamsAreNotShared(puone_hal_api& table) {
  table.stream_from_native = [](int32_t device, void* native, puone_stream* out) {
    return native == nullptr ? PUONE_INVALID_ARGUMENT : truth().stream_create(device, 0, out);
  };
}

} // namespace puone::liar
