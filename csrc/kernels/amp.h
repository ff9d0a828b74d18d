// SPDX-License-Identifier: BSD-3-Clause
// Unscaling of one gradient.
#pragma once

#include "kernels/isa.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

template <class T>
struct Unscale {
  PUONE_FN T operator()(T value) const {
    return inv_scale == 1 ? value : value * static_cast<T>(inv_scale);
  }
  /// True of infinity and NaN: subtracted from itself, neither gives 0.
  PUONE_FN bool isBad(T value) const {
    return !(value - value == 0);
  }
  float inv_scale;
};

} // namespace puone::kernels::PUONE_ISA
