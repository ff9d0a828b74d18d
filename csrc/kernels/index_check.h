// SPDX-License-Identifier: BSD-3-Clause
// Indices are in device memory, so only the kernel can check them. An index that is out of bounds
// makes the launch fail, like a device assertion: the next synchronisation reports the error.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/launch.h"
#include "kernels/target.h"

namespace puone::kernels {

/// Trivially copyable: an argument of device code.
class IndexCheck {
 public:
  /// `name`: of the operator, for the message.
  IndexCheck(Launch& launch, const std::string& name)
      : error_(
            launch.deviceError(name + ": index {} is out of bounds for dimension with size {}")) {}

  /// Whether 0 <= index < size. If not, the caller must not access the element. Thread-safe.
  PUONE_FN bool operator()(int64_t index, int64_t size) const {
    if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size)) return true;
    error_.raise(index, size);
    return false;
  }

 private:
  DeviceError error_;
};

} // namespace puone::kernels
