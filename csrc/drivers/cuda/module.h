// SPDX-License-Identifier: BSD-3-Clause
// A module that is loaded on a device, by CUDA's runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/common/module_kernels.h"
#include "drivers/common/names.h"
#include "hal/module.h"

namespace puone::cuda {

class Module {
 public:
  /// `code` is what the compiler made; the device is current for CUDA.
  Module(int32_t index, std::string_view code);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Throws Error(UNSUPPORTED), Error(INVALID_ARGUMENT) as find() of hal/module.h. Thread-safe.
  puone_kernel find(const puone_module_kernel& declared, Names& names);
  bool isInGraph();

  const int32_t device;

 private:
  void* library_ = nullptr; // a cudaLibrary_t
  std::mutex mutex_;
  ModuleKernels kernels_; // guarded by mutex_
};

/// Whether CUDA's runtime, as this is compiled against, loads modules.
constexpr bool kLoadsModules = CUDART_VERSION >= 13000;

/// What images are compiled for unless a target is named.
constexpr const char* kUsualTarget = "sm_90";
/// "sm_90" for compute capability 9.0.
std::string targetName(int major, int minor);
/// The options of the compiler. Throws Error(INVALID_ARGUMENT) for what is not a target's name.
std::vector<std::string> compilerOptions(const std::string& target, bool contracts);
/// Whether a device of this compute capability runs code for the target.
bool runs(int major, int minor, std::string_view target);

} // namespace puone::cuda
