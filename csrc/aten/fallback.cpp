// SPDX-License-Identifier: BSD-3-Clause
#include "aten/fallback.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_set>

#include "aten/host_random.h"
#include "aten/mirror.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

// ---- what a schema says, read once per operator ----

enum class ArgumentKind : uint8_t {
  kTensor,
  kTensorList,
  kOptionalTensorList,
  kDevice,
  kGenerator,
  kPinMemory
};

struct Argument {
  size_t index;
  ArgumentKind kind;
  bool write;  // the operator changes it
  bool out;    // and does not read it: an out= argument
  bool secret; // it does so behind the schema's back, and only in training
};

struct Plan {
  explicit Plan(const c10::OperatorHandle& op);

  std::string name;
  size_t argument_count;
  size_t return_count;
  std::vector<Argument> arguments;            // those that need care
  std::vector<std::optional<size_t>> aliases; // per return: the argument it is
  const char* obstacle = nullptr;             // why the fallback cannot run it
  std::optional<size_t> training;             // the argument of that name
  bool draws_silently;                        // random without a generator argument
};

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

// Operators that update running statistics and whose schema does not say so.
bool writesSecretly(const std::string& op, const c10::Argument& argument) {
  static const std::unordered_set<std::string> ops{
      "aten::native_batch_norm", "aten::native_batch_norm.out", "aten::batch_norm_update_stats"};
  return (argument.name() == "running_mean" || argument.name() == "running_var") &&
         ops.count(op) != 0;
}

bool writes(const c10::Argument& argument) {
  const auto* alias = argument.alias_info();
  return alias != nullptr && alias->isWrite();
}

Plan::Plan(const c10::OperatorHandle& op)
    : name(c10::toString(op.operator_name())),
      argument_count(op.schema().arguments().size()),
      return_count(op.schema().returns().size()),
      draws_silently(op.hasTag(at::Tag::nondeterministic_seeded)) {
  const auto& schema = op.schema();
  for (size_t i = 0; i < argument_count; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const auto kind = kindOf(argument);
    if (kind) {
      const bool write = writes(argument);
      const bool secret = !write && writesSecretly(name, argument);
      arguments.push_back({i, *kind, write, write && argument.kwarg_only(), secret});
    }
    if (kind == ArgumentKind::kGenerator) draws_silently = false;
    if (argument.name() == "training") training = i;
    const std::string type = argument.type()->str();
    if (type == "Storage" || type == "Stream") obstacle = "takes device storage or a stream";
  }
  for (const c10::Argument& result : schema.returns()) {
    aliases.emplace_back();
    if (result.alias_info() == nullptr) continue;
    if (!result.alias_info()->isWrite()) {
      obstacle = "returns a view, which copies in host memory cannot provide";
      continue;
    }
    for (const Argument& argument : arguments) {
      const auto* alias = schema.arguments()[argument.index].alias_info();
      if (alias != nullptr && *alias == *result.alias_info()) aliases.back() = argument.index;
    }
    if (!aliases.back()) obstacle = "returns an alias of no argument";
  }
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
    obstacle = "has no CPU kernel either";
  }
}

// ---- all plans and counts ----

class Registry {
 public:
  const Plan& plan(const c10::OperatorHandle& op) {
    Entry& entry = find(op);
    entry.calls.fetch_add(1, std::memory_order_relaxed);
    return entry.plan;
  }

  void count(const std::string& name) {
    const std::unique_lock lock(mutex_);
    ++named_calls_[name];
  }

  std::unordered_map<std::string, uint64_t> counts() {
    const std::shared_lock lock(mutex_);
    auto result = named_calls_;
    for (const auto& [op, entry] : entries_) {
      const uint64_t calls = entry->calls.load(std::memory_order_relaxed);
      if (calls != 0) result[entry->plan.name] += calls;
    }
    return result;
  }

  void reset() {
    const std::unique_lock lock(mutex_);
    named_calls_.clear();
    for (const auto& [op, entry] : entries_) entry->calls = 0;
  }

  // The definition is gone: another operator, with another schema, may take over the handle.
  void forget(const c10::OperatorHandle& op) {
    const std::unique_lock lock(mutex_);
    const auto it = entries_.find(op);
    if (it == entries_.end()) return;
    const uint64_t calls = it->second->calls.load(std::memory_order_relaxed);
    if (calls != 0) named_calls_[it->second->plan.name] += calls;
    forgotten_.push_back(std::move(it->second));
    entries_.erase(it);
  }

 private:
  struct Entry {
    explicit Entry(const c10::OperatorHandle& op) : plan(op) {}
    const Plan plan;
    std::atomic<uint64_t> calls{0};
  };

  // Entries are never destroyed, so the reference stays good without the lock.
  Entry& find(const c10::OperatorHandle& op) {
    {
      const std::shared_lock lock(mutex_);
      const auto it = entries_.find(op);
      if (C10_LIKELY(it != entries_.end())) return *it->second;
    }
    auto entry = std::make_unique<Entry>(op);
    const std::unique_lock lock(mutex_);
    return *entries_.try_emplace(op, std::move(entry)).first->second;
  }

  std::shared_mutex mutex_;
  std::unordered_map<c10::OperatorHandle, std::unique_ptr<Entry>> entries_;
  std::vector<std::unique_ptr<Entry>> forgotten_; // a call may still be using its plan
  std::unordered_map<std::string, uint64_t> named_calls_;
};

Registry& registry();

// Libraries of operators can be unloaded, and are on every redefinition of a Python operator.
class DefinitionListener final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle&) override {}
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    registry().forget(op);
  }
};

Registry& registry() {
  // Never destroyed: threads and the dispatcher may use it until the process ends.
  static auto* instance = [] {
    auto* created = new Registry;
    new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(
            std::make_unique<DefinitionListener>()));
    return created;
  }();
  return *instance;
}

// ---- one call ----

class HostCall {
 public:
  HostCall(const Plan& plan, Stack& stack)
      : plan_(plan), stack_(stack), base_(stack.size() - plan.argument_count) {}

  void run(const c10::OperatorHandle& op);

 private:
  // A device tensor of the call and its double on the host.
  struct Double {
    Tensor device;
    Tensor host;
    bool write;
  };

  bool isWritten(const Argument& argument) {
    return argument.write || (argument.secret && (!plan_.training || at(*plan_.training).toBool()));
  }

  IValue& at(size_t index) {
    return stack_[base_ + index];
  }

  void findDevice();
  void replaceArguments();
  void replaceResults();
  Tensor hostTensor(const Tensor& tensor, const Argument& argument);
  IValue hostValue(const IValue& value, const Argument& argument);
  IValue deviceValue(const IValue& value);

  const Plan& plan_;
  Stack& stack_;
  const size_t base_;
  c10::Device device_{kDeviceType, -1};
  c10::SmallVector<Double, 6> doubles_;
  c10::SmallVector<std::pair<size_t, IValue>, 4> written_; // arguments as they were given
  c10::SmallVector<IValue, 4> host_results_;
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

// The device of the results: that of a device= argument, else of the first tensor there, else the
// current one.
void HostCall::findDevice() {
  for (const Argument& argument : plan_.arguments) {
    const IValue& value = at(argument.index);
    if (argument.kind == ArgumentKind::kDevice && value.isDevice()) {
      device_.set_index(resolveDevice(value.toDevice().index()));
      return;
    }
    forEachTensor(value, [this](const Tensor& tensor) {
      if (!device_.has_index() && tensor.defined() && tensor.device().type() == kDeviceType) {
        device_ = tensor.device();
      }
    });
  }
  if (!device_.has_index()) device_.set_index(currentDevice());
}

Tensor HostCall::hostTensor(const Tensor& tensor, const Argument& argument) {
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
  // An out= argument with gaps is read all the same: some CPU kernels leave part of it as it was.
  const bool read = !argument.out || !tensor.is_non_overlapping_and_dense();
  // One double per tensor: an operator may recognise an argument that is given twice.
  for (Double& pair : doubles_) {
    if (pair.device.is_same(tensor)) {
      pair.write |= isWritten(argument);
      return pair.host;
    }
  }
  doubles_.push_back({tensor, to_host_->copy(tensor, read), isWritten(argument)});
  return doubles_.back().host;
}

IValue HostCall::hostValue(const IValue& value, const Argument& argument) {
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
  for (const Argument& argument : plan_.arguments) {
    IValue& value = at(argument.index);
    switch (argument.kind) {
      case ArgumentKind::kDevice:
        value = c10::Device(c10::kCPU);
        break;
      case ArgumentKind::kGenerator:
        value = hostGenerator(value.toOptional<at::Generator>(), device_);
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
    return host.defined() ? to_device_->copy(host) : host;
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
  findDevice();
  const Stream stream = getCurrentStream(device_.index());
  to_host_.emplace(stream);
  to_device_.emplace(stream);
  replaceArguments();
  {
    std::optional<DefaultGeneratorScope> scope;
    if (plan_.draws_silently) scope.emplace(device_);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
  }
  replaceResults();
}

} // namespace

void cpuFallback(const c10::OperatorHandle& op, Stack* stack) {
  const Plan& plan = registry().plan(op);
  TORCH_CHECK_NOT_IMPLEMENTED(
      plan.obstacle == nullptr,
      "puone: ",
      plan.name,
      " is not implemented for this device and cannot run on the CPU instead: it ",
      plan.obstacle);
  HostCall(plan, *stack).run(op);
}

std::unordered_map<std::string, uint64_t> fallbackCounts() {
  return registry().counts();
}

void resetFallbackCounts() {
  registry().reset();
}

void countFallback(const std::string& name) {
  registry().count(name);
}

std::vector<Tensor> copyToHost(at::TensorList tensors) {
  std::vector<Tensor> result(tensors.size());
  std::optional<ToHost> to_host;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    if (!to_host) to_host.emplace(getCurrentStream(tensors[i].device().index()));
    result[i] = to_host->copy(tensors[i]);
  }
  if (to_host) to_host->wait();
  return result;
}

Tensor copyToDevice(const Tensor& host, c10::Device device) {
  if (!host.defined()) return host;
  ToDevice to_device(getCurrentStream(device.index()));
  Tensor result = to_device.copy(host);
  to_device.wait();
  return result;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&cpuFallback>());
}

} // namespace puone
