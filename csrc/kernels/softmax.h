// SPDX-License-Identifier: BSD-3-Clause
// What softmax and its gradient make of the elements of a row. Over which threads the rows are
// spread, host/softmax.h and simt/softmax.h say.
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

  /// What x - top is diminished by, or its exponential multiplied with. Not x - (top + log_sum): a
  /// large top would swallow the logarithm.
  PUONE_FN T normaliser(T sum) const {
    return logarithm ? std::log(sum) : T(1) / sum;
  }

  /// Backward: what is summed up over a row, and the gradient with that sum.
  PUONE_FN T term(T grad, T y) const {
    return logarithm ? grad : grad * y;
  }
  PUONE_FN T gradient(T grad, T y, T sum) const {
    return logarithm ? grad - exponentialOrNan(y) * sum : (grad - sum) * y;
  }

  bool logarithm;
};

} // namespace puone::kernels::PUONE_ISA
