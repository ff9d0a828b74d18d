// SPDX-License-Identifier: BSD-3-Clause
// What is pooled or resampled plane by plane.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <algorithm>

namespace puone {

// How many planes of the last `dimensions` dimensions there are: batch and channels. Of derivatives
// PyTorch's meta functions leave unchecked whether the gradient has the input's.
inline int64_t planesOf(const at::Tensor& source, const at::Tensor& result, size_t dimensions) {
  const size_t outer = source.sizes().size() - std::min(source.sizes().size(), dimensions);
  TORCH_CHECK(
      source.dim() == result.dim() &&
          source.sizes().slice(0, outer) == result.sizes().slice(0, outer),
      "Expected the batch and channels of ",
      source.sizes(),
      ", but got ",
      result.sizes());
  return c10::multiply_integers(source.sizes().slice(0, outer));
}

} // namespace puone
