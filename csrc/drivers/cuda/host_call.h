// SPDX-License-Identifier: BSD-3-Clause
// A function of the host in the order of a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>

#include "drivers/cuda/device_errors.h"

namespace puone::cuda {

struct HostCall {
  std::function<void()> function;
  const ErrorCell& cell; // once it has a failure that was not reported, the function is not run
};

/// Queues a call once; it destroys itself.
void queueOnce(cudaStream_t stream, std::unique_ptr<HostCall> call);

/// Queues a call that may run any number of times, as part of a graph that keeps it.
void queueKept(cudaStream_t stream, HostCall& call);

/// Whether the calling thread is inside a host call, where CUDA must not be called.
bool inHostCall() noexcept;

} // namespace puone::cuda
