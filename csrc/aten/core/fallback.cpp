// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/fallback.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "aten/core/fallback_registry.h"
#include "aten/core/host_random.h"
#include "aten/core/mirror.h"
#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

class HostCall {
 public:
  HostCall(const FallbackPlan& plan, Stack& stack)
      : plan_(plan), stack_(stack), base_(stack.size() - plan.argument_count) {}

  void run(const c10::OperatorHandle& op);

 private:
  // A device tensor of the call and its copy on the host.
  struct Double {
    Tensor device;
    Tensor host;
    bool write;
  };

  bool isWritten(const PlannedArgument& argument) {
    return argument.write || (argument.secret && (!plan_.training || at(*plan_.training).toBool()));
  }

  IValue& at(size_t index) {
    return stack_[base_ + index];
  }

  void findDevices();
  void copyOverlapping();
  void copyOverlapping(c10::ArrayRef<Double> in_one_storage);
  void replaceArguments();
  void replaceResults();
  Tensor hostTensor(const Tensor& tensor, const PlannedArgument& argument);
  IValue hostValue(const IValue& value, const PlannedArgument& argument);
  IValue deviceValue(const IValue& value);

  const FallbackPlan& plan_;
  Stack& stack_;
  const size_t base_;
  c10::Device device_{kDeviceType, -1};
  c10::Device result_device_{kDeviceType, -1};
  c10::SmallVector<Double, 6> doubles_;
  c10::SmallVector<std::pair<size_t, IValue>, 4> written_; // arguments as they were given
  c10::SmallVector<IValue, 4> host_results_;
  std::optional<HostDraw> draw_;
  // Last, because their destructors wait for the copies from and to the members above.
  std::optional<ToHost> to_host_;
  std::optional<ToDevice> to_device_;
};

template <typename Visit>
void forEachTensor(const IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const Tensor& tensor : value.toTensorList()) visit(tensor);
  } else if (value.isList()) {
    for (const IValue& element : value.toListRef()) {
      if (element.isTensor()) visit(element.toTensor());
    }
  }
}

// The device of the call is that of the first device tensor, else that of the results. The device
// of the results is the device= argument, else that of the call. Without either it is the current
// device.
void HostCall::findDevices() {
  std::optional<c10::Device> results;
  for (const PlannedArgument& argument : plan_.arguments) {
    const IValue& value = at(argument.index);
    if (value.isDevice() && value.toDevice().type() == kDeviceType) {
      results.emplace(kDeviceType, resolveDevice(value.toDevice().index()));
    }
    forEachTensor(value, [this](const Tensor& tensor) {
      if (!device_.has_index() && tensor.defined() && tensor.device().type() == kDeviceType) {
        device_ = tensor.device();
      }
    });
  }
  if (!device_.has_index()) {
    device_.set_index(results ? results->index() : currentDevice());
  }
  result_device_ = results.value_or(device_);
}

// What an operator writes to one argument it may see through another: such arguments are copied
// together. Then it refuses what it refuses on the CPU, and otherwise computes the same.
void HostCall::copyOverlapping() {
  const auto writes = [this](const PlannedArgument& argument) { return isWritten(argument); };
  if (std::none_of(plan_.arguments.begin(), plan_.arguments.end(), writes)) return;
  c10::SmallVector<Double, 6> given;
  for (const PlannedArgument& argument : plan_.arguments) {
    const bool write = isWritten(argument);
    forEachTensor(at(argument.index), [&](const Tensor& tensor) {
      if (!tensor.defined() || tensor.device() != device_ || !tensor.has_storage()) return;
      given.push_back({tensor, {}, write});
    });
  }
  if (given.size() < 2) return;
  const auto storageOf = [](const Double& each) {
    return each.device.storage().unsafeGetStorageImpl();
  };
  std::sort(given.begin(), given.end(), [&](const Double& a, const Double& b) {
    return std::less<>()(storageOf(a), storageOf(b));
  });
  for (auto begin = given.begin(); begin != given.end();) {
    const auto end = std::find_if(begin, given.end(), [&](const Double& each) {
      return storageOf(each) != storageOf(*begin);
    });
    copyOverlapping({&*begin, static_cast<size_t>(end - begin)});
    begin = end;
  }
}

void HostCall::copyOverlapping(c10::ArrayRef<Double> in_one_storage) {
  const auto overlaps = [&](const Double& one) {
    return std::any_of(in_one_storage.begin(), in_one_storage.end(), [&](const Double& other) {
      return (one.write || other.write) && !one.device.is_same(other.device) &&
             at::get_overlap_status(one.device, other.device) != at::MemOverlapStatus::No;
    });
  };
  std::vector<Tensor> together;
  for (const Double& one : in_one_storage) {
    const auto is_same = [&](const Tensor& tensor) { return tensor.is_same(one.device); };
    if (std::any_of(together.begin(), together.end(), is_same) || !overlaps(one)) continue;
    together.push_back(one.device);
  }
  if (together.empty()) return;
  const std::vector<Tensor> copies = to_host_->copyTogether(together);
  for (size_t i = 0; i < copies.size(); ++i) doubles_.push_back({together[i], copies[i], false});
}

Tensor HostCall::hostTensor(const Tensor& tensor, const PlannedArgument& argument) {
  if (!tensor.defined()) return tensor;
  if (tensor.device() != device_) {
    // As on every device, a CPU tensor may stand for a number, and may be an index.
    TORCH_CHECK(
        tensor.is_cpu() && !argument.write &&
            (tensor.dim() == 0 || argument.kind == ArgumentKind::kOptionalTensorList),
        "Expected all tensors to be on the same device, but found at least two devices, ",
        device_,
        " and ",
        tensor.device(),
        "! (in ",
        plan_.name,
        ")");
    return tensor;
  }
  // An out= argument with gaps is also read, because some CPU kernels leave part of it unchanged.
  const bool read = !argument.out || !tensor.is_non_overlapping_and_dense();
  // One copy per tensor: an operator may detect that two arguments are the same tensor.
  for (Double& pair : doubles_) {
    if (pair.device.is_same(tensor)) {
      pair.write |= isWritten(argument);
      return pair.host;
    }
  }
  doubles_.push_back({tensor, to_host_->copy(tensor, read), isWritten(argument)});
  return doubles_.back().host;
}

IValue HostCall::hostValue(const IValue& value, const PlannedArgument& argument) {
  if (value.isTensor()) return hostTensor(value.toTensor(), argument);
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorList()) list.push_back(hostTensor(tensor, argument));
    return list;
  }
  c10::List<std::optional<Tensor>> list;
  for (const std::optional<Tensor>& tensor : value.toOptionalTensorList()) {
    list.push_back(tensor ? std::optional(hostTensor(*tensor, argument)) : std::nullopt);
  }
  return list;
}

void HostCall::replaceArguments() {
  copyOverlapping();
  for (const PlannedArgument& argument : plan_.arguments) {
    IValue& value = at(argument.index);
    switch (argument.kind) {
      case ArgumentKind::kDevice:
        value = c10::Device(c10::kCPU);
        break;
      case ArgumentKind::kGenerator:
        value = draw_.emplace(value.toOptional<at::Generator>(), device_).generator();
        break;
      case ArgumentKind::kPinMemory:
        TORCH_CHECK(!value.isBool() || !value.toBool(), "Only dense CPU tensors can be pinned");
        break;
      default:
        if (value.isNone()) break;
        IValue host = hostValue(value, argument);
        if (argument.write) written_.emplace_back(argument.index, std::move(value));
        value = std::move(host);
    }
  }
  to_host_->wait();
}

IValue HostCall::deviceValue(const IValue& value) {
  const auto move = [this](const Tensor& host) {
    return host.defined() ? to_device_->copy(host).to(result_device_) : host;
  };
  if (value.isTensor()) return move(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& host : value.toTensorList()) list.push_back(move(host));
    return list;
  }
  return value;
}

void HostCall::replaceResults() {
  for (const Double& pair : doubles_) {
    if (pair.write) to_device_->update(pair.device, pair.host);
  }
  const size_t first = stack_.size() - plan_.return_count;
  for (size_t i = 0; i < plan_.return_count; ++i) {
    IValue& result = stack_[first + i];
    host_results_.push_back(result);
    if (!plan_.aliases[i]) {
      result = deviceValue(result);
      continue;
    }
    for (const auto& [index, original] : written_) {
      if (index == *plan_.aliases[i]) result = original;
    }
  }
  to_device_->wait();
}

void HostCall::run(const c10::OperatorHandle& op) {
  findDevices();
  const Stream stream = getCurrentStream(device_.index());
  TORCH_CHECK(
      !isCapturing(stream),
      "puone: ",
      plan_.name,
      " runs on the CPU, which cannot be captured in a graph: call it before or after the capture");
  to_host_.emplace(stream);
  to_device_.emplace(stream);
  replaceArguments();
  std::optional<AsDefaultGenerator> as_default;
  if (plan_.draws_by_default) {
    as_default.emplace(draw_.emplace(std::nullopt, device_).generator());
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
  as_default.reset();
  replaceResults();
}

} // namespace

void cpuFallback(const c10::OperatorHandle& op, Stack* stack) {
  const FallbackPlan& plan = bookFallback(op);
  const char* obstacle = plan.obstacle;
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
    obstacle = "has no CPU kernel either";
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      obstacle == nullptr,
      "puone: ",
      plan.name,
      " is not implemented for this device and cannot run on the CPU instead: it ",
      obstacle);
  HostCall(plan, *stack).run(op);
}

// [quote: registration]
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&cpuFallback>());
}
// [end: registration]

} // namespace puone
