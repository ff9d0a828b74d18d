// SPDX-License-Identifier: BSD-3-Clause
// The list of device kernels, for a driver's kernel_find() and kernel_launch().
#pragma once

#include <cstddef>
#include <span>

#include "kernels/launch.h"

namespace puone::kernels {

struct Kernel {
  const char* name;
  size_t args_size;  // of the kernel's struct in args.h
  void (*run)(Launch& launch, const void* args);
};

/// Every kernel, ordered by name.
std::span<const Kernel> all();

/// The kernel of that name, or nullptr.
const Kernel* find(const char* name);

}  // namespace puone::kernels
