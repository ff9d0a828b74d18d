// SPDX-License-Identifier: BSD-3-Clause
// The cuda driver's side of a kernel launch.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>
#include <vector>

#include "drivers/cuda/device.h"
#include "drivers/cuda/faults.h"
#include "kernels/contract.h"
#include "kernels/kernels.h"

namespace puone::cuda {

/// What stands behind a puone_kernel: a kernel and the name its launches fail under.
struct NamedKernel {
  kernels::Kernel kernel;
  const kernels::KernelContract& contract;
  std::string name; // "kernel copy"
};

class CudaLaunch final : public kernels::Launch {
 public:
  /// Faults go to `cell`: the stream's, or that of the graph which the stream is captured into.
  CudaLaunch(const NamedKernel& kernel, Device& device, cudaStream_t stream, FaultCell& cell)
      : kernel_(kernel), device_(device), stream_(stream), cell_(cell) {}
  ~CudaLaunch();
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
  kernels::Fault fault(std::string_view message) override;
  void delay(uint64_t ns) override;

 private:
  const NamedKernel& kernel_;
  Device& device_;
  cudaStream_t const stream_;
  FaultCell& cell_;
  std::vector<void*> scratch_;
};

} // namespace puone::cuda
