// SPDX-License-Identifier: BSD-3-Clause
// What a driver's puone_kernel handles point to.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "drivers/common/error.h"
#include "hal/hal.h"
#include "kernels/kernels.h"

namespace puone {

class GeneratedKernel;

/// A kernel and the name that error messages of its launches use.
struct NamedKernel {
  kernels::Kernel kernel;
  std::string name;                           // "kernel copy"
  const GeneratedKernel* generated = nullptr; // if it is of a module
};

inline std::vector<NamedKernel> withNames(std::span<const kernels::Kernel> kernels) {
  std::vector<NamedKernel> named;
  for (const kernels::Kernel& kernel : kernels) {
    named.push_back({kernel, std::string("kernel ") + kernel.name});
  }
  return named;
}

/// kernel_find(). The handle is good as long as `kernels` is neither changed nor moved.
inline puone_kernel findKernel(
    std::span<const NamedKernel> kernels, const char* name, puone_kernel_info* info) {
  for (const NamedKernel& named : kernels) {
    if (std::strcmp(named.kernel.name, name) != 0) continue;
    info->version = named.kernel.version;
    info->element_types = named.kernel.element_types;
    info->args_size = named.kernel.args_size;
    return reinterpret_cast<puone_kernel>(&named);
  }
  fail(PUONE_UNSUPPORTED, "no kernel is named %.100s", name);
}

/// What findKernel() gave.
inline const NamedKernel& kernelOf(puone_kernel handle) {
  return *reinterpret_cast<const NamedKernel*>(handle);
}

} // namespace puone
