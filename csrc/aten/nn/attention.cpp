// SPDX-License-Identifier: BSD-3-Clause
// Scaled dot product attention takes its path by device type. There is no fused kernel here, and
// the CPU's choice (which the fallback would return) is meant for CPU tensors: always take the math
// path.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include "aten/nn/attention_ops.h"

namespace puone {
namespace {

// at::SDPBackend::math
constexpr int64_t kMathPath = 0;

int64_t fusedSdpChoice(
    const at::Tensor& /*query*/,
    const at::Tensor& /*key*/,
    const at::Tensor& /*value*/,
    const std::optional<at::Tensor>& /*attn_mask*/,
    double /*dropout_p*/,
    bool /*is_causal*/,
    std::optional<double> /*scale*/,
    bool /*enable_gqa*/) {
  return kMathPath;
}

} // namespace
} // namespace puone

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &puone::fusedSdpChoice)
} // namespace at::native

#include "aten/nn/attention_registrations.inc"
