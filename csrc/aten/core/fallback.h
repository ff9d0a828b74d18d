// SPDX-License-Identifier: BSD-3-Clause
// The CPU fallback: an operator without a device kernel runs on copies of its arguments in host
// memory. It is used for every operator that has no composite form in torch, and counts each use,
// so that a report can distinguish native operators from those that the CPU runs.
#pragma once

#include <ATen/core/stack.h>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace c10 {
class OperatorHandle;
}

namespace puone {

// The fallback itself, for operators that must not take torch's composite form.
void cpuFallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Calls per operator ("aten::addmm.out") since the start or the last reset; only operators called.
std::unordered_map<std::string, uint64_t> fallbackCounts();
void resetFallbackCounts();

} // namespace puone
