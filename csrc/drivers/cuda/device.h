// SPDX-License-Identifier: BSD-3-Clause
// What the driver keeps for a device in use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cuda/blas.h"
#include "drivers/cuda/device_errors.h"
#include "drivers/cuda/dnn.h"
#include "drivers/cuda/event.h"
#include "drivers/cuda/fused_blas.h"
#include "drivers/cuda/native_stream.h"

namespace puone::cuda {

struct Device {
  /// The device is current for CUDA.
  Device(int32_t index, DeviceErrors& errors);

  const int32_t index;
  const int32_t multiprocessors;
  const size_t memory; // bytes in all
  Blas blas;
  FusedBlas fused_blas;
  Dnn dnn;
  EventPool events;
  StreamPool streams;
};

/// Lets kernels and copies of `device`, which is current for CUDA, address memory of `peer`.
/// Does nothing if the devices do not support it.
void enablePeerAccess(int32_t device, int32_t peer);

} // namespace puone::cuda
