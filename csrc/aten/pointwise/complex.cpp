// SPDX-License-Identifier: BSD-3-Clause
// complex and polar: complex tensors of two real ones.
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/launch.h"
#include "aten/pointwise/complex_ops.h"

namespace puone {
namespace {

using at::Tensor;

Tensor& launch(const ElementwiseKernel& kernel, const Tensor& a, const Tensor& b, Tensor& out) {
  const c10::ScalarType type = a.scalar_type();
  const bool half = type == c10::kHalf;
  TORCH_CHECK(
      type == c10::kFloat || type == c10::kDouble || half,
      "Expected both inputs to be Half, Float or Double tensors but got ",
      type,
      " and ",
      b.scalar_type());
  TORCH_CHECK(
      type == b.scalar_type(),
      "Expected object of scalar type ",
      type,
      " but got scalar type ",
      b.scalar_type(),
      " for second argument");
  TORCH_CHECK(
      out.scalar_type() == c10::toComplexType(type),
      "Expected object of scalar type ",
      c10::toComplexType(type),
      " but got scalar type ",
      out.scalar_type(),
      " for argument 'out'");
  at::TensorIterator iter = at::TensorIteratorConfig()
                                .add_output(out)
                                .add_const_input(a)
                                .add_const_input(b)
                                .check_all_same_dtype(false)
                                .build();
  launchElementwise(kernel, iter, type);
  return out;
}

Tensor& complexOut(const Tensor& real, const Tensor& imag, Tensor& out) {
  return launch(kernel::complex, real, imag, out);
}

Tensor& polarOut(const Tensor& abs, const Tensor& angle, Tensor& out) {
  return launch(kernel::polar, abs, angle, out);
}

} // namespace
} // namespace puone

#include "aten/pointwise/complex_registrations.inc"
