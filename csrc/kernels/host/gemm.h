// SPDX-License-Identifier: BSD-3-Clause
// The matrix product on host cores: panels of both factors are packed so that the innermost loop
// reads them in order, and that loop keeps a small tile of the result in vector registers. Used by
// matrix products, convolutions and attention, which differ in how they read the factors and in
// what they do with the result.
//
// The order of the sums depends only on the sizes and strides, never on the number of cores.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/host/vector_bytes.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

// x 2 vectors: 24 of 32 registers hold the tile, or 12 of 16.
constexpr int kPanelRows = kVectorBytes == 64 ? 12 : 6;

/// Products that are added up in registers before the sum is added to the tile in memory.
constexpr int64_t kDepth = 256;

template <class T>
struct Gemm {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  typedef T UnalignedVector
      __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
  static constexpr int kPanelColumns = 2 * kLanes;
  /// The largest tile of one core: it fits the second-level cache together with its packed factors.
  static constexpr int64_t kTileRows = 768 / sizeof(T);
  static constexpr int64_t kTileColumns = 1024 / sizeof(T);

  /// A factor is seen as rows times depth: the right one is seen transposed, so that its columns
  /// are rows here.
  class Factor {
   public:
    /// out[p * width + j] = element (row + j, k + p) for j < rows, p < depth; 0 for other j <
    /// width.
    virtual void pack(T* out, int64_t row, int rows, int width, int64_t k, int64_t depth) const = 0;

    /// If the factor can be read in place: its first element, and its strides in elements.
    const T* in_place = nullptr;
    int64_t row_step = 0;
    int64_t depth_step = 0;

   protected:
    ~Factor() = default;
  };

  /// Rows and columns of the result.
  struct Tile {
    int64_t row;
    int64_t column;
    int64_t rows;    // at most kTileRows
    int64_t columns; // at most kTileColumns
  };

  struct Scratch {
    alignas(64) T left[kTileRows * kDepth];
    alignas(64) T right[kPanelColumns * kDepth];
  };

  /// out[i * pitch + j] = the product's element (tile.row + i, tile.column + j); k of depth is 0 or
  /// more. Adds to `out` if `add`.
  static void multiply(
      const Factor& left,
      const Factor& right,
      const Tile& tile,
      int64_t k,
      T* out,
      int64_t pitch,
      bool add,
      Scratch& scratch);

  /// Factors that are read where they are: element (i, p) of the left one is
  /// left[i * left_row + p * left_depth], element (p, j) of the right one right[p * right_depth +
  /// j]. Rows of the right one are readable up to a multiple of kLanes columns.
  struct InPlace {
    const T* left;
    int64_t left_row;
    int64_t left_depth;
    const T* right;
    int64_t right_depth;
  };

  /// As multiply(), without packing: for factors that a core has just written.
  static void multiplyInPlace(
      const InPlace& factors,
      int64_t rows,
      int64_t columns,
      int64_t depth,
      T* out,
      int64_t pitch,
      bool add);
};

/// A factor in memory with constant strides, in any storage type.
template <class T, class Storage>
class StridedFactor final : public Gemm<T>::Factor {
 public:
  StridedFactor(const unsigned char* data, int64_t row_stride, int64_t depth_stride)
      : data_(data), row_stride_(row_stride), depth_stride_(depth_stride) {
    if constexpr (sizeof(T) == sizeof(Storage)) {
      this->in_place = reinterpret_cast<const T*>(data);
      this->row_step = row_stride / static_cast<int64_t>(sizeof(T));
      this->depth_step = depth_stride / static_cast<int64_t>(sizeof(T));
    }
  }

  void pack(T* out, int64_t row, int rows, int width, int64_t k, int64_t depth) const override {
    const unsigned char* in = data_ + row * row_stride_ + k * depth_stride_;
    if (depth_stride_ == sizeof(Storage) && row_stride_ != sizeof(Storage)) {
      packAcross(out, in, rows, width, depth);
    } else {
      packAlong(out, in, rows, width, depth);
    }
  }

 private:
  static T read(const unsigned char* in) {
    return cast<T>(load<Storage>(in));
  }

  void packAlong(T* out, const unsigned char* in, int rows, int width, int64_t depth) const {
    for (int64_t p = 0; p < depth; ++p, out += width, in += depth_stride_) {
      if (row_stride_ == sizeof(Storage)) {
        for (int j = 0; j < rows; ++j) out[j] = read(in + j * sizeof(Storage));
      } else {
        for (int j = 0; j < rows; ++j) out[j] = read(in + j * row_stride_);
      }
      for (int j = rows; j < width; ++j) out[j] = T(0);
    }
  }

  /// Reads along the depth, if elements are contiguous along it.
  void packAcross(T* out, const unsigned char* in, int rows, int width, int64_t depth) const {
    int j = 0;
    for (; j + kSquare <= rows; j += kSquare, in += kSquare * row_stride_) {
      packSquares(out + j, in, width, depth);
    }
    for (; j < rows; ++j, in += row_stride_) {
      for (int64_t p = 0; p < depth; ++p) out[p * width + j] = read(in + p * sizeof(Storage));
    }
    for (; j < width; ++j) {
      for (int64_t p = 0; p < depth; ++p) out[p * width + j] = T(0);
    }
  }

  /// The same for kSquare rows, which are transposed in registers.
  void packSquares(T* out, const unsigned char* in, int width, int64_t depth) const {
    const int64_t whole = depth / kSquare * kSquare;
    for (int64_t p = 0; p < whole; p += kSquare) {
      T square[kSquare][kSquare];
      for (int j = 0; j < kSquare; ++j) {
        const unsigned char* const row = in + j * row_stride_ + p * sizeof(Storage);
        for (int q = 0; q < kSquare; ++q) square[j][q] = read(row + q * sizeof(Storage));
      }
      for (int q = 0; q < kSquare; ++q) {
        for (int j = 0; j < kSquare; ++j) out[(p + q) * width + j] = square[j][q];
      }
    }
    for (int j = 0; j < kSquare; ++j) {
      const unsigned char* const row = in + j * row_stride_;
      for (int64_t p = whole; p < depth; ++p) out[p * width + j] = read(row + p * sizeof(Storage));
    }
  }

  static constexpr int kSquare = 4; // rows, and elements of each

  const unsigned char* data_;
  int64_t row_stride_;
  int64_t depth_stride_;
};

/// How a result of rows x columns is divided into equal tiles.
template <class T>
struct Tiling {
  /// `depth`: length of the sums; `copies`: number of such results. Tiles become smaller while a
  /// tile has enough work and there are too few tiles to keep all cores busy.
  Tiling(int64_t rows, int64_t columns, int64_t depth, int64_t copies)
      : rows(rows), columns(columns) {
    constexpr int64_t kTiles = 16;
    constexpr int64_t kWork = 256 << 10; // products
    row_tiles = (rows + Gemm<T>::kTileRows - 1) / Gemm<T>::kTileRows;
    column_tiles = (columns + Gemm<T>::kTileColumns - 1) / Gemm<T>::kTileColumns;
    measure();
    while (tiles() * copies < kTiles && tile_rows * tile_columns * depth > kWork) {
      if (tile_rows >= tile_columns && tile_rows > kPanelRows) {
        row_tiles *= 2;
      } else if (tile_columns > Gemm<T>::kPanelColumns) {
        column_tiles *= 2;
      } else {
        break;
      }
      measure();
    }
  }

  int64_t tiles() const {
    return row_tiles * column_tiles;
  }

  /// Minimum number of tiles per core, for sums of length `depth`.
  int64_t grain(int64_t depth) const {
    constexpr int64_t kWork = 64 << 10; // products
    return std::max<int64_t>(1, kWork / (tile_rows * tile_columns * (depth + 1) + 1));
  }

  typename Gemm<T>::Tile tile(int64_t index) const {
    const int64_t row = index % row_tiles * tile_rows;
    const int64_t column = index / row_tiles * tile_columns;
    return {row, column, std::min(tile_rows, rows - row), std::min(tile_columns, columns - column)};
  }

  int64_t rows;
  int64_t columns;
  int64_t row_tiles;
  int64_t column_tiles;
  int64_t tile_rows;
  int64_t tile_columns;

 private:
  static int64_t cut(int64_t length, int64_t& count, int64_t step) {
    if (length == 0) return 0;
    const int64_t piece = ((length + count - 1) / count + step - 1) / step * step;
    count = (length + piece - 1) / piece;
    return piece;
  }

  void measure() {
    tile_rows = cut(rows, row_tiles, kPanelRows);
    tile_columns = cut(columns, column_tiles, Gemm<T>::kPanelColumns);
  }
};

} // namespace puone::kernels::PUONE_ISA
