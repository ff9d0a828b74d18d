// SPDX-License-Identifier: BSD-3-Clause
// What the stand-ins for cuBLAS and cuBLASLt compute, with the plainest of loops.
#pragma once

#include <library_types.h>

#include <atomic>
#include <cstddef>
#include <functional>

#include "drivers/cuda/cublas.h"
#include "standin.h"

namespace fake {

/// NULL until the stand-in for CUDA's runtime has given them (PUONE_STANDIN_LIBRARY).
extern std::atomic<const StandinServices*> services;

struct Factor {
  puone::cuda::CublasOperation operation;
  const void* data;
  int leading;
  long long stride;
};

/// Columns are dense. `bias`, if there is one, is added to each column; if `rectified`, 0 takes the
/// place of what is less.
struct Product {
  int m, n, k, batch;
  Factor a, b;
  void* c;
  int c_leading;
  long long c_stride;
  const void* bias = nullptr;
  bool rectified = false;
};

/// Whether lengths and leading dimensions are what the libraries accept.
bool isLegal(const Product& product);

/// The work of a product of elements of a type, which reads alpha and beta at once; nothing for
/// types that the libraries do not combine.
std::function<void()> work(
    const Product& product,
    const void* alpha,
    const void* beta,
    cudaDataType type,
    puone::cuda::CublasCompute sum);

} // namespace fake
