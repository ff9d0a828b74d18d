// SPDX-License-Identifier: BSD-3-Clause
// Which devices this process has used. Set when the first object (a segment, a stream) is created
// on a device; read by hasPrimaryContext().
#pragma once

#include <c10/core/Device.h>

#include <array>
#include <atomic>
#include <limits>

namespace puone {

inline std::atomic<bool>& primaryContextFlag(c10::DeviceIndex index) {
  static std::array<std::atomic<bool>, std::numeric_limits<c10::DeviceIndex>::max()> flags{};
  return flags.at(static_cast<size_t>(index));
}

} // namespace puone
