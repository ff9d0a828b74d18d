// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/fallback_plan.h"

#include <algorithm>
#include <unordered_set>

namespace puone {
namespace {

std::optional<ArgumentKind> kindOf(const c10::Argument& argument) {
  const std::string type = argument.type()->str();
  if (type == "Tensor" || type == "Tensor?") return ArgumentKind::kTensor;
  if (type == "Tensor[]" || type == "Tensor[]?") return ArgumentKind::kTensorList;
  if (type == "Tensor?[]") return ArgumentKind::kOptionalTensorList;
  if (type == "Device" || type == "Device?") return ArgumentKind::kDevice;
  if (type == "Generator" || type == "Generator?") return ArgumentKind::kGenerator;
  if (argument.name() == "pin_memory") return ArgumentKind::kPinMemory;
  return std::nullopt;
}

// Operators that update running statistics although their schema does not say so.
bool writesSecretly(const std::string& op, const c10::Argument& argument) {
  static const std::unordered_set<std::string> ops{
      "aten::native_batch_norm", "aten::native_batch_norm.out", "aten::batch_norm_update_stats"};
  return (argument.name() == "running_mean" || argument.name() == "running_var") &&
         ops.count(op) != 0;
}

PlannedArgument planArgument(
    const std::string& op, size_t index, ArgumentKind kind, const c10::Argument& argument) {
  const bool write = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  const bool secret = !write && writesSecretly(op, argument);
  return {index, kind, write, write && argument.kwarg_only(), secret};
}

} // namespace

FallbackPlan::FallbackPlan(const c10::OperatorHandle& op)
    : name(c10::toString(op.operator_name())),
      argument_count(op.schema().arguments().size()),
      return_count(op.schema().returns().size()) {
  const auto& schema = op.schema();
  for (size_t i = 0; i < argument_count; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const auto kind = kindOf(argument);
    if (kind) arguments.push_back(planArgument(name, i, *kind, argument));
    if (argument.name() == "training") training = i;
    const std::string type = argument.type()->str();
    if (type == "Storage" || type == "Stream") obstacle = "takes device storage or a stream";
  }
  draws_by_default =
      op.hasTag(at::Tag::nondeterministic_seeded) &&
      std::none_of(arguments.begin(), arguments.end(), [](const PlannedArgument& argument) {
        return argument.kind == ArgumentKind::kGenerator;
      });
  for (const c10::Argument& result : schema.returns()) {
    aliases.emplace_back();
    if (result.alias_info() == nullptr) continue;
    if (!result.alias_info()->isWrite()) {
      obstacle = "returns a view, which copies in host memory cannot provide";
      continue;
    }
    for (const PlannedArgument& argument : arguments) {
      const auto* alias = schema.arguments()[argument.index].alias_info();
      if (alias != nullptr && *alias == *result.alias_info()) aliases.back() = argument.index;
    }
    if (!aliases.back()) obstacle = "returns an alias of no argument";
  }
}

} // namespace puone
