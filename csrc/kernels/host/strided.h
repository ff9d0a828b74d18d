// SPDX-License-Identifier: BSD-3-Clause
// Loops over the elements of strided operands on a host, row by row. A row is a run along the
// innermost dimension: the kernel's inner loop gets a count and one byte stride per operand, and
// the compiler can vectorise it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA {

/// Calls row(data, n) for the runs from element `begin` to `end` of the nest whose first element is
/// at `data`. Runs need not be whole rows; the strides are nest.stride(i).
template <int kOperands, class Row>
void rowsBetween(
    const LoopNest<kOperands>& nest,
    std::type_identity_t<std::array<unsigned char*, kOperands>> data,
    int64_t begin,
    int64_t end,
    const Row& row) {
  std::array<int64_t, PUONE_MAX_DIMS> index{};
  int64_t rest = begin;
  for (int32_t d = 0; d < nest.ndim && rest > 0; ++d) {
    index[d] = rest % nest.sizes[d];
    rest /= nest.sizes[d];
    for (int o = 0; o < kOperands; ++o) data[o] += index[d] * nest.strides[o][d];
  }
  for (int64_t left = end - begin; left > 0;) {
    const int64_t n = std::min(left, nest.sizes[0] - index[0]);
    row(data, n);
    left -= n;
    // Go back to the start of the row, then to the next one.
    for (int o = 0; o < kOperands; ++o) data[o] -= index[0] * nest.strides[o][0];
    index[0] = 0;
    for (int32_t d = 1; d < nest.ndim; ++d) {
      for (int o = 0; o < kOperands; ++o) data[o] += nest.strides[o][d];
      if (++index[d] < nest.sizes[d]) break;
      for (int o = 0; o < kOperands; ++o) data[o] -= nest.strides[o][d] * nest.sizes[d];
      index[d] = 0;
    }
  }
}

/// Calls row(data, n) for runs that cover the nest, spread over cores. `data` has the operands'
/// addresses at the start of the run; the strides are nest.stride(i). Runs need not be whole rows.
template <int kOperands, class Row>
void forRows(Launch& launch, const LoopNest<kOperands>& nest, const Row& row) {
  launch.forRanges(nest.elements(), kGrain, [&](int64_t begin, int64_t end) {
    rowsBetween(nest, nest.data, begin, end, row);
  });
}

/// forRows() for rows that may write the same destination: along dimensions in which operand
/// `shared` has stride 0, one core processes all elements, in order.
template <int kOperands, class Row>
void forRowsInOrder(Launch& launch, const LoopNest<kOperands>& nest, int shared, const Row& row) {
  if (nest.elements() == 0) return;
  LoopNest<kOperands> parallel, ordered;
  int32_t parallel_dims = 0, ordered_dims = 0;
  for (int32_t d = 0; d < nest.ndim; ++d) {
    const bool is_ordered = nest.strides[shared][d] == 0;
    LoopNest<kOperands>& part = is_ordered ? ordered : parallel;
    const int32_t last = is_ordered ? ordered_dims++ : parallel_dims++;
    part.sizes[last] = nest.sizes[d];
    for (int o = 0; o < kOperands; ++o) part.strides[o][last] = nest.strides[o][d];
  }
  parallel.ndim = std::max(parallel_dims, 1);
  ordered.ndim = std::max(ordered_dims, 1);
  const bool rows_are_ordered = nest.strides[shared][0] == 0;
  // The nest whose rows are processed element by element.
  const LoopNest<kOperands>& step = rows_are_ordered ? parallel : ordered;
  const int64_t all_ordered = ordered.elements();
  const auto steps = [&](auto data, int64_t n, const auto& body) {
    for (int64_t i = 0; i < n; ++i) {
      body(data);
      for (int o = 0; o < kOperands; ++o) data[o] += step.stride(o);
    }
  };
  const int64_t grain = std::max<int64_t>(1, kGrain / all_ordered);
  launch.forRanges(parallel.elements(), grain, [&](int64_t begin, int64_t end) {
    rowsBetween(parallel, nest.data, begin, end, [&](const auto& at, int64_t n) {
      if (rows_are_ordered) {
        steps(at, n, [&](const auto& data) { rowsBetween(ordered, data, 0, all_ordered, row); });
      } else {
        rowsBetween(ordered, at, 0, all_ordered, [&](const auto& data, int64_t m) {
          steps(data, m, [&](const auto& start) { row(start, n); });
        });
      }
    });
  });
}

/// Calls tile(data, n0, nd) for tiles of at most kTile0 x kTileD elements along dimensions 0 and
/// `d`, which cover the nest, spread over cores. For operands that are dense along different
/// dimensions: a tile of both fits the first-level cache.
constexpr int64_t kTile0 = 64;
constexpr int64_t kTileD = 16;

template <int kOperands, class Tile>
void forTiles(Launch& launch, const LoopNest<kOperands>& nest, int32_t d, const Tile& tile) {
  LoopNest<kOperands> tiles = nest; // the nest of the tiles' first elements
  const std::array<std::pair<int32_t, int64_t>, 2> tiled{{{0, kTile0}, {d, kTileD}}};
  for (const auto& [dimension, length] : tiled) {
    tiles.sizes[dimension] = (nest.sizes[dimension] + length - 1) / length;
    for (auto& strides : tiles.strides) strides[dimension] *= length;
  }
  launch.forRanges(tiles.elements(), kGrain / (kTile0 * kTileD), [&](int64_t begin, int64_t end) {
    for (int64_t linear = begin; linear < end; ++linear) {
      std::array<int64_t, PUONE_MAX_DIMS> index{};
      auto data = nest.data;
      int64_t rest = linear;
      for (int32_t k = 0; k < nest.ndim; ++k) {
        index[k] = rest % tiles.sizes[k];
        rest /= tiles.sizes[k];
        for (int o = 0; o < kOperands; ++o) data[o] += index[k] * tiles.strides[o][k];
      }
      tile(
          data,
          std::min(kTile0, nest.sizes[0] - index[0] * kTile0),
          std::min(kTileD, nest.sizes[d] - index[d] * kTileD));
    }
  });
}

} // namespace puone::kernels::PUONE_ISA
