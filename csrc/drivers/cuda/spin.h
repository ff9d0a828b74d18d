// SPDX-License-Identifier: BSD-3-Clause
// Device work that does nothing for a while.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace puone::cuda {

/// Queues work that lasts `ns` from its start on, on the device that is current for CUDA.
cudaError_t spin(cudaStream_t stream, uint64_t ns);

} // namespace puone::cuda
