// SPDX-License-Identifier: BSD-3-Clause
// How a kernel reports an error that only it can detect, for example an index that is out of
// bounds: it raises a device error and continues without the invalid access. The next
// synchronisation reports the error, with the text of drivers/common/device_error_text.h.
#pragma once

#include <cstdint>

#include "kernels/target.h"

namespace puone::kernels {

/// The first error of a launch, in memory that both the kernel and the driver can access.
struct ErrorRecord {
  uint32_t code; // 0: none
  uint32_t reserved;
  int64_t values[2];
};

/// An error that a kernel can raise. Trivially copyable: an argument of device code.
struct DeviceError {
  ErrorRecord* record;
  uint32_t code; // identifies the message for the driver

  /// May be called by any thread; only the first call of a launch counts. `a` and `b` replace the
  /// message's two "{}".
  PUONE_FN void raise(int64_t a = 0, int64_t b = 0) const {
#ifdef PUONE_ON_DEVICE
    if (atomicCAS(&record->code, 0u, code) != 0u) return;
#else
    uint32_t none = 0;
    constexpr bool kWeak = false;
    if (!__atomic_compare_exchange_n(
            &record->code, &none, code, kWeak, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return;
    }
#endif
    record->values[0] = a;
    record->values[1] = b;
  }
};

} // namespace puone::kernels
