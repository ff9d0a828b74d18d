// SPDX-License-Identifier: BSD-3-Clause
// Matrix products with an epilogue, a bias or a rectifier, by cuBLASLt, for one device.
// Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "drivers/cuda/cublaslt.h"
#include "drivers/cuda/library_handles.h"
#include "kernels/matrix_product.h"

namespace puone::cuda {

/// A handle and what it has planned.
struct FusedBlasHandle;

class FusedBlas {
 public:
  /// The library that PUONE_CUDA_BLASLT names, found at the first product with an epilogue.
  static const CublasLt* library();

  FusedBlas();

  /// Whether it takes the product, which has an epilogue: one of real numbers. The device is
  /// current for CUDA.
  bool takes(const kernels::MatrixProduct& product);
  /// Queues one that it takes; false if the library has no way of doing it. The first product of
  /// each shape and alignment is planned, which allocates memory of the host.
  bool multiply(
      const kernels::MatrixProduct& product, cudaStream_t stream, void* workspace, size_t bytes);

 private:
  LibraryHandles<FusedBlasHandle> handles_;
};

} // namespace puone::cuda
