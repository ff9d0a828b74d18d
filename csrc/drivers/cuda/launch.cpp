// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/launch.h"

#include <stdexcept>

#include "drivers/common/error.h"
#include "drivers/cuda/spin.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {

CudaLaunch::~CudaLaunch() {
  for (void* memory : scratch_) ScratchPool::free(memory, stream_);
}

void CudaLaunch::run(const void* args) {
  try {
    kernel_.kernel.run(*this, args);
  } catch (const Error& error) {
    throw Error{error.status, kernel_.name + ": " + error.text};
  } catch (const std::invalid_argument& error) {
    throw Error{PUONE_INVALID_ARGUMENT, kernel_.name + ": " + error.what()};
  } catch (const std::exception& error) {
    throw Error{PUONE_INTERNAL, kernel_.name + ": " + error.what()};
  }
}

void* CudaLaunch::scratch(size_t bytes) {
  if (bytes == 0) return nullptr;
  scratch_.reserve(scratch_.size() + 1); // so that no memory is lost
  scratch_.push_back(device_.scratch.allocate(bytes, stream_));
  return scratch_.back();
}

bool CudaLaunch::multiplies(const kernels::MatrixProduct& product) {
  return device_.blas.takes(product);
}

bool CudaLaunch::multiply(const kernels::MatrixProduct& product) {
  return device_.blas.multiply(product, stream_, scratch(Blas::kWorkspace), Blas::kWorkspace);
}

kernels::Fault CudaLaunch::fault(std::string_view message) {
  return {&cell_.record(), cell_.faults().code(kernel_.name, message)};
}

void CudaLaunch::delay(uint64_t ns) {
  check("cudaLaunchKernel", spin(stream_, ns));
}

} // namespace puone::cuda
