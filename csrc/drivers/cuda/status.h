// SPDX-License-Identifier: BSD-3-Clause
// What CUDA's error codes mean in the HAL, and which devices are lost.
//
// A sticky error (an illegal address, an uncorrectable memory error ...) ruins the device's context
// for the rest of the process: the device counts as lost from then on, with the first such error as
// the reason. Every other error leaves no trace, neither here nor in cudaGetLastError().
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "hal/hal.h"

namespace puone::cuda {

puone_status statusOf(cudaError_t native);

/// "cudaMalloc: cudaErrorMemoryAllocation (2): out of memory".
std::string errorText(const char* call, cudaError_t native);

/// Throws an Error unless `native`, the result of `call`, is cudaSuccess. A sticky error loses the
/// device that is current for CUDA on the calling thread.
void check(const char* call, cudaError_t native);

/// As check() of a query: false for cudaErrorNotReady.
bool isDone(const char* call, cudaError_t native);

/// check() of a kernel's start; what starts kernels declares it too (simt_dialect.h).
void checkStart(cudaError_t native);

/// As check() where no error can be returned: a loss is noted, anything else is ignored.
void note(const char* call, cudaError_t native) noexcept;

/// Throws Error(DEVICE_LOST) with the reason if the device is lost.
void checkAlive(int32_t device);
bool isLost(int32_t device) noexcept;

/// More devices than this are not used.
constexpr int32_t kMaxDevices = 64;

} // namespace puone::cuda
