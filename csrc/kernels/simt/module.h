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
#include "kernels/simt/shared.h"
#include "kernels/target.h"

/// For an emulation of devices: one more function for each kernel.
#ifndef PUONE_MODULE_CALL
#define PUONE_MODULE_CALL(name, Args)
#endif

#define PUONE_MODULE_FN PUONE_DEVICE inline
#define PUONE_MODULE_LAMBDA PUONE_DEVICE

namespace puone::kernels::PUONE_ISA {

/// Shared memory for a value of each thread, in which threads find each other's.
template <class T>
PUONE_DEVICE T* perThread() {
  PUONE_SHARED SharedArray<T, kMaxModuleThreads> values;
  return values.data();
}

/// A block that also has rows, columns and tiles. Its threads are spread over them without a
/// division for each element.
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
    T mine = identity;
    forRows(rows, length, [&](int64_t row, int64_t i) { mine = combine(mine, load(row, i)); });
    return all(mine, combine);
  }

  /// Mean of load(0) ... load(n - 1), and sum of squared deviations from it. Each is loaded once,
  /// so that load() may store in place. In double: means may be large against deviations.
  template <class Load>
  PUONE_DEVICE ops::Moments<float> moments(int64_t n, float /*zero*/, const Load& load) const {
    ops::Moments<double> mine{0, 0, 0};
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      mine = ops::welford_add(mine, static_cast<double>(load(i)));
    }
    return allMoments(mine);
  }

  /// The same for rows of `length` elements: load(row, i).
  template <class Load>
  PUONE_DEVICE ops::Moments<float> momentsRows(
      int64_t rows, int64_t length, float /*zero*/, const Load& load) const {
    ops::Moments<double> mine{0, 0, 0};
    forRows(rows, length, [&](int64_t row, int64_t i) {
      mine = ops::welford_add(mine, static_cast<double>(load(row, i)));
    });
    return allMoments(mine);
  }

  /// Calls f(row, i) for all rows and i of [0, length).
  template <class F>
  PUONE_DEVICE void eachOfRows(int64_t rows, int64_t length, const F& f) const {
    forRows(rows, length, f);
    __syncthreads();
  }

  /// The same in an order for memory in which rows, too, are neighbours: a warp has tiles of
  /// kTileRows rows.
  template <class F>
  PUONE_DEVICE void eachOfTiles(int64_t rows, int64_t length, const F& f) const {
    constexpr uint32_t kTileRows = 8, kTileLength = kWarpThreads / kTileRows;
    const uint32_t lane = threadIdx.x % kWarpThreads;
    const int64_t first = threadIdx.x / kWarpThreads * kTileLength + lane / kTileRows;
    const int64_t step = blockDim.x / kTileRows;
    for (int64_t i = first; i < length; i += step) {
      for (int64_t row = lane % kTileRows; row < rows; row += kTileRows) f(row, i);
    }
    __syncthreads();
  }

  /// As eachOfTiles(), where f writes neighbours for neighbouring rows: a line of memory is read
  /// and written by one warp in either case.
  template <class F>
  PUONE_DEVICE void eachOfTilesAcross(int64_t rows, int64_t length, const F& f) const {
    eachOfTiles(rows, length, f);
  }

  /// Calls f(column, i) for all columns of [0, width) and i of [0, n), as reduceColumns() has
  /// columns.
  template <class F>
  PUONE_DEVICE void eachOfColumns(int64_t width, int64_t n, const F& f) const {
    if (width > blockDim.x) {
      each(width, [&](int64_t column) {
        for (int64_t i = 0; i < n; ++i) f(column, i);
      });
      return;
    }
    const Lane lane(width);
    for (int64_t i = lane.number; i < n; i += lane.count) f(lane.column, i);
    __syncthreads();
  }

  /// Calls f(column) in all threads of the column: for what each of them keeps.
  template <class F>
  PUONE_DEVICE void eachColumn(int64_t width, const F& f) const {
    if (width > blockDim.x) return each(width, f);
    f(Lane(width).column);
  }

  /// out[column]: the combination of load(column, 0) ... load(column, n - 1), in all threads of the
  /// column.
  template <class T, class Load, class Combine>
  PUONE_DEVICE void reduceColumns(
      int64_t width, int64_t n, T identity, const Load& load, const Combine& combine, T* out)
      const {
    if (width > blockDim.x) {
      each(width, [&](int64_t column) {
        T all = identity;
        for (int64_t i = 0; i < n; ++i) all = combine(all, load(column, i));
        out[column] = all;
      });
      return;
    }
    const Lane lane(width);
    T mine = identity;
    for (int64_t i = lane.number; i < n; i += lane.count) {
      mine = combine(mine, load(lane.column, i));
    }
    T* const lanes = perThread<T>();
    lanes[threadIdx.x] = mine;
    __syncthreads();
    mine = lanes[lane.column];
    for (int64_t l = 1; l < lane.count; ++l) mine = combine(mine, lanes[l * width + lane.column]);
    out[lane.column] = mine;
    __syncthreads();
  }

 private:
  /// Of all threads. The mean of nothing is NaN.
  PUONE_DEVICE ops::Moments<float> allMoments(const ops::Moments<double>& mine) const {
    const auto combine = [](const ops::Moments<double>& a, const ops::Moments<double>& b) {
      return ops::welford_combine(a, b);
    };
    const ops::Moments<double> moments = all(mine, combine);
    return {
        moments.count == 0 ? kNaN<float> : static_cast<float>(moments.mean),
        static_cast<float>(moments.squares),
        static_cast<float>(moments.count)};
  }

  /// A thread's column, of `width` <= blockDim.x, and its number among the `count` threads that
  /// share the column; neighbours have neighbouring columns. Threads that are left over have a
  /// number beyond all elements.
  struct Lane {
    PUONE_DEVICE explicit Lane(int64_t width) {
      const auto columns = static_cast<uint32_t>(width);
      const uint32_t lanes = blockDim.x / columns, lane = threadIdx.x / columns;
      count = lanes;
      number = lane < lanes ? lane : INT64_MAX;
      column = threadIdx.x % columns;
    }
    int64_t count, number, column;
  };

  template <class F>
  PUONE_DEVICE void forRows(int64_t rows, int64_t length, const F& f) const {
    if (length >= blockDim.x) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = threadIdx.x; i < length; i += blockDim.x) f(row, i);
      }
      return;
    }
    if (length == 0) return;
    const Lane lane(length);
    for (int64_t row = lane.number; row < rows; row += lane.count) f(row, lane.column);
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

#define PUONE_MODULE_EXPORT(name, Args, Body, Idiom)                             \
  extern "C" {                                                                   \
  PUONE_GLOBAL(kMaxModuleThreads, 1) void puone_module_##name(const Args args) { \
    Idiom::run(Body{args});                                                      \
  }                                                                              \
  PUONE_MODULE_CALL(name, Args)                                                  \
  }
