// SPDX-License-Identifier: BSD-3-Clause
// softmax and its gradient for the elements of a row. host/softmax.h and simt/softmax.h spread the
// rows over threads.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/isa.h"
#include "kernels/row_math.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

template <class T>
struct SoftmaxMath {
  static constexpr T kLowest = -std::numeric_limits<T>::infinity();

  /// The number that is subtracted from x - top, or the factor of exp(x - top). Subtracting
  /// top + log(sum) from x at once would lose the logarithm's digits if top is large.
  PUONE_FN T normaliser(T sum) const {
    return logarithm ? std::log(sum) : T(1) / sum;
  }

  /// Backward: the summands of a row's sum; the gradient, given that sum.
  PUONE_FN T term(T grad, T y) const {
    return logarithm ? grad : grad * y;
  }
  PUONE_FN T gradient(T grad, T y, T sum) const {
    return logarithm ? grad - exponentialOrNan(y) * sum : (grad - sum) * y;
  }

  bool logarithm;
};

} // namespace puone::kernels::PUONE_ISA
