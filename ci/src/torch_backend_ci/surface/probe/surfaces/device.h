// SPDX-License-Identifier: BSD-3-Clause
// Device types, dispatch keys, and the renaming of PrivateUse1.
#pragma once

#include "version.h"

#include <c10/core/Backend.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace probe {
namespace {

// A vendor's table by device type.
constexpr int kDeviceTypes[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
static_assert(sizeof(kDeviceTypes) / sizeof(int) - 1 == static_cast<int>(c10::kPrivateUse1));
static_assert(
    static_cast<int>(c10::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES) ==
    c10::COMPILE_TIME_MAX_DEVICE_TYPES);

constexpr c10::DispatchKey kKeys[] = {
    c10::DispatchKey::Undefined,
    c10::DispatchKey::CPU,
    c10::DispatchKey::Meta,
    c10::DispatchKey::Dense,
    c10::DispatchKey::PrivateUse1,
    c10::DispatchKey::QuantizedPrivateUse1,
    c10::DispatchKey::SparsePrivateUse1,
    c10::DispatchKey::SparseCsrPrivateUse1,
    c10::DispatchKey::NestedTensorPrivateUse1,
    c10::DispatchKey::AutogradPrivateUse1,
    c10::DispatchKey::AutocastPrivateUse1,
    c10::DispatchKey::Autograd,
    c10::DispatchKey::ADInplaceOrView,
    c10::DispatchKey::BackendSelect,
    c10::DispatchKey::Python,
    c10::DispatchKey::Functionalize,
    c10::DispatchKey::Conjugate,
    c10::DispatchKey::Negative,
    c10::DispatchKey::ZeroTensor,
    c10::DispatchKey::Batched,
    c10::DispatchKey::CompositeExplicitAutograd,
    c10::DispatchKey::CompositeImplicitAutograd,
#if !PROBE_TORCH(2, 13)
    c10::DispatchKey::Named,
#endif
};

void useDevices(c10::DispatchKeySet keys) {
  if (!c10::is_privateuse1_backend_registered()) {
    c10::register_privateuse1_backend("probe");
  }
  (void)c10::get_privateuse1_backend(true);
  (void)c10::DeviceTypeName(c10::DeviceType::PrivateUse1, true);
  (void)c10::isValidDeviceType(c10::DeviceType::PrivateUse1);
  c10::Device device(c10::DeviceType::PrivateUse1, c10::DeviceIndex{0});
  (void)c10::Device("privateuseone:0");
  (void)device.is_privateuseone();
  (void)device.has_index();
  device.set_index(1);
  (void)device.str();
  (void)device.supports_as_strided();
  (void)c10::backendToDispatchKey(c10::Backend::PrivateUse1);
  (void)c10::dispatchKeyToBackend(kKeys[4]);
  (void)c10::dispatchKeyToDeviceType(c10::DispatchKey::PrivateUse1);
  (void)c10::backendToDeviceType(c10::Backend::PrivateUse1);
  (void)c10::getAutogradKeyFromBackend(c10::BackendComponent::PrivateUse1Bit);
  keys = (keys | c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) -
         c10::DispatchKeySet(c10::DispatchKey::Autograd);
  keys = keys.add(c10::DispatchKey::Conjugate).remove(c10::DispatchKey::Negative);
  (void)keys.has(c10::DispatchKey::PrivateUse1);
  (void)keys.has_backend(c10::BackendComponent::PrivateUse1Bit);
  (void)keys.highestPriorityTypeId();
  c10::impl::ExcludeDispatchKeyGuard exclude(c10::DispatchKey::PrivateUse1);
  c10::impl::IncludeDispatchKeyGuard include(c10::DispatchKey::PrivateUse1);
  c10::impl::ForceDispatchKeyGuard force;
  (void)c10::impl::tls_local_dispatch_key_set();
  (void)c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::PrivateUse1);
}

} // namespace
} // namespace probe
