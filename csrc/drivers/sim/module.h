// SPDX-License-Identifier: BSD-3-Clause
// A module: a shared object that is loaded from memory. Guarded by the scheduler's lock.
#pragma once

#include <cstdint>
#include <string_view>

#include "drivers/common/module_kernels.h"
#include "drivers/common/names.h"
#include "hal/module.h"

namespace puone::sim {

class Module {
 public:
  /// `object` is the bytes of a shared object. Throws Error(INTERNAL) if it cannot be loaded.
  Module(int32_t device, std::string_view object);
  ~Module() {
    close();
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  int32_t device() const {
    return device_;
  }
  /// Throws Error(UNSUPPORTED), Error(INVALID_ARGUMENT) as find() of hal/module.h.
  puone_kernel find(const puone_module_kernel& declared, Names& names);
  bool isInGraph() const {
    return kernels_.areShared();
  }
  /// Unloads the code. The handles of the kernels stay addresses of their own.
  void close();

 private:
  const int32_t device_;
  void* library_;
  ModuleKernels kernels_;
};

} // namespace puone::sim
