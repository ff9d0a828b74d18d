// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "liar.h"

namespace puone::liar {
namespace {

bool isDevice(int32_t index) {
  int32_t count = 0;
  truth().device_count(&count);
  return index >= 0 && index < count;
}

} // namespace

void deviceSynchronizeDoesNothing(puone_hal_api& table) {
  table.device_synchronize = [](int32_t device) {
    int32_t count = 0;
    truth().device_count(&count);
    return device < 0 || device >= count ? PUONE_INVALID_DEVICE : PUONE_OK;
  };
}

void everythingIsOnDevice0(puone_hal_api& table) {
  table.stream_create = [](int32_t device, int32_t priority, puone_stream* out) {
    return truth().stream_create(isDevice(device) ? 0 : device, priority, out);
  };
  table.event_create = [](int32_t device, uint32_t flags, puone_event* out) {
    return truth().event_create(isDevice(device) ? 0 : device, flags, out);
  };
}

void countIsOneTooHigh(puone_hal_api& table) {
  table.device_count = [](int32_t* out) {
    puone_status status = truth().device_count(out);
    if (status == PUONE_OK) ++*out;
    return status;
  };
}

void thereIsNoDevice(puone_hal_api& table) {
  table.device_count = [](int32_t* out) {
    puone_status status = truth().device_count(out);
    if (status == PUONE_OK) *out = 0;
    return status;
  };
}

void countChanges(puone_hal_api& table) {
  table.device_count = [](int32_t* out) {
    static std::atomic<int> calls{0};
    puone_status status = truth().device_count(out);
    if (status == PUONE_OK && calls++ > 0) *out = 1;
    return status;
  };
}

void indicesWrap(puone_hal_api& table) {
  table.device_synchronize = [](int32_t device) {
    int32_t count = 0;
    truth().device_count(&count);
    return truth().device_synchronize(device < 0 ? device : device % count);
  };
}

void propertiesAreZero(puone_hal_api& table) {
  table.device_properties = [](int32_t device, puone_device_properties* out) {
    puone_status status = truth().device_properties(device, out);
    if (status == PUONE_OK) out->multiprocessor_count = out->warp_size = 0;
    return status;
  };
}

void waitingIsForAllDevices(puone_hal_api& table) {
  table.device_synchronize = [](int32_t device) {
    int32_t count = 0;
    truth().device_count(&count);
    puone_status status = truth().device_synchronize(device);
    for (int32_t i = 0; i < count && status == PUONE_OK; ++i) truth().device_synchronize(i);
    return status;
  };
}

void prioritiesAreReversed(puone_hal_api& table) {
  table.stream_priority_range = [](int32_t device, int32_t* least, int32_t* greatest) {
    return truth().stream_priority_range(device, greatest, least);
  };
}

void devicesAreNotTheirOwnPeers(puone_hal_api& table) {
  table.device_can_access_peer = [](int32_t device, int32_t peer, int32_t* out) {
    puone_status status = truth().device_can_access_peer(device, peer, out);
    if (status == PUONE_OK && device == peer) *out = 0;
    return status;
  };
}

} // namespace puone::liar
