// SPDX-License-Identifier: BSD-3-Clause
// Convolution. torch hands a PrivateUse1 device the two "overrideable" operators, and convolves
// complex numbers by parts.
//
// A convolution takes a "wide" tensor to a "narrow" one (a stride makes it so), through a weight of
// [narrow channels, wide channels per group, taps]. A transposed convolution goes the other way, as
// does the gradient of a convolution, through the same weight.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

#include <algorithm>

#include "aten/operands.h"
#include "kernels/args/convolution.h"
#include "runtime/kernel.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::IntArrayRef;

const Kernel kConvolution{"convolution"};
const Kernel kConvolutionWeight{"convolution_weight"};

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
  alignRight(window.divisor, {}, 1);
  for (int64_t& offset : window.offset) offset = -offset;
  return window;
}

// The inverse: from positions in the wide tensor to elements of the narrow one.
puone_window windowOnNarrow(
    const Tensor& narrow, const Tensor& wide, const Tensor& weight, const Steps& steps) {
  puone_window window = windowOnWide(narrow, wide, weight, steps);
  std::swap(window.positions, window.source);
  std::swap(window.position_step, window.divisor);
  for (int64_t& offset : window.offset) offset = -offset;
  for (int64_t& step : window.tap_step) step = -step;
  return window;
}

// result = bias + what the weight makes of source; contiguous tensors.
void launchConvolution(
    const Tensor& result,
    const Tensor& source,
    const Tensor& weight,
    const Tensor& bias,
    const puone_window& window,
    bool to_narrow,
    int64_t groups) {
  if (result.numel() == 0) return;
  const int64_t taps = c10::multiply_integers(spatial(weight));
  const int64_t narrow_channels = weight.size(0) / groups;
  const int64_t wide_channels = weight.size(1);
  puone_convolution_args args{};
  args.dtype = *kernelDtype(result.scalar_type());
  args.batch = result.size(0);
  args.groups = groups;
  args.rows = to_narrow ? narrow_channels : wide_channels;
  args.channels = to_narrow ? wide_channels : narrow_channels;
  args.window = window;
  args.weight_group_stride = narrow_channels * wide_channels * taps;
  args.weight_row_stride = to_narrow ? wide_channels * taps : taps;
  args.weight_channel_stride = to_narrow ? taps : wide_channels * taps;
  args.out = result.data_ptr();
  args.source = source.data_ptr();
  args.weight = weight.data_ptr();
  if (bias.defined()) args.bias = bias.data_ptr();
  kConvolution.launch(args, getCurrentStream(result.device().index()));
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
  args.batch = narrow.size(0);
  args.groups = groups;
  args.rows = result.size(0) / groups;
  args.channels = result.size(1);
  args.window = window;
  args.out = result.data_ptr();
  args.left = narrow.data_ptr();
  args.source = wide.data_ptr();
  kConvolutionWeight.launch(args, getCurrentStream(result.device().index()));
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
    const int64_t in = spatial(input)[d];
    const int64_t reach = steps.dilation[d] * (spatial(weight)[d] - 1) - 2 * steps.padding[d];
    sizes.push_back(
        transposed ? (in - 1) * steps.stride[d] + reach + output_padding[d] + 1
                   : (in - reach - 1) / steps.stride[d] + 1);
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
  const puone_window window = transposed ? windowOnNarrow(input, result, weight, steps)
                                         : windowOnWide(result, input, weight, steps);
  launchConvolution(
      result,
      input.contiguous(),
      weight.contiguous(),
      addend.defined() ? addend.contiguous() : addend,
      window,
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
    IntArrayRef /*output_padding*/,
    int64_t groups,
    std::array<bool, 3> output_mask) {
  checkSame(input, weight, "weight");
  checkSame(input, grad_output, "gradient");
  const Steps steps{stride, padding, dilation};
  const Tensor dense_grad = grad_output.contiguous();
  const Tensor& narrow = transposed ? input : dense_grad;
  const Tensor& wide = transposed ? dense_grad : input;
  Tensor grad_input;
  Tensor grad_weight;
  Tensor grad_bias;
  if (output_mask[0]) {
    grad_input = at::empty(input.sizes(), input.options());
    const puone_window window = transposed ? windowOnWide(narrow, wide, weight, steps)
                                           : windowOnNarrow(narrow, wide, weight, steps);
    launchConvolution(grad_input, dense_grad, weight.contiguous(), {}, window, transposed, groups);
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

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolutionBackward));
}

} // namespace puone
