// SPDX-License-Identifier: BSD-3-Clause
// What the driver and its kernels ask of a device beyond CUDA's runtime.
#include <chrono>
#include <thread>
#include <utility>

#include "drivers/cuda/spin.h"
#include "drivers/cuda/status.h"
#include "simt_dialect.h"
#include "standin.h"

namespace puone::standin {

void startGrid(
    void* stream, uint32_t blocks, uint32_t threads, bool together, std::function<void()> body) {
  cuda::checkStart(standinEnqueue(static_cast<cudaStream_t>(stream), [=, body = std::move(body)] {
    runGrid(blocks, threads, together, body);
  }));
}

} // namespace puone::standin

namespace puone::cuda {

cudaError_t spin(cudaStream_t stream, uint64_t ns) {
  return standinEnqueue(stream, [=] { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); });
}

} // namespace puone::cuda
