// SPDX-License-Identifier: BSD-3-Clause
// The entries of a device.
#include "hal/validation/checked_entries.h"
#include "hal/validation/checks.h"
#include "hal/validation/refusals.h"
#include "hal/validation/state.h"

namespace puone::validation {

puone_status deviceCount(int32_t* out) {
  CHECKED(checkOut("device_count", out));
  return answered(driver->device_count(out));
}

puone_status deviceProperties(int32_t device, puone_device_properties* out) {
  constexpr const char* entry = "device_properties";
  CHECKED(checkStruct(entry, out));
  CHECKED(checkDevice(entry, device));
  return answered(driver->device_properties(device, out));
}

puone_status deviceMemoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
  constexpr const char* entry = "device_memory_info";
  CHECKED(checkOut(entry, free_bytes));
  CHECKED(checkOut(entry, total_bytes));
  CHECKED(checkDevice(entry, device));
  return answered(driver->device_memory_info(device, free_bytes, total_bytes));
}

puone_status deviceSynchronize(int32_t device) {
  CHECKED(checkDevice("device_synchronize", device));
  return answered(driver->device_synchronize(device));
}

puone_status streamPriorityRange(int32_t device, int32_t* least, int32_t* greatest) {
  constexpr const char* entry = "stream_priority_range";
  CHECKED(checkOut(entry, least));
  CHECKED(checkOut(entry, greatest));
  CHECKED(checkDevice(entry, device));
  return answered(driver->stream_priority_range(device, least, greatest));
}

puone_status deviceCanAccessPeer(int32_t device, int32_t peer, int32_t* out) {
  constexpr const char* entry = "device_can_access_peer";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  CHECKED(checkDevice(entry, peer));
  return answered(driver->device_can_access_peer(device, peer, out));
}

} // namespace puone::validation
