// SPDX-License-Identifier: BSD-3-Clause
// Convolution. torch hands a PrivateUse1 device the two "overrideable" operators, which have no CPU
// kernel, so the fallback calls what they stand for.
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/library.h>

#include "aten/fallback.h"

namespace puone {
namespace {

using at::Tensor;

Tensor convolution(
    const Tensor& input,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    c10::IntArrayRef stride,
    c10::IntArrayRef padding,
    c10::IntArrayRef dilation,
    bool transposed,
    c10::IntArrayRef output_padding,
    int64_t groups) {
  countFallback("aten::convolution_overrideable");
  const auto host = copyToHost({input, weight, bias.value_or(Tensor())});
  const Tensor result = at::convolution(
      host[0], host[1], host[2], stride, padding, dilation, transposed, output_padding, groups);
  return copyToDevice(result, input.device());
}

std::tuple<Tensor, Tensor, Tensor> convolutionBackward(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    c10::IntArrayRef stride,
    c10::IntArrayRef padding,
    c10::IntArrayRef dilation,
    bool transposed,
    c10::IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> output_mask) {
  countFallback("aten::convolution_backward_overrideable");
  const auto host = copyToHost({grad_output, input, weight});
  const int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  const auto [grad_input, grad_weight, grad_bias] = at::convolution_backward(
      host[0],
      host[1],
      host[2],
      c10::IntArrayRef(channels),
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      groups,
      output_mask);
  const c10::Device device = input.device();
  return {
      copyToDevice(grad_input, device),
      copyToDevice(grad_weight, device),
      copyToDevice(grad_bias, device)};
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolutionBackward));
}

} // namespace puone
