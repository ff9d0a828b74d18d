// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>

#include "kernels/isa.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// exp(x), NaN for NaN.
template <class T>
PUONE_FN T exponentialOrNan(T x) {
  return std::exp(x);
}

} // namespace puone::kernels::PUONE_ISA
