// SPDX-License-Identifier: BSD-3-Clause
// Memory that a kernel needs while it runs, allocated and freed in stream order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace puone::cuda {

/// A memory pool of the device's own, apart from the default one that others may use.
class ScratchPool {
 public:
  explicit ScratchPool(int32_t device) : device_(device) {}
  ~ScratchPool();

  void* allocate(size_t bytes, cudaStream_t stream);
  static void free(void* memory, cudaStream_t stream) noexcept;

 private:
  cudaMemPool_t pool();

  const int32_t device_;
  std::once_flag created_;
  cudaMemPool_t pool_ = nullptr;
};

} // namespace puone::cuda
