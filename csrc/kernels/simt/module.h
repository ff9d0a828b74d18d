// SPDX-License-Identifier: BSD-3-Clause
// Kernels of modules on a device: functions that the driver finds by name and starts on as many
// blocks and threads as geometry.h has for the arguments.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/operations.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/geometry.h"
#include "kernels/target.h"

/// For an emulation of devices: one more function for each kernel.
#ifndef PUONE_MODULE_CALL
#define PUONE_MODULE_CALL(name, Args)
#endif

#define PUONE_MODULE_FN PUONE_DEVICE inline

namespace puone::kernels::PUONE_ISA {

/// A block, with rows, whose elements are one sequence for the threads, and with columns, of which
/// each has one thread.
class ModuleBlock : public Block {
 public:
  template <class T, class Load, class Combine>
  PUONE_DEVICE T reduceRows(
      int64_t rows, int64_t length, T identity, const Load& load, const Combine& combine) const {
    return reduce(
        rows * length,
        identity,
        [=](int64_t i) PUONE_DEVICE { return load(i / length, i % length); },
        combine);
  }

  /// Calls f(row, i) for all rows and i of [0, length).
  template <class F>
  PUONE_DEVICE void eachOfRows(int64_t rows, int64_t length, const F& f) const {
    each(rows * length, [=](int64_t i) PUONE_DEVICE { f(i / length, i % length); });
  }
  template <class F>
  PUONE_DEVICE void eachOfTiles(int64_t rows, int64_t length, const F& f) const {
    eachOfRows(rows, length, f);
  }

  /// Calls f(column, i) for all columns of [0, width) and i of [0, n).
  template <class F>
  PUONE_DEVICE void eachOfColumns(int64_t width, int64_t n, const F& f) const {
    each(width * n, [=](int64_t i) PUONE_DEVICE { f(i % width, i / width); });
  }

  /// out[column]: the combination of load(column, 0) ... load(column, n - 1), for the thread that
  /// each() calls for the column.
  template <class T, class Load, class Combine>
  PUONE_DEVICE void reduceColumns(
      int64_t width, int64_t n, T identity, const Load& load, const Combine& combine, T* out)
      const {
    each(width, [=](int64_t column) PUONE_DEVICE {
      T all = identity;
      for (int64_t i = 0; i < n; ++i) all = combine(all, load(column, i));
      out[column] = all;
    });
  }
};

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
    const ModuleBlock block;
    const int64_t count = body.args.arguments.count;
    for (int64_t index = blockIdx.x; index < count; index += gridDim.x) body(block, index);
  }
};

namespace ops {

/// *at = write(read(*at) + value), as one step.
template <class E, class V>
PUONE_DEVICE inline void atomic_add(E* at, V value) {
  const E addend = write<E>(value);
  if constexpr (std::is_integral_v<E> && sizeof(E) == 8) {
    atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(addend));
  } else if constexpr (std::is_integral_v<E> && sizeof(E) == 4) {
    atomicAdd(reinterpret_cast<unsigned*>(at), static_cast<unsigned>(addend));
  } else {
    atomicAdd(at, addend); // float and double
  }
}

} // namespace ops
} // namespace puone::kernels::PUONE_ISA

#define PUONE_MODULE_EXPORT(name, Args, Body, Idiom)                                            \
  extern "C" {                                                                                  \
  PUONE_GLOBAL PUONE_RESIDENT(kMaxModuleThreads, 1) void puone_module_##name(const Args args) { \
    Idiom::run(Body{args});                                                                     \
  }                                                                                             \
  PUONE_MODULE_CALL(name, Args)                                                                 \
  }
