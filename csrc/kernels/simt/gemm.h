// SPDX-License-Identifier: BSD-3-Clause
// The matrix product on a device: a block computes a tile of the result. Both factors' parts of it
// go through shared memory, one step of the depth at a time, while the next ones are on their way;
// the block's threads keep the sums in registers. Used by product.h and convolution.h, which differ
// in how they fetch the factors and in what they do with a sum.
//
// The next step is fetched into registers, which may convert, gather or round it; or, of two
// factors of which every part can be (AlignedFactor), the next ones are copied to shared memory
// while threads do something else.
//
// A result of few tiles is split along the depth as well, and a second kernel adds up the partial
// sums. The order of the sums depends only on the sizes and the device.
//
// How a block computes its tile is the type Tile: scalar_tile.h and tensor_tile.h.
//
//   Sum                                type of the sums
//   kRows, kColumns, kDepth            of the tile, and of a step
//   kThreads                           of a block
//   kBlocks, kGatheringBlocks          to fit on a multiprocessor: where both factors have
//                                      vectors, and where one has none
//   kCopied                            whether factors are copied: they are AlignedFactor then
//   kBuffers                           for as many steps; 2 if they are not copied
//   Shared                             shared memory: left[kBuffers] and right[kBuffers]
//   isAlongDepth(factor)               how a factor's parts are arranged: for Part and Sums::add()
//   Part<Factor, rows>(factor, along)  a factor's part of a step, in registers: fetch(), store()
//   Copier<Factor, rows>(...)          the same of a factor that is copied: start()
//   Sums                               what a thread has of the sums: add() takes a step;
//   kStages, kStageRows, kStagePitch   stage() writes a few rows of the tile, row() says which
//
// A factor has isAlongDepth(), whether neighbouring threads should fetch along the depth, and
// fetch(); with kHasVectors also vector(), for elements that lie side by side.
//
// Finish is called with a sum. If it has kRun, and inRuns() says so of a result, run() takes as
// many sums of neighbouring columns; the results have no others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "kernels/compute.h"
#include "kernels/launch.h"
#include "kernels/simt/map.h"
#include "kernels/simt/stored.h"
#include "kernels/simt/tensor.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

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

/// The piece from (row, k) on, of a factor of `rows` rows and a step that ends before `end`.
PUONE_DEVICE inline Piece pieceAt(
    int64_t image,
    int64_t row,
    int64_t rows,
    int64_t k,
    int64_t end,
    int32_t row_step,
    int32_t k_step) {
  const auto left = [](int64_t all, int64_t from) {
    constexpr int64_t kMost = 1 << 16; // more than a step has
    return static_cast<int32_t>(all - from < kMost ? all - from : kMost);
  };
  return {image, row, k, row_step, k_step, left(rows, row), left(end, k)};
}

/// A factor in memory with constant strides, in bytes.
struct StridedMemory {
  const unsigned char* data;
  int64_t image_stride;
  int64_t row_stride;
  int64_t depth_stride;

  bool isAlongDepth() const {
    return std::abs(depth_stride) < std::abs(row_stride);
  }
  PUONE_DEVICE const unsigned char* at(const Piece& piece) const {
    return data + piece.image * image_stride + piece.row * row_stride + piece.k * depth_stride;
  }
};

/// One of any elements. As: StoredAs or StoredOnlyAs.
template <class T, class As>
struct StridedFactor : StridedMemory {
  static constexpr bool kHasVectors = true;

  As stored;
  bool conj;

  PUONE_DEVICE int64_t step(const Piece& piece) const {
    return piece.row_step * row_stride + piece.k_step * depth_stride;
  }

  /// Where elements of `size` bytes lie side by side in 16 bytes that can be read at once; else
  /// NULL.
  PUONE_DEVICE const unsigned char* vector(const Piece& piece, int size) const {
    const unsigned char* const from = at(piece);
    const bool dense = step(piece) == size && piece.has(16 / size - 1);
    return dense && reinterpret_cast<uintptr_t>(from) % 16 == 0 ? from : nullptr;
  }

  template <int kCount>
  PUONE_DEVICE void fetch(const Piece& piece, T (&out)[kCount]) const {
    const unsigned char* const from = at(piece);
    const int64_t step = this->step(piece);
    stored.visit([&]<class E>(Type<E>) {
      PUONE_UNROLL
      for (int e = 0; e < kCount; ++e) {
        out[e] = piece.has(e) ? cast<T>(load<E>(from + e * step)) : T{};
      }
    });
    if constexpr (kIsComplex<T>) {
      if (!conj) return;
      PUONE_UNROLL
      for (int e = 0; e < kCount; ++e) out[e] = conjugated(out[e]);
    }
  }
};

/// One of elements of type E that are side by side along the depth or along the rows, in runs of 16
/// aligned bytes.
template <class E>
struct AlignedFactor : StridedMemory {
  static constexpr bool kHasVectors = true;
  static constexpr int kSize = sizeof(E);

  /// The factor, if it is one. The stride of a single image does not count.
  static std::optional<AlignedFactor> of(const StridedMemory& memory, int64_t images) {
    const bool along = memory.isAlongDepth();
    const int64_t dense = along ? memory.depth_stride : memory.row_stride;
    const int64_t other = along ? memory.row_stride : memory.depth_stride;
    const auto start = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory.data) % 16);
    const bool aligned =
        start == 0 && other % 16 == 0 && (images == 1 || memory.image_stride % 16 == 0);
    return dense == kSize && aligned ? std::optional(AlignedFactor{memory}) : std::nullopt;
  }

  /// How many bytes of the piece's run exist.
  PUONE_DEVICE static int bytes(const Piece& piece) {
    if (!piece.has(0)) return 0;
    const int32_t there = kSize * (piece.row_step != 0 ? piece.rows : piece.depth);
    return there < 16 ? there : 16;
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
template <class Tile>
TileGrid tileGrid(
    const Launch& launch, int64_t images, int64_t rows, int64_t columns, int64_t depth) {
  constexpr int64_t kLeastDepth = 16 * Tile::kDepth; // of a split
  const auto tilesOf = [](int64_t length, int64_t tile) { return (length + tile - 1) / tile; };
  TileGrid grid{
      images,
      rows,
      columns,
      depth,
      tilesOf(rows, Tile::kRows),
      tilesOf(columns, Tile::kColumns),
      1,
      depth};
  const int64_t wanted = 2 * launch.multiprocessors() / grid.blocks();
  const int64_t splits = std::min(wanted, depth / kLeastDepth);
  if (splits <= 1) return grid;
  grid.split_depth = tilesOf(tilesOf(depth, splits), Tile::kDepth) * Tile::kDepth;
  grid.splits = tilesOf(depth, grid.split_depth);
  return grid;
}

namespace detail {

/// Calls finish(image, row, column, sum) for every element, or stores partial sums in `partial`.
template <class Tile, class Left, class Right, class Finish>
struct TileProduct {
  TileGrid grid;
  Left left;
  Right right;
  Finish finish;
  typename Tile::Sum* partial; // [split][image][row][column]; unused with one split
  bool left_along_depth;
  bool right_along_depth;
};

template <class Tile, class Left, class Right>
struct BlocksOf {
  static constexpr bool kGathers = !Left::kHasVectors || !Right::kHasVectors;
  static constexpr int kCount = kGathers ? Tile::kGatheringBlocks : Tile::kBlocks;
};

/// What a block computes.
struct TileWork {
  int64_t image;
  int64_t row;
  int64_t column;
  int64_t begin; // of the depth
  int64_t end;
};

/// A step is fetched into registers while the one before is multiplied.
template <class Tile, class Left, class Right>
struct FetchedSteps {
  template <class Product>
  PUONE_DEVICE static void sum(
      const Product& product,
      const TileWork& work,
      typename Tile::Shared& shared,
      typename Tile::Sums& sums) {
    const bool left_along = product.left_along_depth, right_along = product.right_along_depth;
    typename Tile::template Part<Left, Tile::kRows> left(product.left, left_along);
    typename Tile::template Part<Right, Tile::kColumns> right(product.right, right_along);
    int buffer = 1;
    for (int64_t k = work.begin; k < work.end + Tile::kDepth; k += Tile::kDepth) {
      const bool more = k < work.end;
      if (more) {
        left.fetch(work.image, work.row, product.grid.rows, k, work.end);
        right.fetch(work.image, work.column, product.grid.columns, k, work.end);
      }
      if (k > work.begin) {
        sums.add(shared.left[buffer], left_along, shared.right[buffer], right_along);
      }
      if (more) {
        buffer ^= 1;
        left.store(shared.left[buffer]);
        right.store(shared.right[buffer]);
      }
      __syncthreads();
    }
  }
};

/// The next steps, one less than there are buffers, are being copied while one is multiplied. A
/// group of copies for each step, which is empty behind the last one.
template <class Tile, class Left, class Right>
struct CopiedSteps {
  template <class Product>
  PUONE_DEVICE static void sum(
      const Product& product,
      const TileWork& work,
      typename Tile::Shared& shared,
      typename Tile::Sums& sums) {
    constexpr int kBuffers = Tile::kBuffers;
    const bool left_along = product.left_along_depth, right_along = product.right_along_depth;
    const typename Tile::template Copier<Left, Tile::kRows> left(product.left, left_along);
    const typename Tile::template Copier<Right, Tile::kColumns> right(product.right, right_along);
    const auto start = [&](int buffer, int64_t k) {
      if (k < work.end) {
        left.start(shared.left[buffer], work.image, work.row, product.grid.rows, k, work.end);
        right.start(
            shared.right[buffer], work.image, work.column, product.grid.columns, k, work.end);
      }
      dialect::closeCopies();
    };
    PUONE_UNROLL
    for (int ahead = 0; ahead < kBuffers - 1; ++ahead) {
      start(ahead, work.begin + ahead * Tile::kDepth);
    }
    int buffer = 0;
    for (int64_t k = work.begin; k < work.end; k += Tile::kDepth) {
      dialect::awaitCopies<kBuffers - 2>();
      __syncthreads(); // all have waited, and have multiplied what the next copies replace
      const int last = buffer == 0 ? kBuffers - 1 : buffer - 1;
      start(last, k + (kBuffers - 1) * Tile::kDepth);
      sums.add(shared.left[buffer], left_along, shared.right[buffer], right_along);
      buffer = buffer == kBuffers - 1 ? 0 : buffer + 1;
    }
    __syncthreads();
  }
};

template <class Tile, class Left, class Right>
using StepsOf = std::
    conditional_t<Tile::kCopied, CopiedSteps<Tile, Left, Right>, FetchedSteps<Tile, Left, Right>>;

/// How many neighbouring columns Finish takes at once.
template <class Finish>
constexpr int runOf() {
  if constexpr (requires { Finish::kRun; }) return Finish::kRun;
  return 1;
}

template <class Tile, class Left, class Right, class Finish>
PUONE_GLOBAL(Tile::kThreads, (BlocksOf<Tile, Left, Right>::kCount))
void tileKernel(TileProduct<Tile, Left, Right, Finish> product) {
  using T = typename Tile::Sum;
  PUONE_SHARED typename Tile::Shared shared;

  const TileGrid& grid = product.grid;
  int64_t index = blockIdx.x;
  const int64_t row = index % grid.row_tiles * Tile::kRows;
  index /= grid.row_tiles;
  const int64_t column = index % grid.column_tiles * Tile::kColumns;
  index /= grid.column_tiles;
  const int64_t split = index % grid.splits;
  const int64_t image = index / grid.splits;
  const int64_t begin = split * grid.split_depth;
  const int64_t end = begin + grid.split_depth < grid.depth ? begin + grid.split_depth : grid.depth;
  typename Tile::Sums sums;
  StepsOf<Tile, Left, Right>::sum(product, {image, row, column, begin, end}, shared, sums);

  // A few rows of the tile at a time, so that neighbouring threads finish neighbouring columns.
  using Stage = T[Tile::kStageRows][Tile::kStagePitch];
  static_assert(sizeof(Stage) <= sizeof shared);
  auto& stage = reinterpret_cast<Stage&>(shared);
  constexpr int kRun = runOf<Finish>();
  static_assert(kRun == 1 || (Tile::kColumns % kRun == 0 && Tile::kStagePitch % 4 == 0));
  bool in_runs = false;
  if constexpr (kRun > 1) in_runs = product.finish.inRuns(grid.columns);
  T* const partial = product.partial + (split * grid.images + image) * grid.rows * grid.columns;
  PUONE_UNROLL
  for (int i = 0; i < Tile::kStages; ++i) {
    sums.stage(stage, i);
    __syncthreads();
    constexpr int kStaged = Tile::kStageRows * Tile::kColumns;
    const auto element = [&](int e, const auto& f) {
      const int64_t r = row + Tile::Sums::row(e / Tile::kColumns, i);
      const int64_t c = column + e % Tile::kColumns;
      if (r < grid.rows && c < grid.columns) {
        f(r, c, &stage[e / Tile::kColumns][e % Tile::kColumns]);
      }
    };
    const int thread = static_cast<int>(threadIdx.x);
    if (grid.splits > 1) {
      for (int e = thread; e < kStaged; e += Tile::kThreads) {
        element(
            e, [&](int64_t r, int64_t c, const T* sum) { partial[r * grid.columns + c] = *sum; });
      }
    } else if (in_runs) {
      if constexpr (kRun > 1) {
        for (int e = thread * kRun; e < kStaged; e += Tile::kThreads * kRun) {
          element(e, [&](int64_t r, int64_t c, const T* sums) {
            product.finish.run(image, r, c, sums);
          });
        }
      }
    } else {
      for (int e = thread; e < kStaged; e += Tile::kThreads) {
        element(e, [&](int64_t r, int64_t c, const T* sum) { product.finish(image, r, c, *sum); });
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
template <class Tile, class Left, class Right, class Finish>
void multiply(
    Launch& launch,
    const TileGrid& grid,
    const Left& left,
    const Right& right,
    const Finish& finish) {
  using T = typename Tile::Sum;
  T* partial = nullptr;
  if (grid.splits > 1) {
    partial = static_cast<T*>(launch.scratch(grid.splits * grid.elements() * sizeof(T)));
  }
  dialect::start<dialect::Threads::kCooperating>(
      launch.stream(),
      detail::tileKernel<Tile, Left, Right, Finish>,
      static_cast<uint32_t>(grid.blocks()),
      static_cast<uint32_t>(Tile::kThreads),
      detail::TileProduct<Tile, Left, Right, Finish>{
          grid, left, right, finish, partial, Tile::isAlongDepth(left), Tile::isAlongDepth(right)});
  if (grid.splits > 1) {
    map(launch, grid.elements(), detail::SumSplits<T, Finish>{grid, partial, finish});
  }
}

} // namespace puone::kernels::PUONE_ISA
