// SPDX-License-Identifier: BSD-3-Clause
// Automatic mixed precision: policies for the device.
#pragma once

#include <ATen/Operators.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace probe {
namespace {

at::Tensor matmulInLowerPrecision(const at::Tensor& self, const at::Tensor& other) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
  const auto type = at::autocast::get_autocast_dtype(c10::DeviceType::PrivateUse1);
  return at::matmul(
      at::autocast::cached_cast(type, self, c10::DeviceType::PrivateUse1),
      at::autocast::cached_cast(type, other, c10::DeviceType::PrivateUse1));
}

void useAutocast() {
  using at::autocast::CastPolicy;
  (void)CastPolicy::lower_precision_fp;
  (void)CastPolicy::fp32;
  (void)CastPolicy::fp32_set_opt_dtype;
  (void)CastPolicy::fp32_append_dtype;
  (void)CastPolicy::promote;
  at::autocast::set_autocast_enabled(
      c10::DeviceType::PrivateUse1,
      at::autocast::is_autocast_enabled(c10::DeviceType::PrivateUse1));
  at::autocast::set_autocast_dtype(c10::DeviceType::PrivateUse1, at::kHalf);
  at::autocast::set_autocast_cache_enabled(at::autocast::is_autocast_cache_enabled());
  (void)at::autocast::increment_nesting();
  (void)at::autocast::decrement_nesting();
  at::autocast::clear_cache();
  (void)at::autocast::get_lower_precision_fp_from_device_type(c10::DeviceType::PrivateUse1);
  (void)at::autocast::is_autocast_eligible(at::Tensor(), c10::DeviceType::PrivateUse1);
}

// PyTorch's own lists of operators, each under its policy.
#define PROBE_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define PROBE_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define PROBE_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROBE_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  m.impl("matmul", &matmulInLowerPrecision);
  using namespace at; // where the signatures of the lists find their types
  AT_FORALL_LOWER_PRECISION_FP(PROBE_LOWER)
  AT_FORALL_FP32(PROBE_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(PROBE_FP32_DTYPE)
  AT_FORALL_PROMOTE(PROBE_PROMOTE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  KERNEL_PRIVATEUSEONE(mm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(pow, Tensor_Scalar, fp32)
  KERNEL_PRIVATEUSEONE(prod, fp32_set_opt_dtype)
  KERNEL_PRIVATEUSEONE(addcdiv, promote)
}

#undef PROBE_LOWER
#undef PROBE_FP32
#undef PROBE_FP32_DTYPE
#undef PROBE_PROMOTE

} // namespace
} // namespace probe
