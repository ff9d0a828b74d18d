// SPDX-License-Identifier: BSD-3-Clause
// What host/shape.h and simt/shape.h share. They have cat(), triangle() and
// repeatInterleaveOf<T>().
#pragma once

#include "kernels/index_check.h"
#include "kernels/isa.h"

namespace puone::kernels::PUONE_ISA {

inline IndexCheck repeatCheck(Launch& launch) {
  return {
      launch, "repeat_interleave: repeats can not be negative, and their sum is the output's size"};
}

} // namespace puone::kernels::PUONE_ISA
