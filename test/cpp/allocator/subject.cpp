// SPDX-License-Identifier: BSD-3-Clause
#include "subject.h"

#include <exception>

#include "check.h"
#include "kernels/args.h"
#include "runtime/device.h"
#include "runtime/driver.h"

namespace puone::test {

const puone_fault_api& fault() {
  const void* table = nullptr;
  PUONE_CHECK(hal().get_extension(PUONE_FAULT_EXTENSION, PUONE_FAULT_VERSION, &table));
  return *static_cast<const puone_fault_api*>(table);
}

c10::DataPtr allocate(size_t bytes, const Stream& stream) {
  const DeviceScope scope(stream.deviceIndex());
  const Stream former = getCurrentStream();
  setCurrentStream(stream);
  struct Back {
    const Stream& stream;
    ~Back() {
      setCurrentStream(stream);
    }
  } back{former};
  return deviceAllocator().allocate(bytes);
}

void recordStream(const c10::DataPtr& ptr, const Stream& stream) {
  deviceAllocator().recordStream(ptr, stream.unwrap());
}

void keepBusy(const Stream& stream, std::chrono::milliseconds time) {
  puone_kernel kernel = nullptr;
  PUONE_CHECK(hal().kernel_find("delay", nullptr, &kernel));
  const puone_delay_args args{static_cast<uint64_t>(time.count()) * 1'000'000};
  PUONE_CHECK(hal().kernel_launch(kernel, &args, sizeof args, stream.handle(), nullptr));
}

int64_t allocated(c10::DeviceIndex device) {
  return deviceAllocator().getDeviceStats(device).allocated_bytes[0].current;
}

int64_t active(c10::DeviceIndex device) {
  return deviceAllocator().getDeviceStats(device).active_bytes[0].current;
}

int64_t reserved(c10::DeviceIndex device) {
  return deviceAllocator().getDeviceStats(device).reserved_bytes[0].current;
}

Clean::Clean() {
  fault().reset();
  deviceAllocator().emptyCache({0, 0});
}

Clean::~Clean() {
  fault().reset();
  try {
    deviceAllocator().emptyCache({0, 0});
  } catch (const std::exception& error) {
    report("Clean", 0, error.what());
  }
  for (c10::DeviceIndex device = 0; device < deviceCount(); ++device) {
    CHECK_EQ(allocated(device), 0);
    CHECK_EQ(active(device), 0);
    CHECK_EQ(reserved(device), 0);
    const auto stats = deviceAllocator().getDeviceStats(device);
    CHECK_EQ(stats.allocation[0].current, 0);
    CHECK_EQ(stats.active[0].current, 0);
    CHECK_EQ(stats.segment[0].current, 0);
    CHECK_EQ(stats.inactive_split[0].current, 0);
    CHECK_EQ(stats.inactive_split_bytes[0].current, 0);
    CHECK_EQ(stats.requested_bytes[0].current, 0);
    CHECK_EQ(stats.num_device_alloc, stats.num_device_free);
  }
}

} // namespace puone::test
