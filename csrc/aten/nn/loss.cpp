// SPDX-License-Identifier: BSD-3-Clause
// Elementwise losses and their gradients.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/sum_meta.h>
#include <ATen/ops/sum_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/nn/loss_ops.h"

namespace puone {
namespace {

using at::Tensor;
using c10::Scalar;

// The losses of all elements, into `out` or, if it is undefined, a new tensor.
Tensor launchLoss(
    const ElementwiseKernel& kernel,
    const Tensor& out,
    std::initializer_list<Tensor> inputs,
    c10::ArrayRef<Scalar> scalars = {}) {
  at::TensorIteratorConfig config;
  config.promote_inputs_to_common_dtype(true)
      .cast_common_dtype_to_outputs(true)
      .enforce_safe_casting_to_output(true)
      .allow_cpu_scalars(true)
      .add_owned_output(out);
  for (const Tensor& input : inputs) config.add_owned_const_input(input);
  auto iter = config.build();
  checkType("loss", iter.common_dtype(), kRealTypes);
  launchElementwise(kernel, iter, iter.common_dtype(), scalars);
  return iter.output();
}

Tensor& reduceInto(Tensor& out, const Tensor& losses, int64_t reduction) {
  if (reduction == at::Reduction::Mean) {
    return at::_ops::mean_out::call(losses, c10::OptionalIntArrayRef(), false, {}, out);
  }
  return at::_ops::sum_IntList_out::call(losses, c10::OptionalIntArrayRef(), false, {}, out);
}

// What the gradient of one element is multiplied with.
double reductionFactor(const Tensor& self, int64_t reduction) {
  return reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(self.numel()) : 1.0;
}

struct MseLoss : at::meta::structured_mse_loss {
  void impl(const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) {
    if (reduction == at::Reduction::None) {
      checkType("mse_loss", common_dtype(), kRealTypes);
      return launchElementwise(kernel::mse_loss, *this, common_dtype());
    }
    Tensor result = out;
    reduceInto(result, launchLoss(kernel::mse_loss, {}, {self, target}), reduction);
  }
};

struct SmoothL1Loss : at::meta::structured_smooth_l1_loss {
  void impl(
      const Tensor& self, const Tensor& target, int64_t reduction, double beta, const Tensor& out) {
    if (reduction == at::Reduction::None) {
      checkType("smooth_l1_loss", common_dtype(), kRealTypes);
      return launchElementwise(kernel::smooth_l1_loss, *this, common_dtype(), {beta});
    }
    Tensor result = out;
    reduceInto(result, launchLoss(kernel::smooth_l1_loss, {}, {self, target}, {beta}), reduction);
  }
};

Tensor& mseLossBackwardOut(
    const Tensor& gradient,
    const Tensor& self,
    const Tensor& target,
    int64_t reduction,
    Tensor& out) {
  const double factor = 2 * reductionFactor(self, reduction);
  launchLoss(kernel::mse_loss_backward, out, {self, target, gradient}, {factor});
  return out;
}
Tensor mseLossBackward(
    const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
  Tensor out = newResult({0}, {}, self.options());
  return mseLossBackwardOut(gradient, self, target, reduction, out);
}

Tensor& smoothL1LossBackwardOut(
    const Tensor& gradient,
    const Tensor& self,
    const Tensor& target,
    int64_t reduction,
    double beta,
    Tensor& out) {
  const double factor = reductionFactor(self, reduction);
  launchLoss(kernel::smooth_l1_loss_backward, out, {self, target, gradient}, {factor, beta});
  return out;
}

Tensor& huberLossBackwardOut(
    const Tensor& gradient,
    const Tensor& self,
    const Tensor& target,
    int64_t reduction,
    double delta,
    Tensor& out) {
  const double factor = reductionFactor(self, reduction);
  launchLoss(kernel::huber_loss_backward, out, {self, target, gradient}, {factor, delta});
  return out;
}

Tensor& huberLossOut(
    const Tensor& self, const Tensor& target, int64_t reduction, double delta, Tensor& out) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  if (reduction == at::Reduction::None) {
    launchLoss(kernel::huber_loss, out, {self, target}, {delta});
    return out;
  }
  return reduceInto(out, launchLoss(kernel::huber_loss, {}, {self, target}, {delta}), reduction);
}
Tensor huberLoss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  Tensor out = newResult({0}, {}, self.options());
  return huberLossOut(self, target, reduction, delta, out);
}

// No weight is a weight of 1, an operand of one element.
Tensor weightOf(const std::optional<Tensor>& weight, const Tensor& self) {
  if (weight && weight->defined()) return *weight;
  Tensor one = at::detail::empty_cpu({}, self.options().device(c10::kCPU));
  return one.fill_(1);
}

Tensor& binaryCrossEntropyOut(
    const Tensor& self,
    const Tensor& target,
    const std::optional<Tensor>& weight,
    int64_t reduction,
    Tensor& out) {
  const std::initializer_list<Tensor> inputs{self, target, weightOf(weight, self)};
  if (reduction == at::Reduction::None) {
    launchLoss(kernel::binary_cross_entropy, out, inputs);
    return out;
  }
  return reduceInto(out, launchLoss(kernel::binary_cross_entropy, {}, inputs), reduction);
}
Tensor binaryCrossEntropy(
    const Tensor& self,
    const Tensor& target,
    const std::optional<Tensor>& weight,
    int64_t reduction) {
  Tensor out = newResult({0}, {}, self.options());
  return binaryCrossEntropyOut(self, target, weight, reduction, out);
}

Tensor& binaryCrossEntropyBackwardOut(
    const Tensor& gradient,
    const Tensor& self,
    const Tensor& target,
    const std::optional<Tensor>& weight,
    int64_t reduction,
    Tensor& out) {
  const double factor = reductionFactor(self, reduction);
  launchLoss(
      kernel::binary_cross_entropy_backward,
      out,
      {self, target, gradient, weightOf(weight, self)},
      {factor});
  return out;
}
Tensor binaryCrossEntropyBackward(
    const Tensor& gradient,
    const Tensor& self,
    const Tensor& target,
    const std::optional<Tensor>& weight,
    int64_t reduction) {
  Tensor out = newResult({0}, {}, self.options());
  return binaryCrossEntropyBackwardOut(gradient, self, target, weight, reduction, out);
}

} // namespace
} // namespace puone

#include "aten/nn/loss_registrations.inc"
