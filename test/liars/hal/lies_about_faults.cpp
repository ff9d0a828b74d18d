// SPDX-License-Identifier: BSD-3-Clause
// Lies about failures on request: entries of the extension "fault" that do nothing, or too much.
#include <cstring>

#include "liar.h"

namespace puone::liar {
namespace {

puone_fault_api faults{};
const puone_fault_api* true_faults = nullptr;

puone_status doNothing(uint64_t) {
  return PUONE_OK;
}

// A copy of the wrapped extension in which one entry was replaced by `Change`.
template <auto Change>
puone_status changedFaults(const char* name, uint32_t min_version, const void** out) {
  const void* found = nullptr;
  puone_status status = truth().get_extension(name, min_version, out == nullptr ? nullptr : &found);
  if (status != PUONE_OK) return status;
  *out = found;
  if (std::strcmp(name, PUONE_FAULT_EXTENSION) != 0) return PUONE_OK;
  true_faults = static_cast<const puone_fault_api*>(found);
  faults = *true_faults;
  faults.struct_size = sizeof(faults);
  Change();
  *out = &faults;
  return PUONE_OK;
}

} // namespace

void memoryNeverRunsOutOnRequest(puone_hal_api& table) {
  table.get_extension = changedFaults<[] { faults.out_of_memory_at = doNothing; }>;
}

void kernelErrorsAreSwallowed(puone_hal_api& table) {
  table.get_extension = changedFaults<[] { faults.kernel_error_at = doNothing; }>;
}

void devicesAreNeverLost(puone_hal_api& table) {
  table.get_extension =
      changedFaults<[] { faults.device_lost = [](int32_t) { return PUONE_OK; }; }>;
}

void allDevicesAreLostAtOnce(puone_hal_api& table) {
  table.get_extension = changedFaults<[] {
    faults.device_lost = [](int32_t device) {
      int32_t count = 0;
      truth().device_count(&count);
      puone_status status = true_faults->device_lost(device);
      for (int32_t i = 0; i < count; ++i) {
        if (i != device && status == PUONE_OK) true_faults->device_lost(i);
      }
      return status;
    };
  }>;
}

void thereIsNoLatency(puone_hal_api& table) {
  table.get_extension = changedFaults<[] { faults.latency_ns = doNothing; }>;
}

} // namespace puone::liar
