// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/isa.h"
#include "kernels/portable_math.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// exp(x) that vectorises, NaN for NaN.
template <class T>
PUONE_FN T exponentialOrNan(T x) {
  // Select the inputs: selecting results would compile to a branch.
  const T number = x == x ? x : T(0), factor = x == x ? T(1) : x;
  return exponential(number) * factor;
}

} // namespace puone::kernels::PUONE_ISA
