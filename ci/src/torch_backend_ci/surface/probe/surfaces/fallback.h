// SPDX-License-Identifier: BSD-3-Clause
// The CPU fallback, registered for all operators and called for one.
#pragma once

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/abs_ops.h>

namespace probe {
namespace {

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
  at::native::cpu_fallback(op, stack, true);
  at::native::cpu_fallback(op, stack, false, c10::DispatchKey::CPU);
}

at::Tensor absOnCpu(const at::Tensor& self) {
  return at::native::call_fallback_fn<&fallback, at::_ops::abs>::call(self);
}

at::Tensor absOnCpuWithSymbols(const at::Tensor& self) {
  return at::native::call_fallback_fn_symint<&fallback, at::_ops::abs>::call(self);
}

} // namespace
} // namespace probe
