// SPDX-License-Identifier: BSD-3-Clause
// pow.
#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/launch.h"
#include "aten/pointwise/pow_ops.h"

namespace puone {
namespace {

using at::Tensor;

// The usual exponents have kernels of their own.
const ElementwiseKernel* usualPower(const c10::Scalar& exponent, c10::ScalarType type) {
  if (exponent.isComplex()) return nullptr;
  const double value = exponent.to<double>();
  if (value == 2) return &kernel::square;
  if (value == 3) return &kernel::cube;
  if (!c10::isFloatingType(type)) return nullptr; // no roots of complex numbers: other branch cuts
  if (value == 0.5) return &kernel::sqrt;
  if (value == -0.5) return &kernel::rsqrt;
  if (value == -1) return &kernel::reciprocal;
  if (value == -2) return &kernel::inverse_square;
  return nullptr;
}

struct PowTensorScalar : at::meta::structured_pow_Tensor_Scalar {
  void impl(const Tensor& self, const c10::Scalar& exponent, const Tensor& out) {
    if (exponent.equal(0.0) || exponent.equal(false)) {
      out.fill_(1);
    } else if (exponent.equal(1.0) || exponent.equal(true)) {
      if (!out.is_same(self)) out.copy_(self);
    } else if (const ElementwiseKernel* kernel = usualPower(exponent, common_dtype())) {
      launchElementwise(*kernel, *this, common_dtype());
    } else {
      launchElementwise(kernel::pow_scalar, *this, common_dtype(), {exponent});
    }
  }
};

struct PowScalar : at::meta::structured_pow_Scalar {
  void impl(const c10::Scalar& self, const Tensor& exponent, const Tensor& out) {
    if (self.equal(1.0) || self.equal(true)) {
      out.fill_(1);
      return;
    }
    Tensor result = out;
    at::_ops::pow_Tensor_Tensor_out::call(
        at::native::wrapped_scalar_tensor(self), exponent, result);
  }
};

} // namespace
} // namespace puone

#include "aten/pointwise/pow_registrations.inc"
