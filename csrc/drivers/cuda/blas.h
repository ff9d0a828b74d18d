// SPDX-License-Identifier: BSD-3-Clause
// Matrix products by the vendor's library, for one device. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "drivers/cuda/cublas.h"
#include "drivers/cuda/library_handles.h"
#include "kernels/matrix_product.h"

namespace puone::cuda {

class Blas {
 public:
  /// Memory that a product may use while it runs: given to each, so that products on different
  /// streams do not share it, and a graph owns what it replays with. The size that NVIDIA
  /// recommends for Hopper.
  static constexpr size_t kWorkspace = size_t{32} << 20;

  /// The library that PUONE_CUDA_BLAS names, found at the first product.
  static const Cublas* library();

  Blas();

  /// Whether it takes the product, which has no epilogue. The device is current for CUDA.
  bool takes(const kernels::MatrixProduct& product);
  /// Queues one that it takes; false if it turns out to have no way of doing it.
  bool multiply(
      const kernels::MatrixProduct& product, cudaStream_t stream, void* workspace, size_t bytes);

 private:
  LibraryHandles<CublasContext> handles_;
};

} // namespace puone::cuda
