// SPDX-License-Identifier: BSD-3-Clause
// Convolution. torch hands a PrivateUse1 device the two "overrideable" operators, and convolves
// complex numbers by parts.
//
// A convolution takes a "wide" tensor to a "narrow" one (a stride makes it so), through a weight of
// [narrow channels, wide channels per group, taps]. A transposed convolution goes the other way, as
// does the gradient of a convolution, through the same weight.
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>

#include "aten/conv/convolution_ops.h"
#include "aten/core/gradient.h"
#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/core/output.h"
#include "aten/core/registration.h"
#include "aten/core/tf32.h"
#include "kernels/args/convolution.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::IntArrayRef;

// What the weight slides by.
struct Steps {
  IntArrayRef stride;
  IntArrayRef padding;
  IntArrayRef dilation;
};

// The last `to.size()` dimensions count; those a tensor does not have are of size or step `absent`.
void alignRight(int64_t (&to)[3], IntArrayRef from, int64_t absent) {
  std::fill(to, to + 3, absent);
  std::copy(from.begin(), from.end(), to + 3 - from.size());
}

IntArrayRef spatial(const Tensor& tensor) {
  return tensor.sizes().slice(2);
}

// From positions in the narrow tensor to elements of the wide one.
puone_window windowOnWide(
    const Tensor& narrow, const Tensor& wide, const Tensor& weight, const Steps& steps) {
  puone_window window{};
  alignRight(window.positions, spatial(narrow), 1);
  alignRight(window.source, spatial(wide), 1);
  alignRight(window.taps, spatial(weight), 1);
  alignRight(window.position_step, steps.stride, 1);
  alignRight(window.offset, steps.padding, 0);
  alignRight(window.tap_step, steps.dilation, 1);
  for (int64_t& offset : window.offset) offset = -offset;
  return window;
}

// A convolution: each position of the result looks at every tap.
void launchToNarrow(puone_convolution_args& args, const Tensor& narrow, const Tensor& wide) {
  alignRight(args.out_position_strides, narrow.strides().slice(2), 0);
  launchKernel(kernel::convolution, args, getCurrentStream(wide.device().index()));
}

// The transposed one: position w of the wide tensor looks at position p of the narrow one through
// tap t if w = p * stride - padding + t * dilation. So positions with the same remainder modulo the
// stride look through the same taps, an arithmetic progression of them: for each remainder there is
// a plain convolution.
void takePhase(puone_convolution_args& args, int d, int64_t remainder, const Tensor& wide) {
  puone_window& window = args.window;
  const int64_t stride = window.position_step[d];
  const int64_t dilation = window.tap_step[d];
  const int64_t padding = -window.offset[d];
  const int64_t every = stride / std::gcd(stride, dilation);
  const int64_t taps = window.taps[d];
  int64_t first = 0;
  while (first < taps && (remainder + padding - first * dilation) % stride != 0) ++first;
  window.taps[d] = first < taps ? (taps - first + every - 1) / every : 0;
  std::swap(window.positions[d], window.source[d]);
  window.positions[d] = (window.positions[d] - remainder + stride - 1) / stride;
  window.position_step[d] = 1;
  window.offset[d] = first < taps ? (remainder + padding - first * dilation) / stride : 0;
  window.tap_step[d] = -every * dilation / stride;
  args.weight = static_cast<char*>(args.weight) +
                (first < taps ? first * args.weight_tap_strides[d] * wide.itemsize() : 0);
  args.weight_tap_strides[d] *= every;
  args.out =
      static_cast<char*>(args.out) + remainder * args.out_position_strides[d] * wide.itemsize();
  args.out_position_strides[d] *= stride;
}

void launchToWide(const puone_convolution_args& all, const Tensor& wide) {
  // A remainder has positions if it is less than the size.
  int64_t remainders_of[3];
  for (int d = 0; d < 3; ++d) {
    remainders_of[d] = std::min(all.window.position_step[d], all.window.source[d]);
  }
  for (int64_t i = 0; i < remainders_of[0] * remainders_of[1] * remainders_of[2]; ++i) {
    puone_convolution_args args = all;
    alignRight(args.out_position_strides, wide.strides().slice(2), 0);
    const int64_t remainders[3] = {
        i / (remainders_of[1] * remainders_of[2]),
        i / remainders_of[2] % remainders_of[1],
        i % remainders_of[2]};
    for (int d = 0; d < 3; ++d) takePhase(args, d, remainders[d], wide);
    launchKernel(kernel::convolution, args, getCurrentStream(wide.device().index()));
  }
}

// result = bias + what the weight makes of source; contiguous tensors.
void launchConvolution(
    const Tensor& result,
    const Tensor& source,
    const Tensor& weight,
    const Tensor& bias,
    const Steps& steps,
    bool to_narrow,
    int64_t groups) {
  if (result.numel() == 0) return;
  const int64_t narrow_channels = weight.size(0) / groups;
  const int64_t wide_channels = weight.size(1);
  puone_convolution_args args{};
  args.dtype = *kernelDtype(result.scalar_type());
  args.allow_tf32 = allowsTf32(args.dtype, at::Float32Op::CONV) ? 1 : 0;
  args.batch = result.size(0);
  args.groups = groups;
  args.rows = to_narrow ? narrow_channels : wide_channels;
  args.channels = to_narrow ? wide_channels : narrow_channels;
  args.window =
      windowOnWide(to_narrow ? result : source, to_narrow ? source : result, weight, steps);
  args.weight_group_stride = narrow_channels * weight.stride(0);
  args.weight_row_stride = weight.stride(to_narrow ? 0 : 1);
  args.weight_channel_stride = weight.stride(to_narrow ? 1 : 0);
  alignRight(args.weight_tap_strides, weight.strides().slice(2), 0);
  args.out_row_stride = result.stride(1);
  args.out = outputData(result);
  args.source = inputData(source);
  args.weight = inputData(weight);
  args.bias = inputData(bias);
  if (to_narrow) {
    launchToNarrow(args, result, source);
  } else {
    launchToWide(args, result);
  }
}

void launchWeightGradient(
    const Tensor& result,
    const Tensor& narrow,
    const Tensor& wide,
    const puone_window& window,
    int64_t groups) {
  if (result.numel() == 0) return;
  puone_convolution_weight_args args{};
  args.dtype = *kernelDtype(result.scalar_type());
  args.allow_tf32 = allowsTf32(args.dtype, at::Float32Op::CONV) ? 1 : 0;
  args.batch = narrow.size(0);
  args.groups = groups;
  args.rows = result.size(0) / groups;
  args.channels = result.size(1);
  args.window = window;
  args.out = outputData(result);
  args.left = inputData(narrow);
  args.source = inputData(wide);
  launchKernel(kernel::convolution_weight, args, getCurrentStream(result.device().index()));
}

std::vector<int64_t> resultSizes(
    const Tensor& input,
    const Tensor& weight,
    const Steps& steps,
    bool transposed,
    IntArrayRef output_padding,
    int64_t groups) {
  std::vector<int64_t> sizes{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  for (size_t d = 0; d + 2 < static_cast<size_t>(input.dim()); ++d) {
    TORCH_CHECK(
        spatial(weight)[d] > 0,
        "kernel size should be greater than zero, but the weight has the sizes ",
        weight.sizes());
    TORCH_CHECK(
        steps.dilation[d] > 0,
        "non-positive dilation is not supported, but it is ",
        IntArrayRef(steps.dilation));
    TORCH_CHECK(
        !transposed || output_padding[d] < std::max(steps.stride[d], steps.dilation[d]),
        "output padding must be smaller than either stride or dilation, but it is ",
        output_padding,
        ", the stride ",
        IntArrayRef(steps.stride),
        " and the dilation ",
        IntArrayRef(steps.dilation));
    const int64_t in = spatial(input)[d];
    const int64_t reach = steps.dilation[d] * (spatial(weight)[d] - 1) - 2 * steps.padding[d];
    sizes.push_back(
        transposed ? (in - 1) * steps.stride[d] + reach + output_padding[d] + 1
                   : (in - reach - 1) / steps.stride[d] + 1);
    TORCH_CHECK(
        sizes.back() > 0,
        "an input of the sizes ",
        input.sizes(),
        " would give a result of ",
        sizes.back(),
        " positions: Output size is too small");
  }
  return sizes;
}

void checkType(const Tensor& input) {
  const c10::ScalarType type = input.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      isComputable(type) && !c10::isComplexType(type) && type != c10::kBool &&
          type != c10::kUInt16 && type != c10::kUInt32,
      "\"convolution\" not implemented for '",
      type,
      "'");
}

void checkSame(const Tensor& input, const Tensor& other, const char* name) {
  TORCH_CHECK(
      input.device() == other.device() && input.scalar_type() == other.scalar_type(),
      "Input type (",
      input.toString(),
      ") and ",
      name,
      " type (",
      other.toString(),
      ") should be the same");
}

Tensor convolution(
    const Tensor& input,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool transposed,
    IntArrayRef output_padding,
    int64_t groups) {
  checkType(input);
  checkSame(input, weight, "weight");
  const Tensor addend = bias.value_or(Tensor());
  if (addend.defined()) checkSame(input, addend, "bias");
  const Steps steps{stride, padding, dilation};
  const Tensor result = at::empty(
      resultSizes(input, weight, steps, transposed, output_padding, groups), input.options());
  launchConvolution(
      result,
      input.contiguous(),
      weight.contiguous(),
      addend.defined() ? addend.contiguous() : addend,
      steps,
      !transposed,
      groups);
  return result.contiguous(input.suggest_memory_format());
}

std::tuple<Tensor, Tensor, Tensor> convolutionBackward(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool transposed,
    IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> output_mask) {
  checkSame(input, weight, "weight");
  checkSame(input, grad_output, "gradient");
  const Steps steps{stride, padding, dilation};
  const auto sizes = resultSizes(input, weight, steps, transposed, output_padding, groups);
  checkGradientSizes(grad_output, sizes);
  const Tensor dense_grad = grad_output.contiguous();
  const Tensor& narrow = transposed ? input : dense_grad;
  const Tensor& wide = transposed ? dense_grad : input;
  Tensor grad_input;
  Tensor grad_weight;
  Tensor grad_bias;
  if (output_mask[0]) {
    grad_input = at::empty(input.sizes(), input.options());
    launchConvolution(grad_input, dense_grad, weight.contiguous(), {}, steps, transposed, groups);
    grad_input = grad_input.contiguous(input.suggest_memory_format());
  }
  if (output_mask[1]) {
    grad_weight = at::empty(weight.sizes(), weight.options());
    launchWeightGradient(
        grad_weight,
        narrow.contiguous(),
        wide.contiguous(),
        windowOnWide(narrow, wide, weight, steps),
        groups);
  }
  if (output_mask[2]) {
    std::vector<int64_t> dims(static_cast<size_t>(grad_output.dim() - 1));
    for (size_t d = 1; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d) + 1;
    grad_bias = at::sum(dense_grad, dims);
  }
  return {grad_input, grad_weight, grad_bias};
}

// The CPU has no operator of these names: theirs is the one that PyTorch splits into them.
Tensor convolutionOnHost(
    const Tensor& input,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool transposed,
    IntArrayRef output_padding,
    int64_t groups) {
  return at::native::call_fallback_fn<&cpuFallback, at::_ops::convolution>::call(
      input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<Tensor, Tensor, Tensor> convolutionBackwardOnHost(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool transposed,
    IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> output_mask) {
  const int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  return at::native::call_fallback_fn<&cpuFallback, at::_ops::convolution_backward>::call(
      grad_output,
      input,
      weight,
      at::OptionalIntArrayRef(channels),
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      groups,
      output_mask);
}

} // namespace
} // namespace puone

#include "aten/conv/convolution_registrations.inc"
