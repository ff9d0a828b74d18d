// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/cublaslt.h"

#include <cstring>

#include "drivers/common/error.h"
#include "drivers/cuda/library.h"

namespace puone::cuda {
namespace {

void* open(const char* choice, const Cublas& cublas) {
  if (choice == nullptr) return cublas.library; // its symbols are those of its dependencies, too
  if (std::strcmp(choice, "none") == 0) return nullptr;
  void* library = dlopen(choice, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(PUONE_INVALID_ARGUMENT, "PUONE_CUDA_BLASLT: %s", dlerror());
  return library;
}

} // namespace

const CublasLt* loadCublasLt(const char* choice, const Cublas* cublas) {
  if (cublas == nullptr) return nullptr;
  void* library = open(choice, *cublas);
  if (library == nullptr) return nullptr;
  auto* const functions = new CublasLt{}; // for good, as the library
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    complete = findSymbol(library, name, function) && complete;
  };
  find(functions->create, "cublasLtCreate");
  find(functions->createOperation, "cublasLtMatmulDescCreate");
  find(functions->destroyOperation, "cublasLtMatmulDescDestroy");
  find(functions->setOperation, "cublasLtMatmulDescSetAttribute");
  find(functions->createLayout, "cublasLtMatrixLayoutCreate");
  find(functions->destroyLayout, "cublasLtMatrixLayoutDestroy");
  find(functions->setLayout, "cublasLtMatrixLayoutSetAttribute");
  find(functions->createPreference, "cublasLtMatmulPreferenceCreate");
  find(functions->destroyPreference, "cublasLtMatmulPreferenceDestroy");
  find(functions->setPreference, "cublasLtMatmulPreferenceSetAttribute");
  find(functions->choose, "cublasLtMatmulAlgoGetHeuristic");
  find(functions->multiply, "cublasLtMatmul");
  if (complete) return functions;
  delete functions;
  return nullptr;
}

} // namespace puone::cuda
