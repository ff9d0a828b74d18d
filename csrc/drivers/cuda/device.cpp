// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/device.h"

#include <cuda_runtime_api.h>

#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

int32_t attribute(cudaDeviceAttr what, int32_t device) {
  int value = 0;
  check("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&value, what, device));
  return value;
}

size_t totalMemory() {
  size_t available = 0;
  size_t total = 0;
  check("cudaMemGetInfo", cudaMemGetInfo(&available, &total));
  return total;
}

} // namespace

Device::Device(int32_t i, DeviceErrors& errors)
    : index(i),
      multiprocessors(attribute(cudaDevAttrMultiProcessorCount, i)),
      memory(totalMemory()),
      streams(errors) {}

void enablePeerAccess(int32_t device, int32_t peer) {
  int can = 0;
  check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, device, peer));
  if (can == 0) return;
  const cudaError_t native = cudaDeviceEnablePeerAccess(peer, 0);
  if (native == cudaErrorPeerAccessAlreadyEnabled) { // by another user of CUDA in the process
    cudaGetLastError();
    return;
  }
  check("cudaDeviceEnablePeerAccess", native);
}

} // namespace puone::cuda
