// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/host_call.h"

#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

thread_local bool in_host_call = false;

void CUDART_CB runKept(void* argument) {
  const auto& call = *static_cast<const HostCall*>(argument);
  if (call.cell.isRaised()) return;
  in_host_call = true;
  call.function();
  in_host_call = false;
}

void CUDART_CB runOnce(void* argument) {
  const std::unique_ptr<HostCall> call(static_cast<HostCall*>(argument));
  runKept(call.get());
}

} // namespace

void queueOnce(cudaStream_t stream, std::unique_ptr<HostCall> call) {
  // It may have run, and gone, before the call that queues it returns.
  HostCall* raw = call.release();
  const cudaError_t native = cudaLaunchHostFunc(stream, runOnce, raw);
  if (native != cudaSuccess) call.reset(raw);
  check("cudaLaunchHostFunc", native);
}

void queueKept(cudaStream_t stream, HostCall& call) {
  check("cudaLaunchHostFunc", cudaLaunchHostFunc(stream, runKept, &call));
}

bool inHostCall() noexcept {
  return in_host_call;
}

} // namespace puone::cuda
