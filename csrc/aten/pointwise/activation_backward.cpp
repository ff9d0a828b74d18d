// SPDX-License-Identifier: BSD-3-Clause
// Gradients of activation functions.
#include <ATen/core/Tensor.h>
#include <ATen/ops/elu_backward_meta.h>
#include <ATen/ops/elu_backward_ops.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/hardshrink_backward_meta.h>
#include <ATen/ops/hardshrink_backward_ops.h>
#include <ATen/ops/hardsigmoid_backward_meta.h>
#include <ATen/ops/hardsigmoid_backward_ops.h>
#include <ATen/ops/leaky_relu_backward_meta.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/logit_backward_meta.h>
#include <ATen/ops/logit_backward_ops.h>
#include <ATen/ops/sigmoid_backward_meta.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_backward_meta.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/softplus_backward_meta.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/softshrink_backward_meta.h>
#include <ATen/ops/softshrink_backward_ops.h>
#include <ATen/ops/tanh_backward_meta.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
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
    static const Kernel exact("gelu_backward"), tanh("gelu_tanh_backward");
    checkType("gelu_backward", common_dtype(), kRealTypes);
    TORCH_CHECK(
        approximate == "none" || approximate == "tanh",
        "approximate argument must be either none or tanh.");
    launchElementwise(approximate == "tanh" ? tanh : exact, *this, common_dtype());
  }
};

struct LogitBackward : at::meta::structured_logit_backward {
  void impl(
      const Tensor& /*gradient*/,
      const Tensor& /*self*/,
      std::optional<double> eps,
      const Tensor& /*out*/) {
    static const Kernel kernel("logit_backward");
    checkType("logit_backward", common_dtype(), kRealTypes);
    launchElementwise(kernel, *this, common_dtype(), logitBounds(eps, common_dtype()));
  }
};

Tensor launchBinary(
    const Kernel& kernel,
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
  static const Kernel kernel("mish_backward");
  return launchBinary(kernel, {}, gradient, self);
}
Tensor hardswishBackward(const Tensor& gradient, const Tensor& self) {
  static const Kernel kernel("hardswish_backward");
  return launchBinary(kernel, {}, gradient, self);
}

Tensor& hardtanhBackwardOut(
    const Tensor& gradient, const Tensor& self, const Scalar& min, const Scalar& max, Tensor& out) {
  static const Kernel kernel("hardtanh_backward");
  launchBinary(kernel, out, gradient, self, {min, max});
  return out;
}
Tensor hardtanhBackward(
    const Tensor& gradient, const Tensor& self, const Scalar& min, const Scalar& max) {
  static const Kernel kernel("hardtanh_backward");
  return launchBinary(kernel, {}, gradient, self, {min, max});
}

Tensor& logSigmoidBackwardOut(
    const Tensor& gradient, const Tensor& self, const Tensor& /*buffer*/, Tensor& out) {
  static const Kernel kernel("log_sigmoid_backward");
  launchBinary(kernel, out, gradient, self);
  return out;
}
Tensor logSigmoidBackward(const Tensor& gradient, const Tensor& self, const Tensor& /*buffer*/) {
  static const Kernel kernel("log_sigmoid_backward");
  return launchBinary(kernel, {}, gradient, self);
}

// Two results of three arguments.
void launchPair(
    const Kernel& kernel,
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
  static const Kernel kernel("prelu_backward");
  Tensor for_self = newResult(self.sizes(), self.strides(), self.options());
  Tensor for_weight = newResult(self.sizes(), {}, weight.options());
  launchPair(kernel, for_self, for_weight, gradient, self, weight);
  return {for_self, for_weight};
}

Tensor& gluBackwardOut(const Tensor& gradient, const Tensor& self, int64_t dim, Tensor& out) {
  static const Kernel kernel("glu_backward");
  TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  dim = c10::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(
      self.size(dim) % 2 == 0,
      "Halving dimension must be even, but dimension ",
      dim,
      " is size ",
      self.size(dim));
  at::native::resize_output(out, self.sizes());
  const int64_t half = self.size(dim) / 2;
  const auto part = [&](const Tensor& tensor, int64_t start) {
    return tensor.narrow(dim, start, half);
  };
  launchPair(kernel, part(out, 0), part(out, half), gradient, part(self, 0), part(self, half));
  return out;
}
Tensor gluBackward(const Tensor& gradient, const Tensor& self, int64_t dim) {
  Tensor out = newResult({0}, {}, self.options());
  return gluBackwardOut(gradient, self, dim, out);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<
      Elementwise<at::meta::structured_sigmoid_backward, "sigmoid_backward", kInexact>,
      at::_ops::sigmoid_backward_grad_input>(m);
  structured<
      Elementwise<at::meta::structured_tanh_backward, "tanh_backward", kInexact>,
      at::_ops::tanh_backward_grad_input>(m);
  structured<
      Elementwise<at::meta::structured_silu_backward, "silu_backward", kInexact>,
      at::_ops::silu_backward_grad_input>(m);
  structured<
      Elementwise<at::meta::structured_hardsigmoid_backward, "hardsigmoid_backward", kRealTypes>,
      at::_ops::hardsigmoid_backward_grad_input>(m);
  structured<
      WithScalars<
          at::meta::structured_threshold_backward,
          "threshold_backward",
          kIntegerTypes | kRealTypes>,
      at::_ops::threshold_backward,
      at::_ops::threshold_backward_grad_input>(m);
  structured<
      WithScalars<at::meta::structured_leaky_relu_backward, "leaky_relu_backward", kRealTypes>,
      at::_ops::leaky_relu_backward_grad_input>(m);
  structured<
      WithScalars<at::meta::structured_elu_backward, "elu_backward", kRealTypes>,
      at::_ops::elu_backward_grad_input>(m);
  structured<
      WithScalars<at::meta::structured_softplus_backward, "softplus_backward", kRealTypes>,
      at::_ops::softplus_backward_grad_input>(m);
  structured<
      WithScalars<at::meta::structured_softshrink_backward, "shrink_backward", kRealTypes>,
      at::_ops::softshrink_backward_grad_input>(m);
  structured<
      WithScalars<at::meta::structured_hardshrink_backward, "shrink_backward", kRealTypes>,
      at::_ops::hardshrink_backward_grad_input>(m);
  structured<GeluBackward, at::_ops::gelu_backward, at::_ops::gelu_backward_grad_input>(m);
  structured<LogitBackward, at::_ops::logit_backward_grad_input>(m);
  m.impl("mish_backward", TORCH_FN(mishBackward));
  m.impl("hardswish_backward", TORCH_FN(hardswishBackward));
  m.impl("hardtanh_backward", TORCH_FN(hardtanhBackward));
  m.impl("hardtanh_backward.grad_input", TORCH_FN(hardtanhBackwardOut));
  m.impl("log_sigmoid_backward", TORCH_FN(logSigmoidBackward));
  m.impl("log_sigmoid_backward.grad_input", TORCH_FN(logSigmoidBackwardOut));
  m.impl("_prelu_kernel_backward", TORCH_FN(preluBackward));
  m.impl("glu_backward", TORCH_FN(gluBackward));
  m.impl("glu_backward.grad_input", TORCH_FN(gluBackwardOut));
}

} // namespace puone
