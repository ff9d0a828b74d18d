// SPDX-License-Identifier: BSD-3-Clause
// Prefix sums on a host, on one core: memory bandwidth is the limit.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/launch.h"

namespace puone::kernels::PUONE_ISA {

inline void exclusiveSums(Launch& /*launch*/, int64_t* values, int64_t n) {
  int64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t value = values[i];
    values[i] = sum;
    sum += value;
  }
}

} // namespace puone::kernels::PUONE_ISA
