// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/spin.h"

namespace puone::cuda {
namespace {

__device__ uint64_t nowNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spinKernel(uint64_t ns) {
  const uint64_t start = nowNs();
  for (uint64_t passed = 0; passed < ns; passed = nowNs() - start) {
    const uint64_t left = ns - passed;
    // Long waits release the multiprocessor; a sleep may last twice the requested time.
    if (left > 20'000) __nanosleep(5'000);
  }
}

} // namespace

cudaError_t spin(cudaStream_t stream, uint64_t ns) {
  void* arguments[] = {&ns};
  return cudaLaunchKernel(
      reinterpret_cast<const void*>(&spinKernel), dim3(1), dim3(1), arguments, 0, stream);
}

} // namespace puone::cuda
