// SPDX-License-Identifier: BSD-3-Clause
// The bounds of logit and its gradient.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <optional>

namespace puone {

// eps and 1 - eps, both rounded to the element type: an element can be equal to a bound. Without
// eps the first is negative.
inline std::array<c10::Scalar, 2> logitBounds(std::optional<double> eps, c10::ScalarType type) {
  const auto rounded = [type](double x) -> double {
    switch (type) {
      case c10::ScalarType::Half:
        return static_cast<c10::Half>(static_cast<float>(x));
      case c10::ScalarType::BFloat16:
        return static_cast<c10::BFloat16>(static_cast<float>(x));
      case c10::ScalarType::Float:
        return static_cast<float>(x);
      default:
        return x;
    }
  };
  const double low = rounded(eps.value_or(-1.0));
  return {low, rounded(1 - low)};
}

} // namespace puone
