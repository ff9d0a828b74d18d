// SPDX-License-Identifier: BSD-3-Clause
// How a kernel refuses what only it can see, as an index that is out of bounds: it raises a fault,
// goes on without touching anything there, and the error arrives at the next synchronisation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/target.h"

namespace puone::kernels {

/// The first fault of a launch, in memory that both the kernel and the driver see.
struct FaultRecord {
  uint32_t code; // 0: none so far
  uint32_t reserved;
  int64_t values[2];
};

/// What a kernel raises: trivially copyable, an argument of device code.
struct Fault {
  FaultRecord* record;
  uint32_t code; // says to the driver which message it is

  /// Any thread may; the first counts. `a` and `b` replace the message's two "{}".
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

/// The message with the record's values in place of each "{}".
inline std::string faultText(std::string_view message, const FaultRecord& record) {
  std::string text;
  for (const int64_t value : record.values) {
    const size_t place = message.find("{}");
    if (place == std::string_view::npos) break;
    text.append(message.substr(0, place)).append(std::to_string(value));
    message.remove_prefix(place + 2);
  }
  return text.append(message);
}

} // namespace puone::kernels
