// SPDX-License-Identifier: BSD-3-Clause
// Kernels of modules on a host: each is a constant that the shared object exports.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/host/blocks.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/module_entry.h"
#include "kernels/strided.h"

/// Bodies are inlined into the loops, which then vectorise.
#define PUONE_MODULE_FN __attribute__((always_inline)) inline

namespace puone::kernels::PUONE_ISA {

// As map() and blocks(), but each core has a copy of the arguments, which no output can alias.

struct ModuleMap {
  template <class Body>
  static void run(Launch& launch, const Body& body) {
    launch.forRanges(body.args.arguments.count, kGrain, [&](int64_t begin, int64_t end) {
      const Body own = body;
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) own(i);
    });
  }
};

struct ModuleBlocks {
  template <class Body>
  static void run(Launch& launch, const Body& body) {
    const int64_t work = body.args.arguments.work;
    const int64_t grain = kGrain / (work > 0 ? work : 1);
    const int64_t least = grain > 0 ? grain : 1;
    launch.forRanges(body.args.arguments.count, least, [&](int64_t begin, int64_t end) {
      const Body own = body;
      const Block block;
      for (int64_t index = begin; index < end; ++index) own(block, index);
    });
  }
};

} // namespace puone::kernels::PUONE_ISA

#define PUONE_MODULE_EXPORT(name, Args, Body, Idiom)                                             \
  static_assert(offsetof(Args, arguments) == 0, "the arguments must come first");                \
  extern "C" __attribute__((visibility("default"), used)) const ModuleEntry puone_module_##name; \
  const ModuleEntry puone_module_##name = {sizeof(Args), [](Launch& launch, const void* args) {  \
                                             Idiom::run(                                         \
                                                 launch, Body{*static_cast<const Args*>(args)}); \
                                           }};
