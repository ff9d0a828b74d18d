// SPDX-License-Identifier: BSD-3-Clause
// The device guard: devices, streams and events behind one interface.
#pragma once

#include "version.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/InlineDeviceGuard.h>
#include <c10/core/impl/InlineStreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace probe {
namespace {

struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::DeviceType::PrivateUse1;

  GuardImpl() = default;
  explicit GuardImpl(c10::DeviceType) {}

  c10::DeviceType type() const override;
  c10::Device exchangeDevice(c10::Device) const override;
  c10::Device getDevice() const override;
  void setDevice(c10::Device) const override;
  void uncheckedSetDevice(c10::Device) const noexcept override;
  c10::Stream getDefaultStream(c10::Device) const override;
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override;
  c10::Stream getNewStream(c10::Device, int) const override;
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override;
  void record(
      void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override;
  void block(void*, const c10::Stream&) const override;
  bool queryEvent(void*) const override;
  c10::DeviceIndex deviceCount() const noexcept override;
  bool queryStream(const c10::Stream&) const override;
  void synchronizeStream(const c10::Stream&) const override;
  void synchronizeEvent(void*) const override;
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override;
  double elapsedTime(void*, void*, const c10::DeviceIndex) const override;
#if !PROBE_TORCH(2, 7)
  c10::Stream getStream(c10::Device) const noexcept override;
  c10::Stream exchangeStream(c10::Stream) const noexcept override;
#endif
#if PROBE_TORCH(2, 6)
  void synchronizeDevice(const c10::DeviceIndex) const override;
#endif
#if PROBE_TORCH(2, 7)
  c10::Stream getStream(c10::Device) const override;
  c10::Stream exchangeStream(c10::Stream) const override;
#endif
#if PROBE_TORCH(2, 10)
  c10::DeviceCapability getDeviceCapability(c10::Device) const override;
#endif
#if PROBE_TORCH(2, 11)
  void* getStreamNativeHandle(const c10::Stream) const override;
#endif
#if PROBE_TORCH(2, 12)
  bool isStreamCapturing(const c10::Stream&) const override;
#endif
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl)

void useGuards(c10::Device device, c10::Stream stream) {
  new GuardImpl();
  (void)c10::impl::hasDeviceGuardImpl(device.type());
  const c10::impl::DeviceGuardImplInterface* impl = c10::impl::getDeviceGuardImpl(device.type());
  impl->setDevice(impl->exchangeDevice(impl->getDevice()));
  impl->exchangeStream(impl->getStream(device));
  c10::impl::InlineDeviceGuard<GuardImpl> here(device);
  here.set_index(0);
  c10::impl::InlineOptionalDeviceGuard<GuardImpl> maybe_here(device);
  c10::impl::InlineStreamGuard<GuardImpl> on(stream);
  on.reset_stream(on.original_stream());
  c10::impl::InlineOptionalStreamGuard<GuardImpl> maybe_on(stream);
  c10::impl::VirtualGuardImpl any(device.type());
  (void)any.deviceCount();
  c10::DeviceGuard guard(device);
  guard.reset_device(guard.original_device());
  (void)guard.current_device();
  c10::OptionalDeviceGuard optional_guard(device);
  c10::StreamGuard stream_guard(stream);
  (void)stream_guard.current_stream();
  c10::OptionalStreamGuard optional_stream_guard(stream);
  c10::MultiStreamGuard streams(c10::ArrayRef<c10::Stream>{stream});
#if PROBE_TORCH(2, 10)
  c10::DeviceCapability capability;
  capability.capability_data.supported_scalar_types.has_QInt8 = false;
#endif
}

} // namespace
} // namespace probe
