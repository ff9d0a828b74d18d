// SPDX-License-Identifier: BSD-3-Clause
// The CPU fallback: an operator without a device kernel runs on copies of its arguments in host
// memory. It is used for every operator that has no composite form in torch, and counts each use,
// so that a report can distinguish native operators from those that the CPU runs.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace c10 {
class OperatorHandle;
}

namespace puone {

// The fallback itself, for operators that must not take torch's composite form.
void cpuFallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Calls per operator ("aten::addmm.out") since the start or the last reset; only operators called.
std::unordered_map<std::string, uint64_t> fallbackCounts();
void resetFallbackCounts();

// For kernels that run on the CPU without the fallback: counts one call of `name`.
void countFallback(const std::string& name);

// Duplicates in host memory with the sizes, strides and math bits of the originals, complete on
// return; one wait for all of them. Undefined tensors stay undefined.
std::vector<at::Tensor> copyToHost(at::TensorList tensors);

// A duplicate on `device` with the same sizes and strides. `host` may be freed after the return.
at::Tensor copyToDevice(const at::Tensor& host, c10::Device device);

} // namespace puone
