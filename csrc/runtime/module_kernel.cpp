// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/module_kernel.h"

#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include <cstring>

#include "runtime/driver.h"
#include "runtime/extension.h"
#include "runtime/kernel.h"

namespace puone {
namespace {

const puone_module_api& apiOf(const puone_hal_api& table) {
  const auto* const found =
      findExtension<puone_module_api>(table, PUONE_MODULE_EXTENSION, PUONE_MODULE_VERSION);
  TORCH_CHECK_NOT_IMPLEMENTED(
      found != nullptr,
      "puone: the driver \"",
      driverState().name,
      "\" does not have the extension \"module\", so it cannot compile kernels while the program "
      "runs. torch.compile needs that for inductor; use torch.compile(model, "
      "backend=\"aot_eager\")");
  return *found;
}

const puone_module_api& api() {
  return apiOf(hal());
}

// For what needs no device.
const puone_module_api& compilerApi() {
  return apiOf(halWithoutDevice());
}

constexpr uint64_t kValueSize = sizeof(uint64_t);

uint64_t placeOf(size_t value) {
  return sizeof(puone_module_arguments) + kValueSize * value;
}

} // namespace

puone_module_target moduleTarget(c10::DeviceIndex device) {
  puone_module_target target{};
  target.struct_size = sizeof(target);
  const puone_module_api& of = device == -1 ? compilerApi() : api();
  PUONE_CHECK_STATUS(of.target(device, &target), "target");
  return target;
}

std::string compileModule(const std::string& source, const std::string& target, bool contracts) {
  puone_module_options options{};
  options.struct_size = sizeof(options);
  options.flags = contracts ? PUONE_MODULE_DEFAULT : PUONE_MODULE_UNCONTRACTED;
  options.target = target.c_str();
  const puone_module_api& compiler = compilerApi();
  void* image = nullptr;
  size_t bytes = 0;
  PUONE_CHECK_STATUS(compiler.compile(source.c_str(), &options, &image, &bytes), "compile");
  std::string owned(static_cast<const char*>(image), bytes);
  PUONE_CHECK_STATUS(compiler.free_image(image), "free_image");
  return owned;
}

ModuleKernel::ModuleKernel(
    std::string image,
    std::string name,
    std::vector<ModuleParameter> parameters,
    std::vector<std::string> errors)
    : image_(std::move(image)),
      name_(std::move(name)),
      parameters_(std::move(parameters)),
      errors_(std::move(errors)) {
  TORCH_CHECK_VALUE(
      errors_.size() <= PUONE_MODULE_MAX_ERRORS,
      "puone: the kernel ",
      name_,
      " has ",
      errors_.size(),
      " errors, and a kernel of a module at most ",
      PUONE_MODULE_MAX_ERRORS);
}

puone_kernel ModuleKernel::load(c10::DeviceIndex device) const {
  // One step over all elements that a buffer spans. What of them the kernel touches, it knows.
  std::vector<puone_module_step> steps(parameters_.size());
  std::vector<puone_module_access> accesses;
  size_t extent = parameters_.size();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ModuleParameter& parameter = parameters_[i];
    if (parameter.kind != ModuleParameter::Kind::kBuffer) continue;
    steps[i] = {{0, placeOf(extent++)}, {int64_t{parameter.element}, 0}};
    accesses.push_back(
        {parameter.name.c_str(),
         placeOf(i),
         parameter.access,
         parameter.element,
         /*step_count=*/1,
         &steps[i]});
  }
  std::vector<const char*> errors;
  for (const std::string& error : errors_) errors.push_back(error.c_str());

  puone_module_kernel declared{};
  declared.struct_size = sizeof(declared);
  declared.error_count = static_cast<uint32_t>(errors.size());
  declared.name = name_.c_str();
  declared.args_size = placeOf(extent);
  declared.access_count = accesses.size();
  declared.accesses = accesses.data();
  declared.errors = errors.data();

  puone_module module = nullptr;
  PUONE_CHECK_STATUS(api().load(device, image_.data(), image_.size(), &module), "load");
  puone_kernel kernel = nullptr;
  const puone_status status = api().find(module, &declared, &kernel);
  if (status != PUONE_OK) {
    api().unload(module);
    PUONE_CHECK_STATUS(status, "find");
  }
  return kernel; // the module stays: graphs and late errors refer to it
}

puone_kernel ModuleKernel::loadedOn(c10::DeviceIndex device) const {
  const std::lock_guard guard(mutex_);
  auto& kernel = loaded_[device];
  if (C10_UNLIKELY(kernel == nullptr)) kernel = load(device);
  return kernel;
}

void ModuleKernel::launch(
    const Stream& stream, int64_t count, int64_t work, c10::ArrayRef<uint64_t> values) const {
  puone_module_arguments first{};
  first.count = count;
  first.work = work;
  c10::SmallVector<unsigned char, 512> args(placeOf(values.size()), 0);
  std::memcpy(args.data(), &first, sizeof(first));
  std::memcpy(args.data() + sizeof(first), values.data(), kValueSize * values.size());
  launchKernel(loadedOn(stream.deviceIndex()), args.data(), args.size(), stream);
}

} // namespace puone
