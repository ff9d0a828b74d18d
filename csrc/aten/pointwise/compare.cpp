// SPDX-License-Identifier: BSD-3-Clause
// Comparisons, and logic on the truth of elements.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/pointwise/compare_ops.h"

namespace puone {
namespace {

using at::Tensor;

template <class Overload, const ElementwiseKernel& kKernel>
Tensor& logicalOut(const Tensor& self, const Tensor& other, Tensor& out) {
  for (const Tensor& tensor : {self, other, out}) {
    if (!isComputable(tensor.scalar_type())) return fallBack<Overload>(self, other, out);
  }
  auto iter = at::TensorIterator::comparison_op(out, self, other);
  launchElementwise(kKernel, iter, iter.common_dtype());
  return out;
}

} // namespace
} // namespace puone

#include "aten/pointwise/compare_registrations.inc"
