// SPDX-License-Identifier: BSD-3-Clause
// The matrix product on a device: a block computes a tile of the result. Both factors' parts of it
// go through shared memory, one step of the depth at a time, while the next step is being fetched;
// every thread keeps a small tile of sums in registers. Used by product.h and convolution.h, which
// differ in how they fetch the factors and in what they do with a sum.
//
// A result of few tiles is split along the depth as well, and a second kernel adds up the partial
// sums. The order of the sums depends only on the sizes and the device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/compute.h"
#include "kernels/launch.h"
#include "kernels/simt/map.h"
#include "kernels/simt/stored.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// A block's tile and a thread's part of it.
template <class T, int kRows_, int kColumns_, int kDepth_, int kThreadRows_, int kThreadColumns_>
struct TileShape {
  using Value = T;
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kDepth = kDepth_; // of a step
  static constexpr int kThreadRows = kThreadRows_;
  static constexpr int kThreadColumns = kThreadColumns_;
  static constexpr int kThreadsDown = kRows / kThreadRows;
  static constexpr int kThreadsAcross = kColumns / kThreadColumns;
  static constexpr int kThreads = kThreadsDown * kThreadsAcross;
  static constexpr int kBlocks = sizeof(T) == 16 ? 1 : 2; // resident on a multiprocessor
};

using WideTile = TileShape<float, 128, 128, 16, 8, 8>;
using FlatTile = TileShape<float, 32, 128, 16, 4, 4>;
template <class T>
using SquareTile = TileShape<T, 64, 64, sizeof(T) == 16 ? 8 : 16, 4, 4>;

/// Results with more rows than this use the wide tile.
constexpr int64_t kFlatRows = 32;

/// Calls body(shape) with the shape of the tiles for results of `rows` rows.
template <class T, class Body>
void withTileShape(int64_t rows, const Body& body) {
  if constexpr (!std::is_same_v<T, float>) {
    body(SquareTile<T>());
  } else if (rows <= kFlatRows) {
    body(FlatTile());
  } else {
    body(WideTile());
  }
}

/// The elements of a factor that a thread fetches in one step. A factor is seen as rows times
/// depth: the right one is seen transposed, so that its columns are rows here.
struct Piece {
  int64_t image; // index in the batch
  int64_t row;   // of the first element
  int64_t k;
  int32_t row_step; // from each element to the next
  int32_t k_step;
  int32_t rows; // of the factor, from `row` on
  int32_t depth;

  /// Whether the e-th element exists; missing ones are zero.
  PUONE_DEVICE bool has(int e) const {
    return e * row_step < rows && e * k_step < depth;
  }
};

/// A factor in memory with constant strides, in bytes.
template <class T>
struct StridedFactor {
  StoredAs<T> stored;
  const unsigned char* data;
  int64_t image_stride;
  int64_t row_stride;
  int64_t depth_stride;
  bool conj;

  /// Whether neighbouring threads should fetch elements along the depth.
  bool isAlongDepth() const {
    return std::abs(depth_stride) < std::abs(row_stride);
  }

  template <int kCount>
  PUONE_DEVICE void fetch(const Piece& piece, T (&out)[kCount]) const {
    const unsigned char* at =
        data + piece.image * image_stride + piece.row * row_stride + piece.k * depth_stride;
    const int64_t step = piece.row_step * row_stride + piece.k_step * depth_stride;
    stored.visit([&]<class E>(Type<E>) {
      PUONE_UNROLL
      for (int e = 0; e < kCount; ++e) {
        out[e] = piece.has(e) ? cast<T>(load<E>(at + e * step)) : T{};
      }
    });
    if constexpr (kIsComplex<T>) {
      if (!conj) return;
      PUONE_UNROLL
      for (int e = 0; e < kCount; ++e) out[e] = conjugated(out[e]);
    }
  }
};

/// How the work on `images` results of rows x columns is divided into blocks.
struct TileGrid {
  int64_t images;
  int64_t rows;
  int64_t columns;
  int64_t depth;
  int64_t row_tiles;
  int64_t column_tiles;
  int64_t splits;      // of the depth
  int64_t split_depth; // of each but the last

  int64_t blocks() const {
    return images * row_tiles * column_tiles * splits;
  }
  PUONE_FN int64_t elements() const {
    return images * rows * columns;
  }
};

/// Splits the depth if there are too few tiles to fill the device.
template <class Shape>
TileGrid tileGrid(
    const Launch& launch, int64_t images, int64_t rows, int64_t columns, int64_t depth) {
  constexpr int64_t kLeastDepth = 16 * Shape::kDepth; // of a split
  const auto tilesOf = [](int64_t length, int64_t tile) { return (length + tile - 1) / tile; };
  TileGrid grid{
      images,
      rows,
      columns,
      depth,
      tilesOf(rows, Shape::kRows),
      tilesOf(columns, Shape::kColumns),
      1,
      depth};
  const int64_t wanted = 2 * launch.multiprocessors() / grid.blocks();
  const int64_t splits = std::min(wanted, depth / kLeastDepth);
  if (splits <= 1) return grid;
  grid.split_depth = tilesOf(tilesOf(depth, splits), Shape::kDepth) * Shape::kDepth;
  grid.splits = tilesOf(depth, grid.split_depth);
  return grid;
}

namespace detail {

/// What a thread fetches of a factor's kRows x kDepth elements per step.
template <int kRows, int kDepth, int kThreads>
struct FetchPlan {
  static constexpr int kCount = kRows * kDepth / kThreads;
  static_assert(kThreads % kRows == 0 && kThreads % kDepth == 0 && kCount > 0);

  PUONE_DEVICE explicit FetchPlan(bool along_depth) {
    const int t = static_cast<int>(threadIdx.x);
    row = along_depth ? t / kDepth : t % kRows;
    k = along_depth ? t % kDepth : t / kRows;
    row_step = along_depth ? kThreads / kDepth : 0;
    k_step = along_depth ? 0 : kThreads / kRows;
  }

  PUONE_DEVICE Piece
  piece(int64_t image, int64_t first_row, int64_t rows, int64_t first_k, int64_t end) const {
    const auto left = [](int64_t all, int64_t from) {
      return static_cast<int32_t>(all - from < kRows + kDepth ? all - from : kRows + kDepth);
    };
    return {
        image,
        first_row + row,
        first_k + k,
        row_step,
        k_step,
        left(rows, first_row + row),
        left(end, first_k + k)};
  }

  template <class T, int kPitch>
  PUONE_DEVICE void store(const T (&elements)[kCount], T (&panel)[kDepth][kPitch]) const {
    PUONE_UNROLL
    for (int e = 0; e < kCount; ++e) panel[k + e * k_step][row + e * row_step] = elements[e];
  }

  int row, k, row_step, k_step;
};

/// Elements in 16 bytes of shared memory, at least one.
template <class T>
constexpr int kVectorElements = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
template <class T>
struct alignas(16) TileVector {
  T values[kVectorElements<T>];
};

/// Both factors' parts of two steps: the current one and the one that is being fetched.
template <class Shape>
struct Panels {
  using T = typename Shape::Value;
  static constexpr int kPad = kVectorElements<T>;
  alignas(16) T left[2][Shape::kDepth][Shape::kRows + kPad];
  alignas(16) T right[2][Shape::kDepth][Shape::kColumns + kPad];
};

/// The index in a tile of a thread's i-th row (or column): neighbouring threads read neighbouring
/// vectors.
template <class T, int kThreads>
PUONE_DEVICE int indexInTile(int thread, int i) {
  constexpr int kWidth = kVectorElements<T>;
  return i / kWidth * kThreads * kWidth + thread * kWidth + i % kWidth;
}

template <class T, int kThreads, int kRows>
PUONE_DEVICE void readPanel(const T* panel, int thread, T (&out)[kRows]) {
  PUONE_UNROLL
  for (int i = 0; i < kRows; i += kVectorElements<T>) {
    const T* from = panel + indexInTile<T, kThreads>(thread, i);
    const auto vector = *reinterpret_cast<const TileVector<T>*>(from);
    PUONE_UNROLL
    for (int j = 0; j < kVectorElements<T>; ++j) out[i + j] = vector.values[j];
  }
}

/// Adds the products of one step to a thread's sums.
template <class Shape, class T = typename Shape::Value>
PUONE_DEVICE void accumulate(
    const Panels<Shape>& panels,
    int buffer,
    int down,
    int across,
    T (&sums)[Shape::kThreadRows][Shape::kThreadColumns]) {
  constexpr int kUnrolled = 4; // more costs compile time and registers
  static_assert(Shape::kDepth % kUnrolled == 0);
  PUONE_ROLLED
  for (int first = 0; first < Shape::kDepth; first += kUnrolled) {
    PUONE_UNROLL
    for (int k = 0; k < kUnrolled; ++k) {
      T left[Shape::kThreadRows], right[Shape::kThreadColumns];
      readPanel<T, Shape::kThreadsDown>(panels.left[buffer][first + k], down, left);
      readPanel<T, Shape::kThreadsAcross>(panels.right[buffer][first + k], across, right);
      PUONE_UNROLL
      for (int i = 0; i < Shape::kThreadRows; ++i) {
        PUONE_UNROLL
        for (int j = 0; j < Shape::kThreadColumns; ++j) {
          sums[i][j] = plus(sums[i][j], times(left[i], right[j]));
        }
      }
    }
  }
}

/// Calls finish(image, row, column, sum) for every element, or stores partial sums in `partial`.
template <class Shape, class Left, class Right, class Finish>
struct TileProduct {
  using T = typename Shape::Value;
  TileGrid grid;
  Left left;
  Right right;
  Finish finish;
  T* partial; // [split][image][row][column]; unused with one split
  bool left_along_depth;
  bool right_along_depth;
};

template <class Shape, class Left, class Right, class Finish>
PUONE_GLOBAL(Shape::kThreads, Shape::kBlocks)
void tileKernel(TileProduct<Shape, Left, Right, Finish> product) {
  using T = typename Shape::Value;
  using LeftPlan = FetchPlan<Shape::kRows, Shape::kDepth, Shape::kThreads>;
  using RightPlan = FetchPlan<Shape::kColumns, Shape::kDepth, Shape::kThreads>;
  PUONE_SHARED Panels<Shape> panels;

  const TileGrid& grid = product.grid;
  int64_t index = blockIdx.x;
  const int64_t row = index % grid.row_tiles * Shape::kRows;
  index /= grid.row_tiles;
  const int64_t column = index % grid.column_tiles * Shape::kColumns;
  index /= grid.column_tiles;
  const int64_t split = index % grid.splits;
  const int64_t image = index / grid.splits;
  const int64_t begin = split * grid.split_depth;
  const int64_t end = begin + grid.split_depth < grid.depth ? begin + grid.split_depth : grid.depth;

  const LeftPlan left_plan(product.left_along_depth);
  const RightPlan right_plan(product.right_along_depth);
  T left[LeftPlan::kCount], right[RightPlan::kCount];
  const int down = static_cast<int>(threadIdx.x) / Shape::kThreadsAcross;
  const int across = static_cast<int>(threadIdx.x) % Shape::kThreadsAcross;
  T sums[Shape::kThreadRows][Shape::kThreadColumns] = {};
  int buffer = 1;
  for (int64_t k = begin; k < end + Shape::kDepth; k += Shape::kDepth) {
    const bool more = k < end;
    if (more) {
      product.left.fetch(left_plan.piece(image, row, grid.rows, k, end), left);
      product.right.fetch(right_plan.piece(image, column, grid.columns, k, end), right);
    }
    if (k > begin) accumulate<Shape>(panels, buffer, down, across, sums);
    if (more) {
      buffer ^= 1;
      left_plan.store(left, panels.left[buffer]);
      right_plan.store(right, panels.right[buffer]);
    }
    __syncthreads();
  }

  // A few rows of the tile at a time, so that neighbouring threads finish neighbouring columns.
  using Stage = T[Shape::kThreadsDown][Shape::kColumns];
  static_assert(sizeof(Stage) <= sizeof panels.left);
  auto& stage = reinterpret_cast<Stage&>(panels.left);
  T* const partial = product.partial + (split * grid.images + image) * grid.rows * grid.columns;
  PUONE_UNROLL
  for (int i = 0; i < Shape::kThreadRows; ++i) {
    PUONE_UNROLL
    for (int j = 0; j < Shape::kThreadColumns; ++j) {
      stage[down][indexInTile<T, Shape::kThreadsAcross>(across, j)] = sums[i][j];
    }
    __syncthreads();
    constexpr int kStaged = Shape::kThreadsDown * Shape::kColumns;
    for (int e = static_cast<int>(threadIdx.x); e < kStaged; e += Shape::kThreads) {
      const int64_t r = row + indexInTile<T, Shape::kThreadsDown>(e / Shape::kColumns, i);
      const int64_t c = column + e % Shape::kColumns;
      if (r >= grid.rows || c >= grid.columns) continue;
      const T sum = stage[e / Shape::kColumns][e % Shape::kColumns];
      if (grid.splits > 1) {
        partial[r * grid.columns + c] = sum;
      } else {
        product.finish(image, r, c, sum);
      }
    }
    __syncthreads();
  }
}

/// Adds up the partial sums of an element.
template <class T, class Finish>
struct SumSplits {
  PUONE_DEVICE void operator()(int64_t i) const {
    const int64_t elements = grid.elements();
    T sum = partial[i];
    for (int64_t split = 1; split < grid.splits; ++split) {
      sum = plus(sum, partial[split * elements + i]);
    }
    const int64_t row = i / grid.columns;
    finish(row / grid.rows, row % grid.rows, i % grid.columns, sum);
  }
  TileGrid grid;
  const T* partial;
  Finish finish;
};

} // namespace detail

/// Calls finish(image, row, column, sum) for every element of the products that `grid` describes.
template <class Shape, class Left, class Right, class Finish>
void multiply(
    Launch& launch,
    const TileGrid& grid,
    const Left& left,
    const Right& right,
    const Finish& finish) {
  using T = typename Shape::Value;
  T* partial = nullptr;
  if (grid.splits > 1) {
    partial = static_cast<T*>(launch.scratch(grid.splits * grid.elements() * sizeof(T)));
  }
  dialect::start<dialect::Threads::kCooperating>(
      launch.stream(),
      detail::tileKernel<Shape, Left, Right, Finish>,
      static_cast<uint32_t>(grid.blocks()),
      static_cast<uint32_t>(Shape::kThreads),
      detail::TileProduct<Shape, Left, Right, Finish>{
          grid, left, right, finish, partial, left.isAlongDepth(), right.isAlongDepth()});
  if (grid.splits > 1) {
    map(launch, grid.elements(), detail::SumSplits<T, Finish>{grid, partial, finish});
  }
}

} // namespace puone::kernels::PUONE_ISA
