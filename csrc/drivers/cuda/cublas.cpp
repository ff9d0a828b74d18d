// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/cublas.h"

#include <array>
#include <cstring>

#include "drivers/common/error.h"
#include "drivers/cuda/library.h"

namespace puone::cuda {
namespace {

constexpr std::array kNames{"libcublas.so.13", "libcublas.so.12"};
/// Where the wheels put them, beside torch.
constexpr std::array kWheelPaths{
    "nvidia/cu13/lib/libcublas.so.13", "nvidia/cublas/lib/libcublas.so.12"};

void* open(const char* choice) {
  if (choice == nullptr) return openUsual(kNames, kWheelPaths);
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
  functions->library = library;
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    complete = findSymbol(library, name, function) && complete;
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
