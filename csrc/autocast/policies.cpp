// SPDX-License-Identifier: BSD-3-Clause
// What torch.autocast("puone") casts, and to what: torch's own lists, the same for every backend.
// Operators on none of them fall through (fallthrough.cpp).
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

// The lists apply a macro to each (operator) or (operator, overload); the policy comes last.
#define PUONE_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define PUONE_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define PUONE_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PUONE_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
#define PUONE_OTHER_SIGNATURE(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(__VA_ARGS__)

namespace at::autocast { // where the lists' signatures find their types
namespace {

// On none of the lists, but refused on CUDA, in these terms: its backward overflows in float16.
Tensor refuse_binary_cross_entropy(
    const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(
      false,
      "binary_cross_entropy and BCELoss are unsafe to autocast: their gradient overflows in low "
      "precision. Use binary_cross_entropy_with_logits or BCEWithLogitsLoss without the sigmoid "
      "before it, or compute this loss in float32 with autocast disabled.");
}

} // namespace

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  // [quote: policies]
  AT_FORALL_LOWER_PRECISION_FP(PUONE_LOWER)
  AT_FORALL_FP32(PUONE_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(PUONE_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(PUONE_OTHER_SIGNATURE)
  AT_FORALL_PROMOTE(PUONE_PROMOTE)
  // [end: policies]
  m.impl("binary_cross_entropy", TORCH_FN(refuse_binary_cross_entropy));
}

} // namespace at::autocast
