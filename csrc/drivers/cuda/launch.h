// SPDX-License-Identifier: BSD-3-Clause
// The cuda driver's side of a kernel launch.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "drivers/common/named_kernel.h"
#include "drivers/cuda/device.h"
#include "drivers/cuda/device_errors.h"
#include "kernels/launch.h"

namespace puone::cuda {

class CudaLaunch final : public kernels::Launch {
 public:
  /// Device errors go to `cell`: the stream's, or that of the graph which the stream is captured
  /// into. Workspace comes from `context`, which may be NULL.
  CudaLaunch(
      const NamedKernel& kernel,
      Device& device,
      cudaStream_t stream,
      ErrorCell& cell,
      const puone_launch_context* context)
      : kernel_(kernel), device_(device), stream_(stream), cell_(cell), context_(context) {}
  CudaLaunch(const CudaLaunch&) = delete;
  CudaLaunch& operator=(const CudaLaunch&) = delete;

  /// Runs the kernel's entry function. What it throws leaves as an Error that names the kernel.
  void run(const void* args);

  void* stream() const override {
    return stream_;
  }
  int32_t multiprocessors() const override {
    return device_.multiprocessors;
  }
  void* scratch(size_t bytes) override;
  bool multiplies(const kernels::MatrixProduct& product) override;
  bool multiply(const kernels::MatrixProduct& product) override;
  bool convolve(const kernels::LibraryConvolution& convolution) override;
  kernels::DeviceError deviceError(std::string_view message) override;
  void delay(uint64_t ns) override;

 private:
  /// Starts a kernel of a module.
  void startGenerated(const void* args);

  const NamedKernel& kernel_;
  Device& device_;
  cudaStream_t const stream_;
  ErrorCell& cell_;
  const puone_launch_context* const context_;
};

} // namespace puone::cuda
