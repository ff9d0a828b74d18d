// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <map>
#include <mutex>

#include "extension/include/torch_puone/extension.h"
#include "extension/tensor_argument.h"
#include "runtime/device.h"
#include "runtime/module_kernel.h"

namespace puone::extension {
namespace {

c10::DeviceIndex deviceOf(const std::string& kernel, std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (!argument.isTensor() || !argument.tensor().defined()) continue;
    const c10::Device device = argument.tensor().device();
    TORCH_CHECK(
        device.type() == kDeviceType,
        "the kernel ",
        kernel,
        " of an extension was given a tensor on ",
        device);
    return device.index();
  }
  TORCH_CHECK(false, "the kernel ", kernel, " of an extension was given no tensor");
}

ModuleParameter parameterOf(const Argument& argument, size_t number) {
  using Kind = ModuleParameter::Kind;
  std::string name = std::to_string(number);
  if (!argument.isTensor()) return {name, argument.isReal() ? Kind::kReal : Kind::kInteger};
  auto access = static_cast<uint32_t>(argument.access());
  if (!argument.tensor().is_non_overlapping_and_dense()) access |= PUONE_MODULE_PARTIAL;
  return {name, Kind::kBuffer, access, static_cast<uint32_t>(argument.tensor().element_size())};
}

uint64_t valueOf(const Argument& argument) {
  if (argument.isTensor()) {
    return addressOf(argument.tensor(), argument.access() != Access::kRead);
  }
  if (argument.isReal()) return std::bit_cast<uint64_t>(argument.real());
  return static_cast<uint64_t>(argument.integer());
}

} // namespace

// A kernel for each device and each way in which its arguments were declared.
struct Kernel::Compiled {
  const ModuleKernel& find(
      c10::DeviceIndex device, const std::vector<ModuleParameter>& parameters) {
    std::vector<uint64_t> key{static_cast<uint64_t>(device)};
    for (const ModuleParameter& each : parameters) {
      key.push_back(static_cast<uint64_t>(each.kind));
      key.push_back(uint64_t{each.access} << 32 | each.element);
    }
    const std::lock_guard guard(mutex);
    auto& kernel = kernels[key];
    if (kernel == nullptr) {
      const std::string target = moduleTarget(device).name;
      kernel = std::make_unique<ModuleKernel>(
          compileModule(source, target, /*contracts=*/true), name, parameters, errors);
    }
    return *kernel;
  }

  const std::string name;
  const std::vector<std::string> errors;
  const char* const source;
  std::mutex mutex;
  std::map<std::vector<uint64_t>, std::unique_ptr<ModuleKernel>> kernels;
};

Kernel::Kernel(std::string name, std::vector<std::string> errors, const char* source)
    : compiled_(new Compiled{std::move(name), std::move(errors), source, {}, {}}) {}

Kernel::~Kernel() = default;

void Kernel::map(int64_t count, std::initializer_list<Argument> arguments) const {
  launch(count, 0, arguments);
}

void Kernel::blocks(int64_t count, int64_t work, std::initializer_list<Argument> arguments) const {
  TORCH_CHECK(work > 0, "blocks of the kernel ", compiled_->name, " handle ", work, " elements");
  launch(count, work, arguments);
}

void Kernel::launch(int64_t count, int64_t work, std::initializer_list<Argument> arguments) const {
  const c10::DeviceIndex device = deviceOf(compiled_->name, arguments);
  std::vector<ModuleParameter> parameters;
  std::vector<uint64_t> values, extents;
  for (const Argument& argument : arguments) {
    const size_t number = parameters.size() + 1;
    TORCH_CHECK(
        !argument.isTensor() || argument.tensor().defined(),
        "the argument ",
        number,
        " of the kernel ",
        compiled_->name,
        " of an extension is an undefined tensor");
    parameters.push_back(parameterOf(argument, number));
    if (argument.isTensor()) {
      checkTensorArgument(argument.tensor(), parameters.back().name, device);
      extents.push_back(extentOf(argument.tensor()));
    }
    values.push_back(valueOf(argument));
  }
  values.insert(values.end(), extents.begin(), extents.end());
  compiled_->find(device, parameters).launch(getCurrentStream(device), count, work, values);
}

} // namespace puone::extension
