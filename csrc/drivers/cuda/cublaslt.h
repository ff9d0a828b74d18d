// SPDX-License-Identifier: BSD-3-Clause
// What the driver calls of cuBLASLt (12 and 13), by the documentation of cublasLt.h. It is found as
// cuBLAS is, which is linked against it.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>

#include "drivers/cuda/cublas.h"

namespace puone::cuda {

using CublasLtHandle = struct CublasLtContext*;
using CublasLtOperation = struct CublasLtMatmulDesc*;
using CublasLtLayout = struct CublasLtMatrixLayout*;
using CublasLtPreference = struct CublasLtMatmulPreference*;

/// Of an operation. The values are int32_t, but for the epilogue's, a uint32_t, and a pointer.
enum class CublasLtOperationAttribute : int {
  kTransposedA = 3, // a CublasOperation
  kTransposedB = 4,
  kEpilogue = 7, // bits of CublasLtEpilogue
  kBias = 8      // as many numbers as D has rows, of D's type
};

enum class CublasLtEpilogue : uint32_t {
  kRelu = 2,
  kBias = 4
};

enum class CublasLtLayoutAttribute : int {
  kBatch = 5,      // int32_t
  kBatchStride = 6 // int64_t, elements
};

enum class CublasLtPreferenceAttribute : int {
  kWorkspace = 1,  // uint64_t, bytes
  kReductions = 3, // uint32_t, a mask
  kAlignmentA = 5, // uint32_t, bytes
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8
};

/// Partial sums are kept in the type of the sums, in the workspace, and added up in a fixed order.
constexpr uint32_t kCublasLtExactPartialSums = 2;

/// What a workspace is aligned to.
constexpr uint32_t kCublasLtAlignment = 256;

struct CublasLtAlgorithm {
  uint64_t data[8];
};

struct CublasLtChoice {
  CublasLtAlgorithm algorithm;
  size_t workspace; // bytes
  CublasStatus status;
  float waves;
  int reserved[4];
};

/// The library's functions, by their names in it.
struct CublasLt {
  CublasStatus (*create)(CublasLtHandle*); // cublasLtCreate
  CublasStatus (*createOperation)(         // cublasLtMatmulDescCreate
      CublasLtOperation*, CublasCompute, cudaDataType scalar);
  CublasStatus (*destroyOperation)(CublasLtOperation); // cublasLtMatmulDescDestroy
  CublasStatus (*setOperation)(                        // cublasLtMatmulDescSetAttribute
      CublasLtOperation, CublasLtOperationAttribute, const void* value, size_t bytes);
  CublasStatus (*createLayout)( // cublasLtMatrixLayoutCreate
      CublasLtLayout*, cudaDataType, uint64_t rows, uint64_t columns, int64_t leading);
  CublasStatus (*destroyLayout)(CublasLtLayout); // cublasLtMatrixLayoutDestroy
  CublasStatus (*setLayout)(                     // cublasLtMatrixLayoutSetAttribute
      CublasLtLayout, CublasLtLayoutAttribute, const void* value, size_t bytes);
  CublasStatus (*createPreference)(CublasLtPreference*); // cublasLtMatmulPreferenceCreate
  CublasStatus (*destroyPreference)(CublasLtPreference); // cublasLtMatmulPreferenceDestroy
  CublasStatus (*setPreference)(                         // cublasLtMatmulPreferenceSetAttribute
      CublasLtPreference, CublasLtPreferenceAttribute, const void* value, size_t bytes);
  CublasStatus (*choose)( // cublasLtMatmulAlgoGetHeuristic
      CublasLtHandle,
      CublasLtOperation,
      CublasLtLayout a,
      CublasLtLayout b,
      CublasLtLayout c,
      CublasLtLayout d,
      CublasLtPreference,
      int wanted,
      CublasLtChoice* choices,
      int* found);
  CublasStatus (*multiply)( // cublasLtMatmul
      CublasLtHandle,
      CublasLtOperation,
      const void* alpha,
      const void* a,
      CublasLtLayout,
      const void* b,
      CublasLtLayout,
      const void* beta,
      const void* c,
      CublasLtLayout,
      void* d,
      CublasLtLayout,
      const CublasLtAlgorithm*,
      void* workspace,
      size_t workspace_bytes,
      cudaStream_t);
};

/// The library that `choice` names: a path, "none", or null for the one that `cublas` is linked
/// against. NULL if there is none, or no cuBLAS; Error if what was chosen cannot be loaded.
const CublasLt* loadCublasLt(const char* choice, const Cublas* cublas);

} // namespace puone::cuda
