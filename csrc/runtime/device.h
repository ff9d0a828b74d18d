// SPDX-License-Identifier: BSD-3-Clause
// Devices: how many there are and which one this thread uses. The current device is kept here, per
// thread: the HAL has none, its entries take the device as a parameter.
#pragma once

#include <c10/core/Device.h>

#include "hal/hal.h"

namespace puone {

// The device type of all devices of this backend.
constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

// Number of devices; 0 without a driver. Never throws, creates nothing.
c10::DeviceIndex deviceCount() noexcept;

// The calling thread's current device, 0 on a new thread. Throws where hal() does.
c10::DeviceIndex currentDevice();

// Throws unless 0 <= index < deviceCount().
void setCurrentDevice(c10::DeviceIndex index);

// Sets the current device to one that was current before. For destructors: it calls nothing.
void restoreCurrentDevice(c10::DeviceIndex index) noexcept;

// Sets the current device and returns the previous one.
c10::DeviceIndex exchangeDevice(c10::DeviceIndex index);

// Same, but a negative index leaves the current device alone.
c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index);

// `index` itself if it names a device, the current device if it is -1; throws otherwise.
c10::DeviceIndex resolveDevice(c10::DeviceIndex index);

// What the driver says of a device. Throws for an index that is not a device.
puone_device_properties deviceProperties(c10::DeviceIndex index);

// Memory of a device.
struct MemoryInfo {
  uint64_t free;  // bytes the driver can still give out
  uint64_t total; // bytes of the device
};

// The memory of a device now. Throws for an index that is not a device.
MemoryInfo memoryInfo(c10::DeviceIndex index);

// Where a pointer lives; any address may be asked about.
puone_pointer_attributes pointerAttributes(const void* pointer);

// Whether kernels and copies on `device` may address memory of `peer`. Throws for an index that is
// not a device.
bool canAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer);

// True once something was allocated on, or queued to, the device by this process.
bool hasPrimaryContext(c10::DeviceIndex index) noexcept;

// Sets the current device for a scope.
class DeviceScope {
 public:
  // A negative index changes nothing. Throws for an index that is not a device.
  explicit DeviceScope(c10::DeviceIndex index)
      : previous_(maybeExchangeDevice(index)), changed_(index >= 0 && index != previous_) {}
  ~DeviceScope() {
    if (changed_) restoreCurrentDevice(previous_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  c10::DeviceIndex previous_;
  bool changed_;
};

} // namespace puone
