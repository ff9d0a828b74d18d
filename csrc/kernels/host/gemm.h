// SPDX-License-Identifier: BSD-3-Clause
// The matrix product on host cores: panels of both factors are packed so that the innermost loop
// reads them in order, and that loop keeps a small tile of the result in vector registers. Used by
// everything that is a matrix product in disguise (gemm.cpp, convolution.cpp, attention.cpp), which
// differ in how they read the factors and in what they do with the result.
//
// The order of the sums depends on the sizes and strides alone, never on the number of cores.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kPanelRows = 12; // x 2 vectors: 24 of 32 registers hold the tile
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
constexpr int kPanelRows = 6; // x 2 vectors: 12 of 16
#else
constexpr int kVectorBytes = 16;
constexpr int kPanelRows = 6;
#endif

/// Step of the sums over k: what is added up in registers before it joins the tile in memory.
constexpr int64_t kDepth = 256;

template <class T>
struct Gemm {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  typedef T UnalignedVector
      __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
  static constexpr int kPanelColumns = 2 * kLanes;
  /// The largest tile one core works on: with its packed factors it fits the second-level cache.
  static constexpr int64_t kTileRows = 768 / sizeof(T);
  static constexpr int64_t kTileColumns = 1024 / sizeof(T);

  /// A factor, seen as `lanes` (rows of the left one, columns of the right one) times depth.
  class Factor {
   public:
    /// out[p * width + j] = element (lane + j, k + p) for j < lanes, p < depth; 0 for other j <
    /// width.
    virtual void pack(
        T* out, int64_t lane, int lanes, int width, int64_t k, int64_t depth) const = 0;

    /// Where the factor can be read in place: its first element and its strides in elements.
    const T* in_place = nullptr;
    int64_t lane_step = 0;
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
};

/// A factor that lies in memory with constant strides, in any storage type.
template <class T, class Storage>
class StridedFactor final : public Gemm<T>::Factor {
 public:
  StridedFactor(const unsigned char* data, int64_t lane_stride, int64_t depth_stride)
      : data_(data), lane_stride_(lane_stride), depth_stride_(depth_stride) {
    if constexpr (sizeof(T) == sizeof(Storage)) {
      this->in_place = reinterpret_cast<const T*>(data);
      this->lane_step = lane_stride / static_cast<int64_t>(sizeof(T));
      this->depth_step = depth_stride / static_cast<int64_t>(sizeof(T));
    }
  }

  void pack(T* out, int64_t lane, int lanes, int width, int64_t k, int64_t depth) const override {
    const unsigned char* in = data_ + lane * lane_stride_ + k * depth_stride_;
    if (depth_stride_ == sizeof(Storage) && lane_stride_ != sizeof(Storage)) {
      packAcross(out, in, lanes, width, depth);
    } else {
      packAlong(out, in, lanes, width, depth);
    }
  }

 private:
  static T read(const unsigned char* in) {
    return cast<T>(load<Storage>(in));
  }

  void packAlong(T* out, const unsigned char* in, int lanes, int width, int64_t depth) const {
    for (int64_t p = 0; p < depth; ++p, out += width, in += depth_stride_) {
      if (lane_stride_ == sizeof(Storage)) {
        for (int j = 0; j < lanes; ++j) out[j] = read(in + j * sizeof(Storage));
      } else {
        for (int j = 0; j < lanes; ++j) out[j] = read(in + j * lane_stride_);
      }
      for (int j = lanes; j < width; ++j) out[j] = T(0);
    }
  }

  /// Reads along the depth, where the elements lie side by side.
  void packAcross(T* out, const unsigned char* in, int lanes, int width, int64_t depth) const {
    for (int j = 0; j < width; ++j, in += lane_stride_) {
      if (j < lanes) {
        for (int64_t p = 0; p < depth; ++p) out[p * width + j] = read(in + p * sizeof(Storage));
      } else {
        for (int64_t p = 0; p < depth; ++p) out[p * width + j] = T(0);
      }
    }
  }

  const unsigned char* data_;
  int64_t lane_stride_;
  int64_t depth_stride_;
};

/// How a result of rows x columns is cut into equal tiles.
template <class T>
struct Tiling {
  /// `depth` is the length of the sums; `copies` how many such results there are. Cut finer while
  /// there is work enough in a tile and too few of them to keep the cores of a machine busy.
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

  /// Tiles that one core should do at least, the sums being `depth` long.
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
