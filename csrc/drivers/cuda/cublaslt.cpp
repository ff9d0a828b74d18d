// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/cublaslt.h"

#include "drivers/cuda/library.h"

namespace puone::cuda {
const CublasLt* loadCublasLt(const char* choice, const Cublas* cublas) {
  if (cublas == nullptr) return nullptr;
  // Symbols of a library are those of its dependencies, too.
  void* library = choice == nullptr ? cublas->library : openChosen("PUONE_CUDA_BLASLT", choice);
  if (library == nullptr) return nullptr;
  auto* const functions = new CublasLt{}; // for good, as the library
  SymbolFinder find(library);
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
  if (find.missing() == nullptr) return functions;
  delete functions;
  return nullptr;
}

} // namespace puone::cuda
