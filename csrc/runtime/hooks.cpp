// SPDX-License-Identifier: BSD-3-Clause
// PrivateUse1HooksInterface: what PyTorch's device-agnostic code (torch.accelerator, pinned memory,
// generators, storage resize) asks of the one out-of-tree device.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Storage.h>

#include <algorithm>

#include "runtime/device.h"
#include "runtime/device_allocator.h"
#include "runtime/driver.h"
#include "runtime/generator.h"
#include "runtime/host_allocator.h"
#include "runtime/stream.h"

namespace puone {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }

  bool isAvailable() const override {
    return driverState().available();
  }

  bool hasPrimaryContext(c10::DeviceIndex device) const override {
    return puone::hasPrimaryContext(device);
  }

  void init() const override {
    // Loading the driver is all there is to do; streams and memory come on first use.
    hal();
  }

  c10::DeviceIndex deviceCount() const override {
    return puone::deviceCount();
  }

  void setCurrentDevice(c10::DeviceIndex device) const override {
    puone::setCurrentDevice(device);
  }

  c10::DeviceIndex getCurrentDevice() const override {
    return currentDevice();
  }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return puone::exchangeDevice(device);
  }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return puone::maybeExchangeDevice(device);
  }

  bool isPinnedPtr(const void* data) const override {
    return isPinned(data);
  }

  at::Allocator* getPinnedMemoryAllocator() const override {
    return &hostAllocator();
  }

  c10::Device getDeviceFromPtr(void* data) const override {
    const auto where = pointerAttributes(data);
    TORCH_CHECK(
        where.kind == PUONE_MEMORY_DEVICE, "the pointer ", data, " is not puone device memory");
    return {kDeviceType, static_cast<c10::DeviceIndex>(where.device)};
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return defaultGenerator(device);
  }

  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return newGenerator(device);
  }

  // [quote: resize]
  // Keeps the common prefix. The old block is freed at once: the copy out of it is queued on the
  // current stream, so only if the block came from another stream must the allocator be told.
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t new_bytes) const override {
    auto* impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    const auto device = impl->device().index();
    DeviceScope scope(device);
    auto& allocator = deviceAllocator();
    c10::DataPtr data = allocator.allocate(new_bytes);
    const size_t kept = std::min(impl->nbytes(), new_bytes);
    if (kept > 0) {
      allocator.copy_data(data.get(), impl->data(), kept);
      allocator.recordStream(impl->data_ptr(), getCurrentStream(device).unwrap());
    }
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(new_bytes);
  }
  // [end: resize]
};

const bool hooks_registered = [] {
  static auto* hooks = new Hooks(); // leaked: torch keeps the pointer
  at::RegisterPrivateUse1HooksInterface(hooks);
  return true;
}();

} // namespace
} // namespace puone
