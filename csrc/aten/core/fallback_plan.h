// SPDX-License-Identifier: BSD-3-Clause
// What the CPU fallback must do for an operator, according to its schema, read once per operator
// rather than per call.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace puone {

enum class ArgumentKind : uint8_t {
  kTensor,
  kTensorList,
  kOptionalTensorList,
  kDevice,
  kGenerator,
  kPinMemory
};

struct PlannedArgument {
  size_t index;
  ArgumentKind kind;
  bool write;  // the operator changes it
  bool out;    // and does not read it: an out= argument
  bool secret; // the operator writes it in training, although the schema does not say so
};

struct FallbackPlan {
  explicit FallbackPlan(const c10::OperatorHandle& op);

  std::string name; // "aten::addmm.out"
  size_t argument_count;
  size_t return_count;
  std::vector<PlannedArgument> arguments;     // those that need care, in order
  std::vector<std::optional<size_t>> aliases; // per return: the argument that it is
  std::optional<size_t> training;             // the argument of that name
  bool draws_by_default = false;              // random numbers, and takes no generator
  const char* obstacle = nullptr;             // why the fallback can never run it
};

} // namespace puone
