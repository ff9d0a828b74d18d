// SPDX-License-Identifier: BSD-3-Clause
// What a derivative is given.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

namespace puone {

// Refuses a gradient of other sizes than those of the result that it is of: who calls a derivative
// directly has not compared them, and kernels take their sizes from the other operands.
inline void checkGradientSizes(const at::Tensor& gradient, c10::IntArrayRef sizes) {
  TORCH_CHECK(
      gradient.sizes() == sizes,
      "Expected a gradient of the sizes ",
      sizes,
      ", but got ",
      gradient.sizes());
}

} // namespace puone
