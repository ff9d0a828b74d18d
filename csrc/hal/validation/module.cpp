// SPDX-License-Identifier: BSD-3-Clause
// The entries of the extension "module".
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hal/module.h"
#include "hal/validation/checks.h"
#include "hal/validation/extensions.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/module_kernels.h"
#include "hal/validation/refusals.h"

namespace puone::validation {
namespace {

const puone_module_api* modules = nullptr;

puone_status checkModule(const char* entry, puone_module module, uint64_t& bits) {
  return checkHandle(entry, "module", live().modules, module, bits);
}

puone_status moduleTarget(int32_t device, puone_module_target* out) {
  constexpr const char* entry = "module.target";
  CHECKED(checkStruct(entry, out));
  CHECKED(checkRunning(entry));
  if (device != -1) CHECKED(checkDevice(entry, device));
  return answered(modules->target(device, out));
}

puone_status compileModule(
    const char* source, const puone_module_options* options, void** image, size_t* bytes) {
  constexpr const char* entry = "module.compile";
  constexpr uint32_t known = PUONE_MODULE_UNCONTRACTED;
  CHECKED(checkOut(entry, image));
  CHECKED(checkOut(entry, bytes));
  CHECKED(checkRunning(entry));
  if (source == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "source is NULL");
  if (options != nullptr) {
    CHECKED(checkStruct(entry, options));
    if ((options->flags & ~known) != 0) {
      return refuse(PUONE_INVALID_ARGUMENT, entry, "unknown flags 0x%x", options->flags);
    }
  }
  return answered(modules->compile(source, options, image, bytes));
}

puone_status loadModule(int32_t device, const void* image, size_t bytes, puone_module* out) {
  constexpr const char* entry = "module.load";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (image == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "image is NULL");
  puone_module made = nullptr;
  CHECKED(answered(modules->load(device, image, bytes, &made)));
  CHECKED(keep(entry, live().modules, made, eventBits(device, 0), modules->unload));
  *out = made;
  return PUONE_OK;
}

/// A field of 8 bytes of the arguments, behind the member that all of them begin with.
puone_status checkField(
    const char* entry, const puone_module_kernel& kernel, const char* what, uint64_t place) {
  constexpr uint64_t field = sizeof(uint64_t);
  if (place % field == 0 && place >= field && place <= kernel.args_size - field) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "kernel %.100s: %s cannot be at byte %llu of the arguments",
      kernel.name,
      what,
      static_cast<unsigned long long>(place));
}

puone_status checkNumber(
    const char* entry, const puone_module_kernel& kernel, const puone_module_number& number) {
  return number.argument == 0 ? PUONE_OK : checkField(entry, kernel, "a number", number.argument);
}

puone_status checkAccess(
    const char* entry, const puone_module_kernel& kernel, const puone_module_access& access) {
  constexpr uint32_t known = PUONE_MODULE_READ | PUONE_MODULE_WRITE | PUONE_MODULE_PARTIAL;
  if (access.name == nullptr || (access.step_count > 0 && access.steps == nullptr)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "kernel %.100s: an access has no name or steps",
        kernel.name);
  }
  if ((access.flags & ~known) != 0 || access.element == 0) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "kernel %.100s: the access to %.100s has flags 0x%x and elements of %u bytes",
        kernel.name,
        access.name,
        access.flags,
        access.element);
  }
  CHECKED(checkField(entry, kernel, access.name, access.pointer));
  for (uint64_t i = 0; i < access.step_count; ++i) {
    CHECKED(checkNumber(entry, kernel, access.steps[i].size));
    CHECKED(checkNumber(entry, kernel, access.steps[i].stride));
  }
  return PUONE_OK;
}

puone_status checkDeclaration(const char* entry, const puone_module_kernel* kernel) {
  constexpr uint64_t most = uint64_t{1} << 32;
  CHECKED(checkStruct(entry, kernel));
  if (kernel->name == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "name is NULL");
  if (kernel->args_size < sizeof(puone_module_arguments) || kernel->args_size >= most) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "kernel %.100s: arguments cannot have %llu bytes",
        kernel->name,
        static_cast<unsigned long long>(kernel->args_size));
  }
  if (kernel->error_count > PUONE_MODULE_MAX_ERRORS ||
      (kernel->error_count > 0 && kernel->errors == nullptr) ||
      (kernel->access_count > 0 && kernel->accesses == nullptr)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        entry,
        "kernel %.100s: the list of errors or accesses is NULL, or there are too many errors",
        kernel->name);
  }
  for (uint32_t i = 0; i < kernel->error_count; ++i) {
    if (kernel->errors[i] == nullptr) {
      return refuse(PUONE_INVALID_ARGUMENT, entry, "kernel %.100s: a text is NULL", kernel->name);
    }
  }
  for (uint64_t i = 0; i < kernel->access_count; ++i) {
    CHECKED(checkAccess(entry, *kernel, kernel->accesses[i]));
  }
  return PUONE_OK;
}

puone_status findInModule(
    puone_module module, const puone_module_kernel* kernel, puone_kernel* out) {
  constexpr const char* entry = "module.find";
  uint64_t module_bits = 0;
  CHECKED(checkOut(entry, out));
  CHECKED(checkModule(entry, module, module_bits));
  if (kernel == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "kernel is NULL");
  CHECKED(checkDeclaration(entry, kernel));
  puone_kernel found = nullptr;
  CHECKED(answered(modules->find(module, kernel, &found)));
  const uint64_t bits = kernelBits(kernel->args_size, deviceOf(module_bits));
  CHECKED(keep<puone_kernel>(entry, live().kernels, found, bits, nullptr));
  modulesKernels().add(module, found, bits);
  *out = found;
  return PUONE_OK;
}

puone_status kernelsDeclaration(puone_kernel kernel, const puone_module_kernel** out) {
  constexpr const char* entry = "module.declaration";
  uint64_t bits = 0;
  CHECKED(checkOut(entry, out));
  CHECKED(checkHandle(entry, "kernel", live().kernels, kernel, bits));
  return answered(modules->declaration(kernel, out));
}

puone_status unloadModule(puone_module module) {
  constexpr const char* entry = "module.unload";
  if (module == nullptr) return PUONE_OK;
  uint64_t bits = 0;
  CHECKED(checkModule(entry, module, bits));
  if (!live().modules.erase(module)) return checkModule(entry, module, bits);
  // The kernels end first, so that no other thread launches one meanwhile.
  auto ended = modulesKernels().end(module);
  const puone_status status = answered(modules->unload(module));
  if (status != PUONE_OK) {
    modulesKernels().revive(std::move(ended));
    keep<puone_module>(entry, live().modules, module, bits, nullptr);
  }
  return status;
}

puone_module_api wrapped(const puone_module_api& api) {
  puone_module_api result = api;
  result.target = moduleTarget;
  result.compile = compileModule;
  result.load = loadModule;
  result.find = findInModule;
  result.declaration = kernelsDeclaration;
  result.unload = unloadModule;
  return result;
}

} // namespace

const void* wrappedModule(const void* found) {
  return wrappedOnce<wrapped>(found, modules);
}

} // namespace puone::validation
