// SPDX-License-Identifier: BSD-3-Clause
// Defines for nvcc what kernels/target.h asks for.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#define PUONE_FN __host__ __device__ inline
#define PUONE_DEVICE __device__
#define PUONE_GLOBAL(threads, blocks) __global__ __launch_bounds__(threads, blocks)
#define PUONE_SHARED __shared__
#define PUONE_NOINLINE __noinline__
#define PUONE_UNROLL _Pragma("unroll")
#define PUONE_ROLLED _Pragma("unroll 1")
#ifdef __CUDA_ARCH__
#define PUONE_ON_DEVICE
#endif

namespace puone::cuda {

/// Throws what kernel_launch() turns into a status, unless `native` is cudaSuccess.
void checkStart(cudaError_t native);

} // namespace puone::cuda

namespace puone::kernels::dialect {

/// Whether the threads of a block wait for each other. Of interest to emulations.
enum class Threads {
  kIndependent,
  kCooperating
};

/// Queues kernel(args...) on `blocks` blocks of `threads` threads.
template <Threads kThreads, class... Parameters>
void start(
    void* stream,
    void (*kernel)(Parameters...),
    uint32_t blocks,
    uint32_t threads,
    Parameters... arguments) {
  void* pointers[] = {static_cast<void*>(&arguments)...};
  puone::cuda::checkStart(cudaLaunchKernel(
      reinterpret_cast<const void*>(kernel),
      dim3(blocks),
      dim3(threads),
      pointers,
      0,
      static_cast<cudaStream_t>(stream)));
}

} // namespace puone::kernels::dialect
