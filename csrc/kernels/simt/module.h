// SPDX-License-Identifier: BSD-3-Clause
// Kernels of modules on a device: functions that the driver finds by name and starts on as many
// blocks and threads as geometry.h has for the arguments.
#pragma once

#include <cstdint>

#include "kernels/simt/blocks.h"
#include "kernels/simt/geometry.h"
#include "kernels/target.h"

/// For an emulation of devices: one more function for each kernel.
#ifndef PUONE_MODULE_CALL
#define PUONE_MODULE_CALL(name, Args)
#endif

#define PUONE_MODULE_FN PUONE_DEVICE inline

namespace puone::kernels::PUONE_ISA {

struct ModuleMap {
  template <class Body>
  PUONE_DEVICE static void run(const Body& body) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < body.args.arguments.count) body(i);
  }
};

struct ModuleBlocks {
  template <class Body>
  PUONE_DEVICE static void run(const Body& body) {
    const Block block;
    const int64_t count = body.args.arguments.count;
    for (int64_t index = blockIdx.x; index < count; index += gridDim.x) body(block, index);
  }
};

} // namespace puone::kernels::PUONE_ISA

#define PUONE_MODULE_EXPORT(name, Args, Body, Idiom)                                            \
  extern "C" {                                                                                  \
  PUONE_GLOBAL PUONE_RESIDENT(kMaxModuleThreads, 1) void puone_module_##name(const Args args) { \
    Idiom::run(Body{args});                                                                     \
  }                                                                                             \
  PUONE_MODULE_CALL(name, Args)                                                                 \
  }
