// SPDX-License-Identifier: BSD-3-Clause
// The dialect for the source of a module: that of the kernels, in a library of its own, which finds
// the stand-in by pointers (modules.h).
#pragma once

#include "../modules.h"
#include "../simt_dialect.h"

#define PUONE_EXPORTED extern "C" __attribute__((visibility("default"), used))

PUONE_EXPORTED puone::standin::ModuleHooks puone_standin_hooks;
puone::standin::ModuleHooks puone_standin_hooks;

namespace puone::standin {

thread_local Place place; // a copy of the stand-in's, which is that of the fiber that runs

inline void takePlace() {
  place = *puone_standin_hooks.place();
}

void barrier() {
  puone_standin_hooks.barrier();
  takePlace();
}

uint64_t exchange(uint64_t mine, uint32_t lane) {
  const uint64_t brought = puone_standin_hooks.exchange(mine, lane);
  takePlace();
  return brought;
}

} // namespace puone::standin

#define PUONE_MODULE_CALL(name, Args)                                        \
  __attribute__((                                                            \
      visibility("default"),                                                 \
      used)) extern const ::puone::standin::ModuleCall puone_standin_##name; \
  const ::puone::standin::ModuleCall puone_standin_##name = {                \
      sizeof(Args), [](const void* args) {                                   \
        ::puone::standin::takePlace();                                       \
        puone_module_##name(*static_cast<const Args*>(args));                \
      }};
