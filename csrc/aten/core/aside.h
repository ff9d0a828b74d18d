// SPDX-License-Identifier: BSD-3-Clause
// Kernels that want contiguous memory, and outputs that are not.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "aten/core/factory.h"

namespace puone {

// compute(out) if `out` is contiguous, else computes elsewhere and copies.
template <class Compute>
void computeContiguous(const at::Tensor& out, const Compute& compute) {
  if (out.is_contiguous()) return compute(out);
  const at::Tensor aside = newResult(out.sizes(), {}, out.options());
  compute(aside);
  out.copy_(aside);
}

// The memory of a tensor, which a kernel only reads unless it is an output.
inline void* dataOf(const at::Tensor& tensor) {
  return tensor.defined() ? const_cast<void*>(tensor.const_data_ptr()) : nullptr;
}

inline at::Tensor contiguousOrNone(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor->contiguous() : at::Tensor();
}

} // namespace puone
