// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/device.h"

#include <c10/util/Exception.h>

#include "runtime/driver.h"
#include "runtime/primary_context.h"

namespace puone {
namespace {

thread_local c10::DeviceIndex current_device = 0;

void checkIndex(c10::DeviceIndex index) {
  TORCH_CHECK(
      index >= 0 && index < deviceCount(),
      "invalid device ordinal: puone:",
      static_cast<int>(index),
      ", but ",
      deviceCount() == 0 ? c10::str("there is no device (", driverState().error, ")")
                         : c10::str("there are ", static_cast<int>(deviceCount()), " devices"));
}

} // namespace

c10::DeviceIndex deviceCount() noexcept {
  return static_cast<c10::DeviceIndex>(driverState().device_count);
}

c10::DeviceIndex currentDevice() {
  hal(); // there is none without a driver, after shutdown or in a bad fork
  return current_device;
}

void setCurrentDevice(c10::DeviceIndex index) {
  checkIndex(index);
  hal();
  current_device = index;
}

void restoreCurrentDevice(c10::DeviceIndex previous) noexcept {
  current_device = previous;
}

c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) {
  const auto previous = currentDevice();
  if (index != previous) {
    setCurrentDevice(index);
  }
  return previous;
}

c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) {
  return index < 0 ? currentDevice() : exchangeDevice(index);
}

c10::DeviceIndex resolveDevice(c10::DeviceIndex index) {
  if (index == -1) {
    return currentDevice();
  }
  checkIndex(index);
  return index;
}

puone_device_properties deviceProperties(c10::DeviceIndex index) {
  checkIndex(index);
  puone_device_properties properties{};
  properties.struct_size = sizeof properties;
  PUONE_CHECK(hal().device_properties(index, &properties));
  return properties;
}

MemoryInfo memoryInfo(c10::DeviceIndex index) {
  MemoryInfo info{};
  PUONE_CHECK(hal().device_memory_info(index, &info.free, &info.total));
  return info;
}

puone_pointer_attributes pointerAttributes(const void* pointer) {
  puone_pointer_attributes attributes{};
  attributes.struct_size = sizeof attributes;
  PUONE_CHECK(hal().pointer_attributes(pointer, &attributes));
  return attributes;
}

bool canAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer) {
  checkIndex(device);
  checkIndex(peer);
  int32_t can = 0;
  const puone_status status = hal().device_can_access_peer(device, peer, &can);
  if (status == PUONE_UNSUPPORTED) return device == peer; // without PUONE_CAP_PEER_ACCESS
  PUONE_CHECK_STATUS(status, "device_can_access_peer");
  return can != 0;
}

bool hasPrimaryContext(c10::DeviceIndex index) noexcept {
  return index >= 0 && index < deviceCount() && primaryContextFlag(index).load();
}

} // namespace puone
