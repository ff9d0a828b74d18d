// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/module.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "drivers/common/error.h"
#include "drivers/common/file.h"
#include "kernels/module.h"
#include "kernels/module_entry.h"

namespace puone::sim {
namespace {

// The dialect's name for it.
using kernels::PUONE_ISA::Arguments;
static_assert(sizeof(Arguments) == sizeof(puone_module_arguments));
static_assert(Arguments::kErrors == PUONE_MODULE_MAX_ERRORS);
static_assert(offsetof(Arguments, record) == offsetof(puone_module_arguments, error));
static_assert(offsetof(Arguments, count) == offsetof(puone_module_arguments, count));
static_assert(offsetof(Arguments, work) == offsetof(puone_module_arguments, work));
static_assert(offsetof(Arguments, codes) == offsetof(puone_module_arguments, codes));

/// A path to the file that no other call has given: dlopen() takes an object that it knows under
/// the same path for the same object, and descriptors are used again.
std::string uniquePath(const File& file) {
  static std::atomic<uint32_t> count{0};
  std::string path = "/proc/self/fd";
  for (uint32_t number = ++count; number != 0; number /= 2) path += number % 2 != 0 ? "/./" : "//";
  return path + "/" + std::to_string(file.descriptor());
}

void* loaded(std::string_view object) {
  const File file(memfd_create("puone-module", MFD_CLOEXEC));
  if (!file || !file.write(object)) {
    fail(PUONE_OUT_OF_MEMORY, "the module has no file in memory: %s", std::strerror(errno));
  }
  void* library = dlopen(uniquePath(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(PUONE_INTERNAL, "%s", dlerror());
  return library;
}

} // namespace

Module::Module(int32_t device, std::string_view object)
    : device_(device), library_(loaded(object)) {}

puone_kernel Module::find(const puone_module_kernel& declared, Names& names) {
  if (library_ == nullptr) fail(PUONE_INVALID_ARGUMENT, "the module has been unloaded");
  const std::string symbol = std::string("puone_module_") + declared.name;
  const auto* const entry =
      static_cast<const kernels::ModuleEntry*>(dlsym(library_, symbol.c_str()));
  if (entry == nullptr) fail(PUONE_UNSUPPORTED, "the module has no kernel %.100s", declared.name);
  checkArgsSize(declared, entry->args_size);
  return kernels_.add(declared, names.keep(declared.name), entry->run);
}

void Module::close() {
  if (library_ != nullptr) dlclose(library_);
  library_ = nullptr;
}

} // namespace puone::sim
