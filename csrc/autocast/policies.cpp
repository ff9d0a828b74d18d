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

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(PUONE_LOWER)
  AT_FORALL_FP32(PUONE_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(PUONE_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(PUONE_OTHER_SIGNATURE)
  AT_FORALL_PROMOTE(PUONE_PROMOTE)
}

} // namespace at::autocast
