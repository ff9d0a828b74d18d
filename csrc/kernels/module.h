// SPDX-License-Identifier: BSD-3-Clause
// Kernels that are compiled while the program runs (hal/module.h). A source defines argument
// structs and kernels; the driver compiles it behind this header, inside of the dialect's
// namespace, so it includes nothing:
//
//   struct Args {
//     Arguments arguments; // first
//     const float *a, *b;
//     float* out;
//     int64_t columns;
//   };
//
//   PUONE_MODULE_MAP(scale, Args) { // one call per i in [0, arguments.count)
//     args.out[i] = args.a[i] * args.b[0];
//   }
//
//   PUONE_MODULE_BLOCKS(row_sums, Args) { // one call per index in [0, arguments.count)
//     const float* row = args.a + index * args.columns;
//     const float sum = block.reduce(
//         args.columns,
//         0.0f,
//         [=](int64_t j) { return row[j]; },
//         [](float x, float y) { return x + y; });
//     block.once([&] { args.out[index] = sum; });
//   }
//
// The idioms are those of map.h and blocks.h; a kernel is one of them. together(a, b) and
// combineEach(f, g) let a block reduce several values in one pass. A block can also reduce the
// columns of a matrix, kModuleColumns at most: see ModuleBlock in host/module.h. Addresses are used
// as they are: the driver has made them fit for the device. There are the types and casts of
// types.h, the functions of math.h, and for generators of code the operations of operations.h.
#pragma once

#include <cstdint>

#include "kernels/blocks.h"
#include "kernels/device_error.h"
#include "kernels/isa.h"
#include "kernels/map.h"
#include "kernels/math.h"
#include "kernels/operations.h"
#include "kernels/target.h"
#include "kernels/together.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// The first member of an argument struct: puone_module_arguments of hal/module.h.
struct Arguments {
  static constexpr int kErrors = 4;

  ErrorRecord* record;
  int64_t count;
  int64_t work;
  uint32_t codes[kErrors];

  /// Raises the error of this number. The caller goes on without the invalid access.
  PUONE_FN void raise(int error, int64_t a = 0, int64_t b = 0) const {
    DeviceError{record, codes[error]}.raise(a, b);
  }
  /// Whether 0 <= index < size. If not, it raises the error with both numbers.
  PUONE_FN bool check(int error, int64_t index, int64_t size) const {
    if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size)) return true;
    raise(error, index, size);
    return false;
  }
};

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/module.h"
#else
#include "kernels/host/module.h"
#endif

/// Defines the map kernel `name`: what follows is its body, for `args` and `i`.
#define PUONE_MODULE_MAP(name, Args)                      \
  struct name##_body {                                    \
    Args args;                                            \
    PUONE_MODULE_FN void operator()(int64_t i) const;     \
  };                                                      \
  PUONE_MODULE_EXPORT(name, Args, name##_body, ModuleMap) \
  PUONE_MODULE_FN void name##_body::operator()(int64_t i) const

/// Defines the block kernel `name`: what follows is its body, for `args`, `block` and `index`.
#define PUONE_MODULE_BLOCKS(name, Args)                                             \
  struct name##_body {                                                              \
    Args args;                                                                      \
    PUONE_MODULE_FN void operator()(const ModuleBlock& block, int64_t index) const; \
  };                                                                                \
  PUONE_MODULE_EXPORT(name, Args, name##_body, ModuleBlocks)                        \
  PUONE_MODULE_FN void name##_body::operator()(const ModuleBlock& block, int64_t index) const
