// SPDX-License-Identifier: BSD-3-Clause
// Kernels of modules on a device: functions that the driver finds by name and starts on as many
// blocks and threads as geometry.h has for the arguments.
#pragma once

#include <bit>
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
  /// What threads computed before, one of them may overwrite now.
  template <class F>
  PUONE_DEVICE void once(const F& f) const {
    __syncthreads();
    Block::once(f);
  }

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
    each(width, [=](int64_t column) PUONE_DEVICE {
      for (int64_t i = 0; i < n; ++i) f(column, i);
    });
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
  if constexpr (std::is_same_v<E, float> || std::is_same_v<E, double>) {
    atomicAdd(at, write<E>(value));
  } else if constexpr (sizeof(E) == 8) {
    atomicAdd(
        reinterpret_cast<unsigned long long*>(at),
        static_cast<unsigned long long>(write<E>(value)));
  } else if constexpr (sizeof(E) == 4) {
    atomicAdd(reinterpret_cast<unsigned*>(at), static_cast<unsigned>(write<E>(value)));
  } else {
    // Devices exchange words: the element is a part of one.
    const auto address = reinterpret_cast<uintptr_t>(at);
    auto* const word = reinterpret_cast<unsigned*>(address & ~uintptr_t{3});
    const unsigned shift = 8 * static_cast<unsigned>(address & 3);
    const unsigned mask = (sizeof(E) == 1 ? 0xffu : 0xffffu) << shift;
    using Bits = std::conditional_t<sizeof(E) == 1, uint8_t, uint16_t>;
    unsigned old = *word, seen;
    do {
      seen = old;
      const E before = std::bit_cast<E>(static_cast<Bits>((seen & mask) >> shift));
      const E after = write<E>(add(read(before), value));
      const unsigned bits = unsigned{std::bit_cast<Bits>(after)} << shift;
      old = atomicCAS(word, seen, (seen & ~mask) | bits);
    } while (old != seen);
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
