// SPDX-License-Identifier: BSD-3-Clause
// A launch on a host's cores: a call on a driver thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/device_error.h"

namespace puone::kernels {

class Launch {
 public:
  /// The memory behind a device address. Every pointer in an argument struct passes through here
  /// once, at kernel entry; on a device it is the identity.
  virtual unsigned char* resolve(void* device_address) const = 0;

  /// Calls body(begin, end) for disjoint ranges that cover [0, n), on several cores if n is at
  /// least 2 * `grain`. Only the last range may be shorter than `grain`.
  template <class Body>
  void forRanges(int64_t n, int64_t grain, const Body& body) {
    if (n < 2 * grain) {
      if (n > 0) body(int64_t{0}, n);
      return;
    }
    spread(
        n,
        grain,
        [](const void* context, int64_t begin, int64_t end) {
          (*static_cast<const Body*>(context))(begin, end);
        },
        &body);
  }

  /// An error that the kernel may raise; deviceErrorText() documents `message`. Only the first one
  /// of a launch is reported.
  virtual DeviceError deviceError(std::string_view message) = 0;

  /// The work takes at least `ns` nanoseconds. It occupies no core meanwhile.
  virtual void delay(uint64_t ns) = 0;

 protected:
  using RangeBody = void (*)(const void* context, int64_t begin, int64_t end);
  ~Launch() = default;
  virtual void spread(int64_t n, int64_t grain, RangeBody body, const void* context) = 0;
};

} // namespace puone::kernels
