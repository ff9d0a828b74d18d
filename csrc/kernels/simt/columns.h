// SPDX-License-Identifier: BSD-3-Clause
// Sums over the columns of a matrix on a device, in two stages. The order of the sums depends only
// on the sizes and the device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/elementwise.h"
#include "kernels/launch.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/map.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

using TwoSums = Pair<double, double>;

namespace detail {

constexpr int64_t kColumnWarps = 8;

struct Columns {
  int64_t rows, columns;
  int64_t splits; // parts of the rows, one block each
  PUONE_FN int64_t tiles() const {
    return (columns + kWarpThreads - 1) / kWarpThreads;
  }
};

/// Calls put(split, column, sums of value(row, column) over the split's rows).
template <class Value, class Put>
PUONE_GLOBAL(kColumnWarps* kWarpThreads, 1)
void columnsKernel(Columns matrix, Value value, Put put) {
  constexpr int kAtOnce = 4;
  const int64_t tiles = matrix.tiles(), split = blockIdx.x / tiles;
  const uint32_t lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  const int64_t column = blockIdx.x % tiles * kWarpThreads + lane;
  const int64_t step = matrix.splits * kColumnWarps;
  TwoSums sums{0, 0};
  if (column < matrix.columns) {
    int64_t row = split * kColumnWarps + warp;
    for (; row + (kAtOnce - 1) * step < matrix.rows; row += kAtOnce * step) {
      TwoSums values[kAtOnce];
      PUONE_UNROLL
      for (int i = 0; i < kAtOnce; ++i) values[i] = value(row + i * step, column);
      PUONE_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        sums.first += values[i].first;
        sums.second += values[i].second;
      }
    }
    for (; row < matrix.rows; row += step) {
      const TwoSums values = value(row, column);
      sums.first += values.first;
      sums.second += values.second;
    }
  }
  PUONE_SHARED double shared[2][kColumnWarps][kWarpThreads];
  shared[0][warp][lane] = sums.first;
  shared[1][warp][lane] = sums.second;
  __syncthreads();
  if (warp != 0 || column >= matrix.columns) return;
  for (int64_t w = 1; w < kColumnWarps; ++w) {
    sums.first += shared[0][w][lane];
    sums.second += shared[1][w][lane];
  }
  put(split, column, sums);
}

template <class Value, class Put>
void startColumns(Launch& launch, const Columns& matrix, const Value& value, const Put& put) {
  dialect::start<dialect::Threads::kCooperating>(
      launch.stream(),
      columnsKernel<Value, Put>,
      static_cast<uint32_t>(matrix.tiles() * matrix.splits),
      static_cast<uint32_t>(kColumnWarps * kWarpThreads),
      matrix,
      value,
      put);
}

struct KeepSums {
  PUONE_DEVICE void operator()(int64_t split, int64_t column, const TwoSums& sums) const {
    at[split * columns + column] = sums;
  }
  TwoSums* at;
  int64_t columns;
};

struct KeptSums {
  PUONE_DEVICE TwoSums operator()(int64_t split, int64_t column) const {
    return at[split * columns + column];
  }
  const TwoSums* at;
  int64_t columns;
};

} // namespace detail

/// Calls finish(0, column, sums of value(row, column) over all rows) for each column.
template <class Value, class Finish>
void columnSums(
    Launch& launch, int64_t rows, int64_t columns, const Value& value, const Finish& finish) {
  if (columns <= 0) return;
  detail::Columns matrix{rows, columns, 1};
  // Enough blocks to fill the device, but at least four rows per thread.
  const int64_t wanted = (8 * launch.multiprocessors() + matrix.tiles() - 1) / matrix.tiles();
  const int64_t possible = rows / (4 * detail::kColumnWarps);
  matrix.splits = std::max<int64_t>(1, std::min(wanted, possible));
  if (matrix.splits == 1) return detail::startColumns(launch, matrix, value, finish);
  const auto bytes = static_cast<size_t>(matrix.splits * columns) * sizeof(TwoSums);
  auto* const kept = static_cast<TwoSums*>(launch.scratch(bytes));
  detail::startColumns(launch, matrix, value, detail::KeepSums{kept, columns});
  const detail::Columns partial{matrix.splits, columns, 1};
  detail::startColumns(launch, partial, detail::KeptSums{kept, columns}, finish);
}

} // namespace puone::kernels::PUONE_ISA
