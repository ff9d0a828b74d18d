// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/cublas.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "drivers/common/error.h"

namespace puone::cuda {
namespace {

constexpr std::array kNames{"libcublas.so.13", "libcublas.so.12"};
/// Where the wheels put them, beside torch.
constexpr std::array kWheelPaths{
    "nvidia/cu13/lib/libcublas.so.13", "nvidia/cublas/lib/libcublas.so.12"};

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

void* openUsual() {
  for (const int mode : {RTLD_NOLOAD, 0}) {
    for (const char* name : kNames) {
      if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | mode)) return library;
    }
  }
  const std::string directory = torchDirectory();
  if (directory.empty()) return nullptr;
  for (const char* path : kWheelPaths) {
    if (void* library = dlopen((directory + path).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

void* open(const char* choice) {
  if (choice == nullptr) return openUsual();
  if (std::strcmp(choice, "none") == 0) return nullptr;
  void* library = dlopen(choice, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(PUONE_INVALID_ARGUMENT, "PUONE_CUDA_BLAS: %s", dlerror());
  return library;
}

} // namespace

const Cublas* loadCublas(const char* choice) {
  void* library = open(choice);
  if (library == nullptr) return nullptr;
  auto* const functions = new Cublas{}; // for good, as the library
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    complete = complete && function != nullptr;
  };
  find(functions->create, "cublasCreate_v2");
  find(functions->setStream, "cublasSetStream_v2");
  find(functions->setWorkspace, "cublasSetWorkspace_v2");
  find(functions->setMathMode, "cublasSetMathMode");
  find(functions->multiply, "cublasGemmEx");
  find(functions->multiplyBatch, "cublasGemmStridedBatchedEx");
  if (complete) return functions;
  delete functions;
  dlclose(library);
  return nullptr;
}

} // namespace puone::cuda
