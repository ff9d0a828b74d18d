// SPDX-License-Identifier: BSD-3-Clause
// What the driver calls of cuBLAS (12 and 13). Its headers are not needed to build, nor is it to
// run: it is found when a product is wanted first.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>

namespace puone::cuda {

enum class CublasStatus : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kArchMismatch = 8,
  kExecutionFailed = 13,
  kInternalError = 14,
  kNotSupported = 15
};

enum class CublasOperation : int {
  kNone = 0,
  kTransposed = 1,
  kConjugateTransposed = 2
};

/// What sums are, and for TF32 what factors are rounded to.
enum class CublasCompute : int {
  kFloat = 68,
  kDouble = 70,
  kFloatOfTf32 = 77
};

/// Of cublasSetMathMode. By default a product of floats is one of floats, unless it asks for TF32.
constexpr int kCublasDefaultMath = 0;
/// Partial sums of 16-bit floats are not rounded to 16 bits.
constexpr int kCublasExactPartialSums = 16;
constexpr int kCublasDefaultAlgorithm = -1;

using CublasHandle = struct CublasContext*;

/// The library and its functions, by their names in it.
struct Cublas {
  void* library;                                             // what dlopen() gave
  CublasStatus (*create)(CublasHandle*);                     // cublasCreate_v2
  CublasStatus (*setStream)(CublasHandle, cudaStream_t);     // cublasSetStream_v2
  CublasStatus (*setWorkspace)(CublasHandle, void*, size_t); // cublasSetWorkspace_v2
  CublasStatus (*setMathMode)(CublasHandle, int);            // cublasSetMathMode
  CublasStatus (*multiply)(                                  // cublasGemmEx
      CublasHandle,
      CublasOperation,
      CublasOperation,
      int m,
      int n,
      int k,
      const void* alpha,
      const void* a,
      cudaDataType,
      int a_leading,
      const void* b,
      cudaDataType,
      int b_leading,
      const void* beta,
      void* c,
      cudaDataType,
      int c_leading,
      CublasCompute,
      int algorithm);
  CublasStatus (*multiplyBatch)( // cublasGemmStridedBatchedEx
      CublasHandle,
      CublasOperation,
      CublasOperation,
      int m,
      int n,
      int k,
      const void* alpha,
      const void* a,
      cudaDataType,
      int a_leading,
      long long a_stride,
      const void* b,
      cudaDataType,
      int b_leading,
      long long b_stride,
      const void* beta,
      void* c,
      cudaDataType,
      int c_leading,
      long long c_stride,
      int batch,
      CublasCompute,
      int algorithm);
};

/// The library that `choice` names: a path, "none", or null for the one that is in the process
/// already, on the loader's path or installed beside torch. NULL if there is none; Error if what
/// was chosen cannot be loaded.
const Cublas* loadCublas(const char* choice);

} // namespace puone::cuda
