// SPDX-License-Identifier: BSD-3-Clause
// Matrix products by the vendor's library, for one device. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "drivers/cuda/cublas.h"
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

  /// Whether it takes the product. The device is current for CUDA.
  bool takes(const kernels::MatrixProduct& product);
  /// Queues one that it takes; false if it turns out to have no way of doing it.
  bool multiply(
      const kernels::MatrixProduct& product, cudaStream_t stream, void* workspace, size_t bytes);

 private:
  /// A handle that nobody else has for as long as this lives: its stream and its workspace are
  /// those of one call. NULL where there is none to be had; waits for one where there are no more.
  class Taken {
   public:
    explicit Taken(Blas& of);
    ~Taken();
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    CublasHandle get() const {
      return handle_;
    }

   private:
    Blas& of_;
    CublasHandle handle_ = nullptr;
  };

  /// Whether there are handles; makes the first one.
  bool isUsable();

  std::mutex mutex_; // of what follows
  std::condition_variable returned_;
  std::vector<CublasHandle> idle_; // never destroyed: CUDA may end before the driver does
  size_t made_ = 0;
  bool has_all_ = false; // no further one can be made
};

} // namespace puone::cuda
