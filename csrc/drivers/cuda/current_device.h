// SPDX-License-Identifier: BSD-3-Clause
// The device that is current for CUDA on the calling thread.
//
// CUDA starts kernels and creates objects on it. All users of CUDA in the process share it. An
// entry makes the device that it addresses current and leaves it so: setting it back would cost two
// calls for every launch on any other device than the current one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "drivers/cuda/status.h"

namespace puone::cuda {

inline void makeCurrent(int32_t device) {
  int current = -1;
  check("cudaGetDevice", cudaGetDevice(&current));
  if (current != device) [[unlikely]] {
    check("cudaSetDevice", cudaSetDevice(device));
  }
}

} // namespace puone::cuda
