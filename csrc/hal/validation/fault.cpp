// SPDX-License-Identifier: BSD-3-Clause
// The entries of the extension "fault".
#include "hal/hal.h"
#include "hal/validation/checks.h"
#include "hal/validation/extensions.h"
#include "hal/validation/refusals.h"

namespace puone::validation {
namespace {

const puone_fault_api* fault = nullptr;

puone_status deviceLost(int32_t device) {
  CHECKED(checkDevice("fault.device_lost", device));
  return answered(fault->device_lost(device));
}

puone_fault_api wrapped(const puone_fault_api& api) {
  puone_fault_api result = api;
  result.device_lost = deviceLost;
  return result;
}

} // namespace

const void* wrappedFault(const void* found) {
  return wrappedOnce<wrapped>(found, fault);
}

} // namespace puone::validation
