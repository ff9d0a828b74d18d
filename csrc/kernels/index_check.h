// SPDX-License-Identifier: BSD-3-Clause
// Indices come in device memory: only the kernel sees them, so only it can refuse one. As a device
// assertion does, it lets the launch fail: the error arrives at the next synchronisation.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/launch.h"
#include "kernels/target.h"

namespace puone::kernels {

/// Trivially copyable: an argument of device code.
class IndexCheck {
 public:
  /// `name` of the operator, for the message.
  IndexCheck(Launch& launch, const std::string& name)
      : fault_(launch.fault(name + ": index {} is out of bounds for dimension with size {}")) {}

  /// Is 0 <= index < size? If not, nothing must be read or written there. Any thread may ask.
  PUONE_FN bool operator()(int64_t index, int64_t size) const {
    if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size)) return true;
    fault_.raise(index, size);
    return false;
  }

 private:
  Fault fault_;
};

} // namespace puone::kernels
