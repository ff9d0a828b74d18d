// SPDX-License-Identifier: BSD-3-Clause
// Convolutions by cuDNN, for one device. Thread-safe.
#pragma once

#include <cstddef>

#include "drivers/cuda/cudnn.h"
#include "drivers/cuda/library_handles.h"
#include "kernels/launch.h"
#include "kernels/library_convolution.h"

namespace puone::cuda {

/// A handle and what it has planned.
struct DnnHandle;

class Dnn {
 public:
  /// The library that PUONE_CUDA_DNN names, found at the first convolution.
  static const Cudnn* library();

  Dnn();

  /// Queues the convolution on the launch's stream, with workspace of the launch; false if the
  /// library has no way of doing it, and then nothing was queued. The device is current for CUDA.
  /// The first convolution of each shape is planned, which allocates memory of the host.
  bool convolve(const kernels::LibraryConvolution& convolution, kernels::Launch& launch);

 private:
  LibraryHandles<DnnHandle> handles_;
};

} // namespace puone::cuda
