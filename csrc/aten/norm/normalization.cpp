// SPDX-License-Identifier: BSD-3-Clause
// Layer norm, group norm, batch norm and weight norm. Statistics have the type of the parameters,
// as on the CPU: the input's, or float beside a half input.
#include <ATen/native/layer_norm.h>
#include <ATen/ops/_weight_norm_differentiable_backward_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/norm_except_dim_ops.h>
#include <torch/library.h>

#include <array>
#include <tuple>

#include "aten/core/elementwise.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/norm/normalization_ops.h"
#include "aten/reduce/reduction.h"
#include "kernels/args/normalization.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::ScalarType;
using OptionalTensor = std::optional<Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
using Mask = std::array<bool, 3>;

// The type of the parameters, which are on the input's device: that of the first that there is.
ScalarType parameterType(const Tensor& input, std::initializer_list<Tensor> parameters) {
  checkType("normalization", input.scalar_type(), kRealTypes);
  for (const Tensor& parameter : parameters) {
    TORCH_CHECK(
        !parameter.defined() || parameter.device() == input.device(),
        "Expected all tensors to be on the same device, but got tensors on ",
        input.device(),
        " and a parameter on another device in normalization");
  }
  for (const Tensor& parameter : parameters) {
    if (!parameter.defined()) continue;
    const ScalarType type = parameter.scalar_type();
    const bool half =
        input.scalar_type() == ScalarType::Half || input.scalar_type() == ScalarType::BFloat16;
    TORCH_CHECK(
        type == input.scalar_type() || (half && type == ScalarType::Float),
        "mixed dtype (CPU): expect parameter to have scalar type of Float");
    return type;
  }
  return input.scalar_type();
}

Tensor newLike(const Tensor& input, c10::IntArrayRef sizes, ScalarType type) {
  return newResult(sizes, {}, input.options().dtype(type));
}

puone_group_norm_args groupNormArgs(
    const Tensor& in,
    const Tensor& weight,
    const Tensor& bias,
    const Tensor& mean,
    const Tensor& rstd,
    ScalarType parameters) {
  puone_group_norm_args args{};
  args.dtype = *kernelDtype(in.scalar_type());
  args.parameter_dtype = *kernelDtype(parameters);
  args.statistics_dtype = *kernelDtype(mean.scalar_type());
  args.in = inputData(in);
  args.weight = inputData(weight);
  args.bias = inputData(bias);
  // The forward kernel writes them, to new tensors; the backward kernel reads them.
  args.mean = inputData(mean);
  args.rstd = inputData(rstd);
  return args;
}

void launchGroupNorm(puone_group_norm_args& args, const Tensor& in, const Tensor& out) {
  args.out = outputData(out);
  if (args.rows * args.groups > 0)
    launchKernel(kernel::group_norm, args, getCurrentStream(in.device().index()));
}

// The gradients that the mask asks for. `sums`: whether the kernel needs its workspace.
ThreeTensors launchGroupNormBackward(
    puone_group_norm_args& args,
    const Tensor& grad,
    const Tensor& in,
    ScalarType parameters,
    c10::IntArrayRef parameter_sizes,
    Mask mask) {
  ThreeTensors result;
  auto& [grad_in, grad_weight, grad_bias] = result;
  if (mask[0]) grad_in = newLike(in, in.sizes(), in.scalar_type());
  if (mask[1]) grad_weight = newLike(in, parameter_sizes, parameters);
  if (mask[2]) grad_bias = newLike(in, parameter_sizes, parameters);
  args.out = inputData(grad);
  args.grad_in = outputData(grad_in);
  args.grad_weight = outputData(grad_weight);
  args.grad_bias = outputData(grad_bias);
  Tensor sums;
  if (args.inner != 1 || args.groups != 1) {
    sums = newLike(in, {2, args.rows * args.groups * args.channels}, computeType(in.scalar_type()));
  }
  args.sums = outputData(sums);
  if (args.channels > 0)
    launchKernel(kernel::group_norm_backward, args, getCurrentStream(in.device().index()));
  return result;
}

ThreeTensors layerNorm(
    const Tensor& input,
    c10::IntArrayRef normalized_shape,
    const OptionalTensor& weight_given,
    const OptionalTensor& bias_given,
    double epsilon) {
  const Tensor weight = contiguousOrNone(weight_given), bias = contiguousOrNone(bias_given);
  const auto [rows, size] =
      at::native::_check_layer_norm_inputs(input, normalized_shape, weight, bias);
  const ScalarType parameters = parameterType(input, {weight, bias});
  const Tensor in = input.contiguous();
  auto sizes = c10::DimVector(input.sizes());
  std::fill(sizes.end() - static_cast<int64_t>(normalized_shape.size()), sizes.end(), 1);
  ThreeTensors result{
      newLike(in, in.sizes(), in.scalar_type()),
      newLike(in, sizes, parameters),
      newLike(in, sizes, parameters)};
  const auto& [out, mean, rstd] = result;
  puone_group_norm_args args = groupNormArgs(in, weight, bias, mean, rstd, parameters);
  args.rows = rows;
  args.groups = args.inner = 1;
  args.channels = size;
  args.epsilon = epsilon;
  launchGroupNorm(args, in, out);
  return result;
}

// What a backward pass is given: a gradient of the input's sizes, and a mean and a deviation of
// each group.
void checkSaved(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& mean,
    const Tensor& rstd,
    int64_t groups) {
  TORCH_CHECK(
      grad.sizes() == input.sizes() && mean.numel() == groups && rstd.numel() == groups,
      "Expected a gradient like the input, and the mean and rstd of ",
      groups,
      " groups, but got sizes of ",
      grad.sizes(),
      ", ",
      input.sizes(),
      ", ",
      mean.sizes(),
      " and ",
      rstd.sizes());
}

ThreeTensors layerNormBackward(
    const Tensor& grad,
    const Tensor& input,
    c10::IntArrayRef normalized_shape,
    const Tensor& mean_given,
    const Tensor& rstd_given,
    const OptionalTensor& weight_given,
    const OptionalTensor& bias_given,
    Mask mask) {
  const Tensor weight = contiguousOrNone(weight_given), bias = contiguousOrNone(bias_given);
  const auto [rows, size] =
      at::native::_check_layer_norm_inputs(input, normalized_shape, weight, bias);
  checkSaved(grad, input, mean_given, rstd_given, rows);
  const ScalarType parameters = parameterType(input, {weight, bias});
  const Tensor in = input.contiguous(), dy = grad.contiguous();
  const Tensor mean = mean_given.contiguous(), rstd = rstd_given.contiguous();
  puone_group_norm_args args = groupNormArgs(in, weight, {}, mean, rstd, parameters);
  args.rows = rows;
  args.groups = args.inner = 1;
  args.channels = size;
  return launchGroupNormBackward(args, dy, in, parameters, normalized_shape, mask);
}

void checkGroupNorm(
    const Tensor& input,
    const Tensor& weight,
    const Tensor& bias,
    int64_t rows,
    int64_t channels,
    int64_t inner,
    int64_t groups) {
  TORCH_CHECK(
      input.numel() == rows * channels * inner,
      "Expected an input of ",
      rows,
      " x ",
      channels,
      " x ",
      inner,
      " elements, but got ",
      input.sizes());
  TORCH_CHECK(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  TORCH_CHECK(
      channels % groups == 0,
      "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
      input.sizes(),
      " and num_groups=",
      groups);
  for (const auto& [name, parameter] : {std::pair("weight", weight), std::pair("bias", bias)}) {
    TORCH_CHECK(
        !parameter.defined() || (parameter.dim() == 1 && parameter.numel() == channels),
        "Expected ",
        name,
        " to be a vector of size equal to the number of channels in input, but got ",
        name,
        " of shape ",
        parameter.defined() ? parameter.sizes() : c10::IntArrayRef(),
        " and input of shape ",
        input.sizes());
  }
}

ThreeTensors groupNorm(
    const Tensor& input,
    const OptionalTensor& weight_given,
    const OptionalTensor& bias_given,
    int64_t rows,
    int64_t channels,
    int64_t inner,
    int64_t groups,
    double epsilon) {
  const Tensor weight = contiguousOrNone(weight_given), bias = contiguousOrNone(bias_given);
  checkGroupNorm(input, weight, bias, rows, channels, inner, groups);
  const ScalarType parameters = parameterType(input, {weight, bias});
  const Tensor in = input.contiguous();
  const Tensor out = newLike(in, in.sizes(), in.scalar_type());
  const Tensor mean = newLike(in, {rows, groups}, parameters);
  const Tensor rstd = newLike(in, {rows, groups}, parameters);
  puone_group_norm_args args = groupNormArgs(in, weight, bias, mean, rstd, parameters);
  args.rows = rows;
  args.groups = groups;
  args.channels = channels / groups;
  args.inner = inner;
  args.epsilon = epsilon;
  launchGroupNorm(args, in, out);
  return {out.contiguous(input.suggest_memory_format()), mean, rstd};
}

ThreeTensors groupNormBackward(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& mean_given,
    const Tensor& rstd_given,
    const OptionalTensor& weight_given,
    int64_t rows,
    int64_t channels,
    int64_t inner,
    int64_t groups,
    Mask mask) {
  const Tensor weight = contiguousOrNone(weight_given);
  checkGroupNorm(input, weight, {}, rows, channels, inner, groups);
  checkSaved(grad, input, mean_given, rstd_given, rows * groups);
  const ScalarType parameters =
      weight.defined() ? parameterType(input, {weight}) : mean_given.scalar_type();
  const Tensor in = input.contiguous(), dy = grad.contiguous();
  const Tensor mean = mean_given.contiguous(), rstd = rstd_given.contiguous();
  puone_group_norm_args args = groupNormArgs(in, weight, {}, mean, rstd, parameters);
  args.rows = rows;
  args.groups = groups;
  args.channels = channels / groups;
  args.inner = inner;
  return launchGroupNormBackward(args, dy, in, parameters, {channels}, mask);
}

// An input that batch norm reads as outer x channels x inner elements, without a copy if it is
// channels last.
struct BatchNormInput {
  explicit BatchNormInput(const Tensor& input)
      : last(
            input.dim() == 4 && !input.is_contiguous() &&
            input.is_contiguous(at::MemoryFormat::ChannelsLast)),
        tensor(last ? input : input.contiguous()),
        channels(input.size(1)) {
    const int64_t others = channels > 0 ? input.numel() / channels : 0;
    const int64_t batch = input.size(0);
    inner = last || batch == 0 ? 1 : others / batch;
    outer = inner > 0 ? others / inner : 0;
  }

  // Another tensor in the same layout.
  Tensor like(const Tensor& other) const {
    return other.contiguous(last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  }
  Tensor makeLike() const {
    return newResult(tensor.sizes(), tensor.strides(), tensor.options());
  }

  bool last;
  Tensor tensor;
  int64_t channels, inner, outer;
};

puone_batch_norm_args batchNormArgs(
    const BatchNormInput& in, ScalarType parameters, bool training, double epsilon) {
  puone_batch_norm_args args{};
  args.dtype = *kernelDtype(in.tensor.scalar_type());
  args.parameter_dtype = *kernelDtype(parameters);
  args.training = training;
  args.outer = in.outer;
  args.channels = in.channels;
  args.inner = in.inner;
  args.epsilon = epsilon;
  args.in = inputData(in.tensor);
  return args;
}

// The mean and the variance of each channel: variances, then means.
Tensor channelMoments(const Tensor& input) {
  const ScalarType type = computeType(input.scalar_type());
  const Tensor moments = newLike(input, {2, input.size(1)}, type);
  DimMask reduced = dimMask(std::nullopt, input);
  reduced.reset(1);
  launchReduction(
      kernel::moments, type, input, reduced, {moments.select(0, 0), moments.select(0, 1)});
  return moments;
}

void checkOfChannels(const char* name, const OptionalTensor& given, int64_t channels) {
  TORCH_CHECK(
      !given || !given->defined() || (given->dim() == 1 && given->numel() == channels),
      name,
      " must be a vector of ",
      channels,
      " elements, one for each channel, but has the sizes ",
      given && given->defined() ? given->sizes() : c10::IntArrayRef());
}

ThreeTensors batchNorm(
    const Tensor& input,
    const OptionalTensor& weight_given,
    const OptionalTensor& bias_given,
    const OptionalTensor& running_mean_given,
    const OptionalTensor& running_var_given,
    bool training,
    double momentum,
    double epsilon) {
  checkOfChannels("weight", weight_given, input.size(1));
  checkOfChannels("bias", bias_given, input.size(1));
  checkOfChannels("running_mean", running_mean_given, input.size(1));
  checkOfChannels("running_var", running_var_given, input.size(1));
  const Tensor weight = contiguousOrNone(weight_given), bias = contiguousOrNone(bias_given);
  const Tensor running_mean = contiguousOrNone(running_mean_given);
  const Tensor running_var = contiguousOrNone(running_var_given);
  const ScalarType parameters = parameterType(input, {weight, bias, running_mean, running_var});
  const BatchNormInput in(input);
  const int64_t saved = training ? in.channels : 0;
  ThreeTensors result{
      in.makeLike(), newLike(input, {saved}, parameters), newLike(input, {saved}, parameters)};
  const auto& [out, save_mean, save_invstd] = result;
  if (input.numel() == 0) return result;
  const Tensor affine = newLike(input, {2, in.channels}, computeType(input.scalar_type()));
  Tensor statistics;
  if (training) statistics = channelMoments(input);

  puone_batch_norm_args args = batchNormArgs(in, parameters, training, epsilon);
  args.momentum = momentum;
  args.out = outputData(out);
  args.weight = inputData(weight);
  args.bias = inputData(bias);
  // Training updates the running statistics.
  args.running_mean = training ? outputData(running_mean) : inputData(running_mean);
  args.running_var = training ? outputData(running_var) : inputData(running_var);
  args.save_mean = outputData(save_mean);
  args.save_invstd = outputData(save_invstd);
  args.statistics = inputData(statistics);
  args.affine = outputData(affine);
  const Stream stream = getCurrentStream(input.device().index());
  requireType(kernel::batch_norm_apply, input.scalar_type()); // before statistics are updated
  launchKernel(kernel::batch_norm_scale, args, stream);
  launchKernel(kernel::batch_norm_apply, args, stream);
  if (training && running_mean.defined() && !running_mean_given->is_same(running_mean)) {
    running_mean_given->copy_(running_mean);
  }
  if (training && running_var.defined() && !running_var_given->is_same(running_var)) {
    running_var_given->copy_(running_var);
  }
  return result;
}

ThreeTensors batchNormLegit(
    const Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    Tensor& running_mean,
    Tensor& running_var,
    bool training,
    double momentum,
    double epsilon) {
  return batchNorm(input, weight, bias, running_mean, running_var, training, momentum, epsilon);
}

ThreeTensors batchNormNoStats(
    const Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    bool training,
    double momentum,
    double epsilon) {
  return batchNorm(input, weight, bias, {}, {}, training, momentum, epsilon);
}

ThreeTensors batchNormBackward(
    const Tensor& grad,
    const Tensor& input,
    const OptionalTensor& weight_given,
    const OptionalTensor& running_mean_given,
    const OptionalTensor& running_var_given,
    const OptionalTensor& save_mean_given,
    const OptionalTensor& save_invstd_given,
    bool training,
    double epsilon,
    Mask mask) {
  TORCH_CHECK(
      grad.sizes() == input.sizes(),
      "Expected a gradient like the input, of the sizes ",
      input.sizes(),
      ", but got ",
      grad.sizes());
  checkOfChannels("weight", weight_given, input.size(1));
  checkOfChannels("mean", training ? save_mean_given : running_mean_given, input.size(1));
  checkOfChannels("variance", training ? save_invstd_given : running_var_given, input.size(1));
  const Tensor weight = contiguousOrNone(weight_given);
  const Tensor running_mean = contiguousOrNone(running_mean_given);
  const Tensor running_var = contiguousOrNone(running_var_given);
  const Tensor save_mean = contiguousOrNone(save_mean_given);
  const Tensor save_invstd = contiguousOrNone(save_invstd_given);
  const Tensor& mean = training ? save_mean : running_mean;
  const ScalarType parameters = parameterType(input, {weight, mean});
  const BatchNormInput in(input);
  const Tensor dy = in.like(grad);
  ThreeTensors result;
  auto& [grad_in, grad_weight, grad_bias] = result;
  if (mask[0]) grad_in = in.makeLike();
  if (mask[1]) grad_weight = newLike(input, {in.channels}, parameters);
  if (mask[2]) grad_bias = newLike(input, {in.channels}, parameters);
  if (in.channels == 0) return result;
  const Tensor sums = newLike(input, {2, in.channels}, computeType(input.scalar_type()));

  puone_batch_norm_args args = batchNormArgs(in, parameters, training, epsilon);
  args.out = inputData(dy);
  args.weight = inputData(weight);
  args.running_mean = inputData(running_mean);
  args.running_var = inputData(running_var);
  args.save_mean = inputData(save_mean);
  args.save_invstd = inputData(save_invstd);
  args.statistics = outputData(sums);
  args.grad_in = outputData(grad_in);
  args.grad_weight = outputData(grad_weight);
  args.grad_bias = outputData(grad_bias);
  const Stream stream = getCurrentStream(input.device().index());
  launchKernel(kernel::batch_norm_backward_sums, args, stream);
  if (mask[0] && input.numel() > 0) launchKernel(kernel::batch_norm_backward, args, stream);
  return result;
}

std::tuple<Tensor, Tensor> weightNorm(const Tensor& v, const Tensor& g, int64_t dim) {
  const Tensor norms = at::_ops::norm_except_dim::call(v, 2, dim);
  const Tensor scale = at::_ops::div_Tensor::call(g, norms);
  return {at::_ops::mul_Tensor::call(v, scale), norms};
}

std::tuple<Tensor, Tensor> weightNormBackward(
    const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms, int64_t dim) {
  return at::_ops::_weight_norm_differentiable_backward::call(grad, v, g, norms, dim);
}

} // namespace
} // namespace puone

#include "aten/norm/normalization_registrations.inc"
