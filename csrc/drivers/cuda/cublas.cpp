// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/cublas.h"

#include <array>

#include "drivers/cuda/library.h"

namespace puone::cuda {
namespace {

constexpr std::array kNames{"libcublas.so.13", "libcublas.so.12"};
/// Where the wheels put them, beside torch.
constexpr std::array kWheelPaths{
    "nvidia/cu13/lib/libcublas.so.13", "nvidia/cublas/lib/libcublas.so.12"};

} // namespace

const Cublas* loadCublas(const char* choice) {
  void* library =
      choice == nullptr ? openUsual(kNames, kWheelPaths) : openChosen("PUONE_CUDA_BLAS", choice);
  if (library == nullptr) return nullptr;
  auto* const functions = new Cublas{}; // for good, as the library
  functions->library = library;
  SymbolFinder find(library);
  find(functions->create, "cublasCreate_v2");
  find(functions->setStream, "cublasSetStream_v2");
  find(functions->setWorkspace, "cublasSetWorkspace_v2");
  find(functions->setMathMode, "cublasSetMathMode");
  find(functions->multiply, "cublasGemmEx");
  find(functions->multiplyBatch, "cublasGemmStridedBatchedEx");
  if (find.missing() == nullptr) return functions;
  delete functions;
  dlclose(library);
  return nullptr;
}

} // namespace puone::cuda
