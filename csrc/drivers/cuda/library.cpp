// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/library.h"

#include <link.h>

#include <cstring>

#include "drivers/common/error.h"

namespace puone::cuda {
namespace {

/// The directory that torch is installed in, if it is in the process; else empty.
std::string torchDirectory() {
  std::string directory;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        const char* found = std::strstr(info->dlpi_name, "torch/lib/libtorch");
        if (found == nullptr) return 0;
        static_cast<std::string*>(result)->assign(info->dlpi_name, found);
        return 1;
      },
      &directory);
  return directory;
}

} // namespace

void* openUsual(std::span<const char* const> names, std::span<const char* const> wheel_paths) {
  for (const int mode : {RTLD_NOLOAD, 0}) {
    for (const char* name : names) {
      if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | mode)) return library;
    }
  }
  const std::string directory = torchDirectory();
  if (directory.empty()) return nullptr;
  for (const char* path : wheel_paths) {
    if (void* library = dlopen((directory + path).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

void* openChosen(const char* variable, const char* value) {
  if (std::strcmp(value, "none") == 0) return nullptr;
  void* library = dlopen(value, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(PUONE_INVALID_ARGUMENT, "%s: %s", variable, dlerror());
  return library;
}

} // namespace puone::cuda
