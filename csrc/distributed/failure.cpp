// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/failure.h"

#include <c10/util/Exception.h>

#include "runtime/deferred_error.h"

namespace puone::distributed {

Failure::Failure(const std::string& message, const std::set<c10::DeviceIndex>& devices)
    : error_(
          std::make_exception_ptr(
              c10::DistBackendError(
                  {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, message))) {
  for (const c10::DeviceIndex device : devices) deferred_.push_back(deferError(device, error_));
}

void Failure::raise() const {
  for (const uint64_t number : deferred_) withdrawError(number);
  std::rethrow_exception(error_);
}

} // namespace puone::distributed
