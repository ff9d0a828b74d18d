// SPDX-License-Identifier: BSD-3-Clause
// Activation functions.
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/clamp_meta.h>
#include <ATen/ops/clamp_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/pointwise/activation_ops.h"
#include "aten/pointwise/logit.h"
#include "aten/pointwise/unary_operator.h"

namespace puone {
namespace {

using at::Tensor;
using c10::Scalar;

struct Gelu : at::meta::structured_gelu {
  void impl(const Tensor& /*self*/, c10::string_view approximate, const Tensor& /*out*/) {
    checkType("gelu", common_dtype(), kRealTypes);
    TORCH_CHECK(
        approximate == "none" || approximate == "tanh",
        "approximate argument must be either none or tanh.");
    launchElementwise(
        approximate == "tanh" ? kernel::gelu_tanh : kernel::gelu, *this, common_dtype());
  }
};

using Hardswish = UnaryOperator<kernel::hardswish, kRealTypes, at::_ops::hardswish>;

// Bounds that do not promote integers. (Before 2.15 the CPU refuses negative ones of uint8.)
std::pair<Scalar, Scalar> hardtanhBounds(const Tensor& self, const Scalar& min, const Scalar& max) {
  const auto type = self.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      type != c10::ScalarType::Bool, "Bool inputs not supported for hardtanh");
  if (!c10::isIntegralType(type, /*includeBool=*/false)) return {min, max};
  return {min.toLong(), max.toLong()};
}
Tensor& hardtanhOut(const Tensor& self, const Scalar& min, const Scalar& max, Tensor& out) {
  const auto [low, high] = hardtanhBounds(self, min, max);
  return at::_ops::clamp_out::call(self, low, high, out);
}
Tensor hardtanh(const Tensor& self, const Scalar& min, const Scalar& max) {
  const auto [low, high] = hardtanhBounds(self, min, max);
  return at::_ops::clamp::call(self, low, high);
}
Tensor& hardtanhInplace(Tensor& self, const Scalar& min, const Scalar& max) {
  return hardtanhOut(self, min, max, self);
}

// The buffer, an intermediate result for the CPU's gradient, is empty: ours computes it anew.
std::tuple<Tensor&, Tensor&> logSigmoidOut(const Tensor& self, Tensor& out, Tensor& buffer) {
  checkType("log_sigmoid_forward", self.scalar_type(), kRealTypes);
  auto iter = at::TensorIterator::unary_op(out, self);
  launchElementwise(kernel::log_sigmoid, iter, self.scalar_type());
  at::native::resize_output(buffer, {0});
  return std::forward_as_tuple(out, buffer);
}
std::tuple<Tensor, Tensor> logSigmoid(const Tensor& self) {
  Tensor out = newResult({0}, {}, self.options()), buffer = newResult({0}, {}, self.options());
  logSigmoidOut(self, out, buffer);
  return {out, buffer};
}

Tensor& logitOut(const Tensor& self, std::optional<double> eps, Tensor& out) {
  auto iter = at::TensorIterator::unary_float_op(out, self);
  checkType("logit", iter.common_dtype(), kRealTypes);
  launchElementwise(
      kernel::logit, iter, iter.common_dtype(), logitBounds(eps, iter.common_dtype()));
  return out;
}
Tensor logit(const Tensor& self, std::optional<double> eps) {
  const bool integral = c10::isIntegralType(self.scalar_type(), /*includeBool=*/true);
  const auto type = integral ? c10::get_default_dtype() : self.dtype();
  Tensor out = newResult({0}, {}, self.options().dtype(type));
  return logitOut(self, eps, out);
}
Tensor& logitInplace(Tensor& self, std::optional<double> eps) {
  return logitOut(self, eps, self);
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
  Tensor out;
  auto iter = at::TensorIterator::binary_op(out, self, weight);
  checkType("prelu", iter.common_dtype(), kRealTypes);
  launchElementwise(kernel::prelu, iter, iter.common_dtype());
  return iter.output();
}

} // namespace
} // namespace puone

#include "aten/pointwise/activation_registrations.inc"
