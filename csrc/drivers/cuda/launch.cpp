// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/launch.h"

#include <cstring>
#include <stdexcept>
#include <vector>

#include "drivers/common/error.h"
#include "drivers/common/generated_kernel.h"
#include "drivers/cuda/current_device.h"
#include "drivers/cuda/spin.h"
#include "drivers/cuda/status.h"
#include "kernels/simt/geometry.h"

namespace puone::cuda {

void CudaLaunch::run(const void* args) {
  try {
    if (kernel_.generated != nullptr) {
      startGenerated(args);
    } else {
      kernel_.kernel.run(*this, args);
    }
  } catch (const Error& error) {
    throw Error{error.status, kernel_.name + ": " + error.text};
  } catch (const std::invalid_argument& error) {
    throw Error{PUONE_INVALID_ARGUMENT, kernel_.name + ": " + error.what()};
  } catch (const std::exception& error) {
    throw Error{PUONE_INTERNAL, kernel_.name + ": " + error.what()};
  }
}

void CudaLaunch::startGenerated(const void* args) {
  const auto* const bytes = static_cast<const unsigned char*>(args);
  std::vector<unsigned char> prepared(bytes, bytes + kernel_.kernel.args_size);
  kernel_.generated->prepare(prepared.data(), *this);
  puone_module_arguments first;
  std::memcpy(&first, prepared.data(), sizeof first);
  if (first.count <= 0) return;
  const kernels::Geometry grid = kernels::moduleGeometry(first.count, first.work);
  void* arguments[] = {prepared.data()};
  check(
      "cudaLaunchKernel",
      cudaLaunchKernel(
          kernel_.generated->native(),
          dim3(grid.blocks),
          dim3(grid.threads),
          arguments,
          0,
          stream_));
}

void* CudaLaunch::scratch(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (context_ == nullptr) {
    fail(
        PUONE_OUT_OF_MEMORY,
        "it needs %s of workspace, and the launch has no context to take it from",
        humanBytes(bytes).c_str());
  }
  void* memory = nullptr;
  const puone_status status = context_->allocate(context_->user, bytes, &memory);
  if (status != PUONE_OK) {
    fail(status, "the launch context gave no %s of workspace", humanBytes(bytes).c_str());
  }
  makeCurrent(device_.index); // the callback may have called the driver for another device
  return memory;
}

bool CudaLaunch::multiplies(const kernels::MatrixProduct& product) {
  if (context_ == nullptr) return false;
  return product.hasEpilogue() ? device_.fused_blas.takes(product) : device_.blas.takes(product);
}

bool CudaLaunch::multiply(const kernels::MatrixProduct& product) {
  void* const workspace = scratch(Blas::kWorkspace);
  return product.hasEpilogue()
             ? device_.fused_blas.multiply(product, stream_, workspace, Blas::kWorkspace)
             : device_.blas.multiply(product, stream_, workspace, Blas::kWorkspace);
}

bool CudaLaunch::convolve(const kernels::LibraryConvolution& convolution) {
  return context_ != nullptr && device_.dnn.convolve(convolution, *this);
}

kernels::DeviceError CudaLaunch::deviceError(std::string_view message) {
  return {&cell_.record(), cell_.errors().code(kernel_.name, message)};
}

void CudaLaunch::delay(uint64_t ns) {
  check("cudaLaunchKernel", spin(stream_, ns));
}

} // namespace puone::cuda
