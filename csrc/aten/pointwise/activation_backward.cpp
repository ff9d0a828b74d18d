// SPDX-License-Identifier: BSD-3-Clause
// Gradients of activation functions.
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/gradient.h"
#include "aten/core/launch.h"
#include "aten/pointwise/activation_backward_ops.h"
#include "aten/pointwise/logit.h"

namespace puone {
namespace {

using at::Tensor;
using c10::Scalar;

struct GeluBackward : at::meta::structured_gelu_backward {
  void impl(
      const Tensor& /*gradient*/,
      const Tensor& /*self*/,
      c10::string_view approximate,
      const Tensor& /*out*/) {
    checkType("gelu_backward", common_dtype(), kRealTypes);
    TORCH_CHECK(
        approximate == "none" || approximate == "tanh",
        "approximate argument must be either none or tanh.");
    launchElementwise(
        approximate == "tanh" ? kernel::gelu_tanh_backward : kernel::gelu_backward,
        *this,
        common_dtype());
  }
};

struct LogitBackward : at::meta::structured_logit_backward {
  void impl(
      const Tensor& /*gradient*/,
      const Tensor& /*self*/,
      std::optional<double> eps,
      const Tensor& /*out*/) {
    checkType("logit_backward", common_dtype(), kRealTypes);
    launchElementwise(
        kernel::logit_backward, *this, common_dtype(), logitBounds(eps, common_dtype()));
  }
};

Tensor launchBinary(
    const ElementwiseKernel& kernel,
    Tensor out,
    const Tensor& a,
    const Tensor& b,
    c10::ArrayRef<Scalar> scalars = {}) {
  auto iter = at::TensorIterator::binary_op(out, a, b);
  checkType("backward", iter.common_dtype(), kRealTypes);
  launchElementwise(kernel, iter, iter.common_dtype(), scalars);
  return iter.output();
}

Tensor mishBackward(const Tensor& gradient, const Tensor& self) {
  return launchBinary(kernel::mish_backward, {}, gradient, self);
}
Tensor hardswishBackward(const Tensor& gradient, const Tensor& self) {
  return launchBinary(kernel::hardswish_backward, {}, gradient, self);
}

Tensor& hardtanhBackwardOut(
    const Tensor& gradient, const Tensor& self, const Scalar& min, const Scalar& max, Tensor& out) {
  launchBinary(kernel::hardtanh_backward, out, gradient, self, {min, max});
  return out;
}
Tensor hardtanhBackward(
    const Tensor& gradient, const Tensor& self, const Scalar& min, const Scalar& max) {
  return launchBinary(kernel::hardtanh_backward, {}, gradient, self, {min, max});
}

Tensor& logSigmoidBackwardOut(
    const Tensor& gradient, const Tensor& self, const Tensor& /*buffer*/, Tensor& out) {
  launchBinary(kernel::log_sigmoid_backward, out, gradient, self);
  return out;
}
Tensor logSigmoidBackward(const Tensor& gradient, const Tensor& self, const Tensor& /*buffer*/) {
  return launchBinary(kernel::log_sigmoid_backward, {}, gradient, self);
}

// Two results of three arguments.
void launchPair(
    const ElementwiseKernel& kernel,
    const Tensor& first,
    const Tensor& second,
    const Tensor& a,
    const Tensor& b,
    const Tensor& c) {
  auto iter = at::TensorIteratorConfig()
                  .add_output(first)
                  .add_output(second)
                  .add_const_input(a)
                  .add_const_input(b)
                  .add_const_input(c)
                  .build();
  checkType("backward", iter.common_dtype(), kRealTypes);
  launchElementwise(kernel, iter, iter.common_dtype());
}

std::tuple<Tensor, Tensor> preluBackward(
    const Tensor& gradient, const Tensor& self, const Tensor& weight) {
  Tensor for_self = newResult(self.sizes(), self.strides(), self.options());
  Tensor for_weight = newResult(self.sizes(), {}, weight.options());
  launchPair(kernel::prelu_backward, for_self, for_weight, gradient, self, weight);
  return {for_self, for_weight};
}

Tensor& gluBackwardOut(const Tensor& gradient, const Tensor& self, int64_t dim, Tensor& out) {
  TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  dim = c10::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(
      self.size(dim) % 2 == 0,
      "Halving dimension must be even, but dimension ",
      dim,
      " is size ",
      self.size(dim));
  const int64_t half = self.size(dim) / 2;
  c10::DimVector halved(self.sizes());
  halved[dim] = half;
  checkGradientSizes(gradient, halved);
  at::native::resize_output(out, self.sizes());
  const auto part = [&](const Tensor& tensor, int64_t start) {
    return tensor.narrow(dim, start, half);
  };
  launchPair(
      kernel::glu_backward,
      part(out, 0),
      part(out, half),
      gradient,
      part(self, 0),
      part(self, half));
  return out;
}
Tensor gluBackward(const Tensor& gradient, const Tensor& self, int64_t dim) {
  Tensor out = newResult({0}, {}, self.options());
  return gluBackwardOut(gradient, self, dim, out);
}

} // namespace
} // namespace puone

#include "aten/pointwise/activation_backward_registrations.inc"
