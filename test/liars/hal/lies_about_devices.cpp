// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "liar.h"

namespace puone::liar {
namespace {

std::atomic<int32_t> everybodys_device{0};

// Makes the wrapped driver's thread agree before an entry that uses the current device.
void follow() {
  truth().device_set(everybodys_device);
}

} // namespace

void deviceSynchronizeDoesNothing(puone_hal_api& table) {
  table.device_synchronize = [](int32_t device) {
    int32_t count = 0;
    truth().device_count(&count);
    return device < 0 || device >= count ? PUONE_INVALID_DEVICE : PUONE_OK;
  };
}

void currentDeviceIsProcessWide(puone_hal_api& table) {
  table.device_set = [](int32_t device) {
    puone_status status = truth().device_set(device);
    if (status == PUONE_OK) everybodys_device = device;
    return status;
  };
  table.device_get = [](int32_t* out) {
    follow();
    return truth().device_get(out);
  };
  table.malloc = [](size_t bytes, void** out) {
    follow();
    return truth().malloc(bytes, out);
  };
  table.stream_create = [](int32_t priority, puone_stream* out) {
    follow();
    return truth().stream_create(priority, out);
  };
  table.event_create = [](uint32_t flags, puone_event* out) {
    follow();
    return truth().event_create(flags, out);
  };
}

} // namespace puone::liar
