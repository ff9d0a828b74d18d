// SPDX-License-Identifier: BSD-3-Clause
// The negative log likelihood of classes. Targets out of bounds are found by the kernel: the error
// arrives at the next synchronisation.
#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/nn/nll_loss_ops.h"
#include "kernels/args/normalization.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::ScalarType;
using OptionalTensor = std::optional<Tensor>;

// What a loss is computed of, in contiguous memory.
struct Inputs {
  Inputs(const Tensor& self, const Tensor& target_given, const Tensor& weight_given)
      : in(self.contiguous()),
        target(target_given.contiguous()),
        weight(weight_given.defined() ? weight_given.contiguous() : Tensor()) {
    checkType("nll_loss", self.scalar_type(), kRealTypes);
    TORCH_CHECK(
        target.scalar_type() == ScalarType::Long || target.scalar_type() == ScalarType::Byte,
        "expected scalar type Long or Byte but found ",
        target.scalar_type());
    TORCH_CHECK(
        !weight.defined() || weight.scalar_type() == self.scalar_type(),
        "expected scalar type ",
        self.scalar_type(),
        " but found ",
        weight.defined() ? weight.scalar_type() : self.scalar_type());
  }

  puone_nll_loss_args args(int64_t reduction, int64_t ignore_index) const {
    puone_nll_loss_args args{};
    args.dtype = *kernelDtype(in.scalar_type());
    args.target_dtype = *kernelDtype(target.scalar_type());
    args.reduction = static_cast<int32_t>(reduction);
    const bool batched = in.dim() > 1;
    args.batch = batched ? in.size(0) : 1;
    args.classes = in.dim() > 0 ? in.size(batched ? 1 : 0) : 1;
    args.inner = in.dim() > 2 ? in.size(2) * in.size(3) : 1;
    args.ignore_index = ignore_index;
    args.target = inputData(target);
    args.weight = inputData(weight);
    return args;
  }

  Tensor in, target, weight;
};

void launchForward(
    const Inputs& inputs,
    int64_t reduction,
    int64_t ignore_index,
    const Tensor& output,
    const Tensor& total_weight) {
  puone_nll_loss_args args = inputs.args(reduction, ignore_index);
  args.in = inputData(inputs.in);
  args.total_weight = outputData(total_weight);
  const ContiguousOutput result(output);
  args.output = result.data();
  launchKernel(kernel::nll_loss, args, getCurrentStream(inputs.in.device().index()));
  result.copyBack();
}

void launchBackward(
    const Inputs& inputs,
    const Tensor& grad,
    int64_t reduction,
    int64_t ignore_index,
    const Tensor& total_weight,
    const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  puone_nll_loss_args args = inputs.args(reduction, ignore_index);
  const Tensor from = grad.contiguous();
  args.grad_strides[0] = args.inner;
  args.grad_strides[1] = 1;
  args.in = inputData(from);
  args.total_weight = inputData(total_weight);
  const ContiguousOutput result(grad_input);
  result.tensor().zero_();
  args.output = result.data();
  launchKernel(kernel::nll_loss_backward, args, getCurrentStream(inputs.in.device().index()));
  result.copyBack();
}

Tensor tensorOf(at::OptionalTensorRef tensor) {
  return tensor.has_value() ? *tensor : Tensor();
}

struct NllLoss : at::meta::structured_nll_loss_forward {
  void impl(
      const Tensor& self,
      const Tensor& target,
      at::OptionalTensorRef weight,
      int64_t reduction,
      int64_t ignore_index,
      const Tensor& output,
      const Tensor& total_weight) {
    launchForward({self, target, tensorOf(weight)}, reduction, ignore_index, output, total_weight);
  }
};

struct NllLossBackward : at::meta::structured_nll_loss_backward {
  void impl(
      const Tensor& grad,
      const Tensor& self,
      const Tensor& target,
      at::OptionalTensorRef weight,
      int64_t reduction,
      int64_t ignore_index,
      const Tensor& total_weight,
      const Tensor& grad_input) {
    const Inputs inputs(self, target, tensorOf(weight));
    launchBackward(inputs, grad, reduction, ignore_index, total_weight, grad_input);
  }
};

void check2d(const Tensor& self, const Tensor& target, const Tensor& weight) {
  TORCH_CHECK(
      target.dim() == 3,
      "only batches of spatial targets supported (3D tensors) but got targets of dimension: ",
      target.dim());
  TORCH_CHECK(
      self.dim() == 4,
      "only batches of spatial inputs supported (4D tensors), but got input of dimension: ",
      self.dim());
  TORCH_CHECK(
      !weight.defined() || weight.numel() == self.size(1),
      "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(
      self.size(0) == target.size(0) && self.size(2) == target.size(1) &&
          self.size(3) == target.size(2),
      "size mismatch (got input: ",
      self.sizes(),
      " , target: ",
      target.sizes());
}

std::tuple<Tensor&, Tensor&> nllLoss2dOut(
    const Tensor& self,
    const Tensor& target,
    const OptionalTensor& weight_given,
    int64_t reduction,
    int64_t ignore_index,
    Tensor& output,
    Tensor& total_weight) {
  const Tensor weight = weight_given.value_or(Tensor());
  check2d(self, target, weight);
  at::native::resize_output(
      output, reduction == at::Reduction::None ? target.sizes() : c10::IntArrayRef());
  at::native::resize_output(total_weight, {});
  launchForward({self, target, weight}, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

std::tuple<Tensor, Tensor> nllLoss2d(
    const Tensor& self,
    const Tensor& target,
    const OptionalTensor& weight,
    int64_t reduction,
    int64_t ignore_index) {
  Tensor output = newResult({0}, {}, self.options());
  Tensor total_weight = newResult({}, {}, self.options());
  nllLoss2dOut(self, target, weight, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

Tensor& nllLoss2dBackwardOut(
    const Tensor& grad,
    const Tensor& self,
    const Tensor& target,
    const OptionalTensor& weight_given,
    int64_t reduction,
    int64_t ignore_index,
    const Tensor& total_weight,
    Tensor& grad_input) {
  const Tensor weight = weight_given.value_or(Tensor());
  check2d(self, target, weight);
  TORCH_CHECK(
      reduction == at::Reduction::None ? grad.sizes() == target.sizes() : grad.numel() == 1,
      "Expected a gradient ",
      reduction == at::Reduction::None ? "of the target's sizes" : "of one element",
      ", but got ",
      grad.sizes());
  TORCH_CHECK(
      total_weight.numel() == 1,
      "expected total_weight to be a single element tensor, got: ",
      total_weight.sizes());
  at::native::resize_output(grad_input, self.sizes());
  const Inputs inputs(self, target, weight);
  launchBackward(inputs, grad, reduction, ignore_index, total_weight, grad_input);
  return grad_input;
}

Tensor nllLoss2dBackward(
    const Tensor& grad,
    const Tensor& self,
    const Tensor& target,
    const OptionalTensor& weight,
    int64_t reduction,
    int64_t ignore_index,
    const Tensor& total_weight) {
  Tensor grad_input = newResult(self.sizes(), {}, self.options());
  return nllLoss2dBackwardOut(
      grad, self, target, weight, reduction, ignore_index, total_weight, grad_input);
}

} // namespace
} // namespace puone

#include "aten/nn/nll_loss_registrations.inc"
