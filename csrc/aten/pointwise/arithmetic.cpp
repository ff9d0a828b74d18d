// SPDX-License-Identifier: BSD-3-Clause
// add, sub, mul, div, neg.
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/pointwise/arithmetic_ops.h"

namespace puone {
namespace {

using at::Tensor;

// [quote: class]
template <class Meta, const ElementwiseKernel& kKernel>
struct WithAlpha : Meta {
  void impl(
      const Tensor& /*self*/,
      const Tensor& /*other*/,
      const c10::Scalar& alpha,
      const Tensor& /*out*/) {
    launchElementwise(kKernel, *this, this->common_dtype(), {alpha});
  }
};
// [end: class]

} // namespace
} // namespace puone

#include "aten/pointwise/arithmetic_registrations.inc"
