// SPDX-License-Identifier: BSD-3-Clause
// What a module that was compiled for the stand-in and the stand-in know of each other. The code of
// a module is a shared object that the loader does not link with the stand-in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace puone::standin {

struct Place;

/// What the module calls, set when it is loaded: puone_standin_hooks.
struct ModuleHooks {
  const Place* (*place)();
  void (*barrier)();
  uint64_t (*exchange)(uint64_t mine, uint32_t lane);
};

/// What it exports for each kernel: puone_standin_<name>.
struct ModuleCall {
  size_t args_size;
  void (*run)(const void* args); // as one thread of the grid
};

} // namespace puone::standin
