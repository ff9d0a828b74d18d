// SPDX-License-Identifier: BSD-3-Clause
// What a module for a host exports, as puone_module_<kernel>, for each of its kernels.
#pragma once

#include <cstddef>

#include "kernels/launch.h"

namespace puone::kernels {

struct ModuleEntry {
  size_t args_size;
  void (*run)(Launch& launch, const void* args);
};

} // namespace puone::kernels
