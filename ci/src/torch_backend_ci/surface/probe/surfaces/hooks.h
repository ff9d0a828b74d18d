// SPDX-License-Identifier: BSD-3-Clause
// Hooks: what device-agnostic code asks of the device.
#pragma once

#include "version.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/AcceleratorHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace probe {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
#if PROBE_TORCH(2, 6)
  void init() const override;
  at::Generator getNewGenerator(c10::DeviceIndex) const override;
#else
  void initPrivateUse1() const override;
#endif
#if PROBE_TORCH(2, 7)
  bool isBuilt() const override;
  bool isAvailable() const override;
#endif
  bool hasPrimaryContext(c10::DeviceIndex) const override;
  c10::DeviceIndex deviceCount() const override;
  void setCurrentDevice(c10::DeviceIndex) const override;
  c10::DeviceIndex getCurrentDevice() const override;
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override;
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override;
  bool isPinnedPtr(const void*) const override;
  at::Allocator* getPinnedMemoryAllocator() const override;
  c10::Device getDeviceFromPtr(void*) const override;
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override;
  void resizePrivateUse1Bytes(const c10::Storage&, size_t) const override;
};

void useHooks(void* memory) {
  at::RegisterPrivateUse1HooksInterface(new Hooks());
#if PROBE_TORCH(2, 6)
  (void)at::isPrivateUse1HooksRegistered();
#endif
  (void)at::detail::getPrivateUse1Hooks().getDeviceFromPtr(memory);
  const at::AcceleratorHooksInterface& hooks =
      at::globalContext().getAcceleratorHooksInterface(at::kPrivateUse1);
  (void)hooks.isPinnedPtr(memory);
  (void)at::globalContext().deterministicAlgorithms();
  (void)at::getAccelerator(true);
#if PROBE_TORCH(2, 6)
  (void)at::isAccelerator(at::kPrivateUse1);
#endif
#if PROBE_TORCH(2, 7)
  at::accelerator::setDeviceIndex(at::accelerator::getDeviceIndex());
  (void)at::accelerator::deviceCount();
  at::accelerator::setCurrentStream(at::accelerator::getCurrentStream(0));
  at::accelerator::synchronizeDevice(0);
#endif
}

} // namespace
} // namespace probe
