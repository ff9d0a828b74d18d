// SPDX-License-Identifier: BSD-3-Clause
// The bounds of logit and its gradient.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <optional>

#include "aten/core/elementwise.h"

namespace puone {

// eps and 1 - eps, rounded to the type that the kernel computes in, as on CUDA devices. Without eps
// the first is negative.
inline std::array<c10::Scalar, 2> logitBounds(std::optional<double> eps, c10::ScalarType type) {
  const auto rounded = [type](double x) -> double {
    return computeType(type) == c10::ScalarType::Float ? static_cast<float>(x) : x;
  };
  const double low = rounded(eps.value_or(-1.0));
  return {low, rounded(1 - low)};
}

} // namespace puone
