// SPDX-License-Identifier: BSD-3-Clause
// Convolutions on host cores: runs of positions are copied from the source in the layout of the
// matrix product's packed panels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/args/convolution.h"
#include "kernels/compute.h"
#include "kernels/host/depthwise.h"
#include "kernels/host/gemm.h"
#include "kernels/host/runs.h"
#include "kernels/host/stored.h"
#include "kernels/types.h"
#include "kernels/window.h"

namespace puone::kernels::PUONE_ISA {

/// out[i * step] = the i-th source element of the run.
template <class T, class Storage>
void copyRun(T* out, int64_t step, const unsigned char* data, int64_t stride, const Run& run) {
  out += run.first * step;
  if (step == 1 && stride == 1) {
    for (int64_t i = 0; i < run.count; ++i)
      out[i] = Stored<Storage, T>().load(data, run.source + i);
  } else {
    for (int64_t i = 0; i < run.count; ++i) {
      out[i * step] = Stored<Storage, T>().load(data, run.source + i * stride);
    }
  }
}

/// The right factor of a convolution: positions times (channel, tap) of one image and group.
template <class T, class Storage>
class PositionFactor final : public Gemm<T>::Factor {
 public:
  PositionFactor(const unsigned char* data, const puone_window& window)
      : data_(data), window_(window), taps_(volume(window.taps)) {
    if constexpr (sizeof(T) == sizeof(Storage)) {
      if (!isPointwise(window)) return;
      this->in_place = reinterpret_cast<const T*>(data);
      this->row_step = 1;
      this->depth_step = volume(window.source);
    }
  }

  void pack(T* out, int64_t row, int rows, int width, int64_t k, int64_t depth) const override {
    const Index position(row, window_.positions);
    std::fill_n(out, depth * width, T(0));
    Run runs[Gemm<T>::kPanelColumns];
    for (int64_t p = 0; p < std::min(depth, taps_); ++p) {
      int count = 0;
      const Index tap((k + p) % taps_, window_.taps);
      forRuns(window_, tap, position, rows, [&](const Run& run) { runs[count++] = run; });
      for (int64_t q = p; q < depth; q += taps_) {
        const int64_t channel = (k + q) / taps_ * volume(window_.source);
        const unsigned char* data = data_ + channel * static_cast<int64_t>(sizeof(Storage));
        for (int i = 0; i < count; ++i) {
          copyRun<T, Storage>(out + q * width, 1, data, window_.position_step[2], runs[i]);
        }
      }
    }
  }

 private:
  static bool isPointwise(const puone_window& window) {
    for (int d = 0; d < 3; ++d) {
      if (window.taps[d] != 1 || window.position_step[d] != 1 || window.offset[d] != 0 ||
          window.positions[d] != window.source[d]) {
        return false;
      }
    }
    return true;
  }

  const unsigned char* data_;
  const puone_window& window_;
  int64_t taps_;
};

/// The right factor of a weight's gradient: (channel, tap) times positions.
template <class T, class Storage>
class TapFactor final : public Gemm<T>::Factor {
 public:
  TapFactor(const unsigned char* data, const puone_window& window)
      : data_(data), window_(window), taps_(volume(window.taps)) {}

  void pack(T* out, int64_t row, int rows, int width, int64_t k, int64_t depth) const override {
    const Index position(k, window_.positions);
    std::fill_n(out, depth * width, T(0));
    for (int j = 0; j < rows; ++j) {
      const Index tap((row + j) % taps_, window_.taps);
      const int64_t channel = (row + j) / taps_ * volume(window_.source);
      const unsigned char* data = data_ + channel * static_cast<int64_t>(sizeof(Storage));
      forRuns(window_, tap, position, depth, [&](const Run& run) {
        copyRun<T, Storage>(out + j, width, data, window_.position_step[2], run);
      });
    }
  }

 private:
  const unsigned char* data_;
  const puone_window& window_;
  int64_t taps_;
};

/// The left factor of a convolution, rows times (channel, tap), with any strides.
template <class T, class Storage>
class WeightFactor final : public Gemm<T>::Factor {
 public:
  WeightFactor(const unsigned char* data, const puone_convolution_args& args)
      : data_(data), args_(args), taps_(volume(args.window.taps)) {}

  void pack(T* out, int64_t row, int rows, int width, int64_t k, int64_t depth) const override {
    for (int64_t p = k; p < k + depth; ++p, out += width) {
      const Index tap(p % taps_, args_.window.taps);
      const int64_t first = row * args_.weight_row_stride +
                            p / taps_ * args_.weight_channel_stride +
                            dot(tap, args_.weight_tap_strides);
      for (int j = 0; j < rows; ++j) {
        out[j] = Stored<Storage, T>().load(data_, first + j * args_.weight_row_stride);
      }
      for (int j = rows; j < width; ++j) out[j] = T(0);
    }
  }

 private:
  const unsigned char* data_;
  const puone_convolution_args& args_;
  int64_t taps_;
};

/// Rows of a result with elements of type E: their sums, and where they are stored.
template <class E>
class Rows {
  using T = ComputeReal<E>;
  using Tile = typename Gemm<T>::Tile;
  static constexpr auto kSize = static_cast<int64_t>(sizeof(E));
  static constexpr int64_t kMost = Gemm<T>::kTileRows * Gemm<T>::kTileColumns;

 public:
  Rows(const Tile& tile, unsigned char* out, int64_t row_stride, bool is_dense)
      : tile_(tile), out_(out + tile.row * row_stride * kSize), row_stride_(row_stride) {
    if (!is_dense || sizeof(E) != sizeof(T)) return;
    sums = reinterpret_cast<T*>(out_) + tile.column;
    pitch = row_stride;
  }

  /// Stores the sums, unless they were computed in place. `strides` are those of the columns.
  void store(const int64_t (&sizes)[3], const int64_t (&strides)[3]) const {
    if (sums != buffer_) return;
    for (int64_t i = 0; i < tile_.rows; ++i) {
      unsigned char* row = out_ + i * row_stride_ * kSize;
      const T* from = buffer_ + i * pitch;
      Index index(tile_.column, sizes);
      for (int64_t j = 0; j < tile_.columns; index.nextRow(sizes)) {
        unsigned char* to = row + dot(index, strides) * kSize;
        const int64_t n = std::min(tile_.columns - j, sizes[2] - index.x);
        for (int64_t x = 0; x < n; ++x) {
          kernels::PUONE_ISA::store(to + x * strides[2] * kSize, cast<E>(from[j + x]));
        }
        j += n;
      }
    }
  }

 private:
  Tile tile_;
  unsigned char* out_;
  int64_t row_stride_;
  T buffer_[kMost];

 public:
  T* sums = buffer_;
  int64_t pitch = tile_.columns;
};

template <class E>
class Convolution {
  using T = ComputeReal<E>;
  using Tile = typename Gemm<T>::Tile;
  using Factor = typename Gemm<T>::Factor;
  static constexpr auto kSize = static_cast<int64_t>(sizeof(E));

 public:
  Convolution(Launch& launch, const puone_convolution_args& args)
      : args_(args),
        out_(launch.resolve(args.out)),
        source_(launch.resolve(args.source)),
        weight_(launch.resolve(args.weight)),
        bias_(args.bias != nullptr ? launch.resolve(args.bias) : nullptr),
        positions_(volume(args.window.positions)),
        taps_(volume(args.window.taps)),
        out_is_dense_(isDense(args.window.positions, args.out_position_strides)),
        weight_is_dense_(
            args.weight_channel_stride == taps_ &&
            isDense(args.window.taps, args.weight_tap_strides)) {}

  void run(Launch& launch) const {
    const int64_t images = args_.batch * args_.groups;
    const int64_t depth = args_.channels * taps_;
    const Tiling<T> tiling(args_.rows, positions_, depth, images);
    launch.forRanges(tiling.tiles() * images, tiling.grain(depth), [&](int64_t begin, int64_t end) {
      typename Gemm<T>::Scratch scratch;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / tiling.tiles();
        const Tile tile = tiling.tile(i % tiling.tiles());
        unsigned char* out = out_ + image * args_.rows * args_.out_row_stride * kSize;
        Rows<E> rows(tile, out, args_.out_row_stride, out_is_dense_);
        start(rows, tile, image % args_.groups);
        multiply(rows, tile, image, scratch);
        rows.store(args_.window.positions, args_.out_position_strides);
      }
    });
  }

 private:
  const unsigned char* sourceOf(int64_t image) const {
    return source_ + image * args_.channels * volume(args_.window.source) * kSize;
  }

  const unsigned char* weightOf(int64_t image) const {
    return weight_ + image % args_.groups * args_.weight_group_stride * kSize;
  }

  void start(Rows<E>& rows, const Tile& tile, int64_t group) const {
    for (int64_t i = 0; i < tile.rows; ++i) {
      const int64_t row = group * args_.rows + tile.row + i;
      const T value = bias_ != nullptr ? Stored<E, T>().load(bias_, row) : T(0);
      std::fill_n(rows.sums + i * rows.pitch, tile.columns, value);
    }
  }

  void multiply(
      Rows<E>& rows, const Tile& tile, int64_t image, typename Gemm<T>::Scratch& scratch) const {
    const StridedFactor<T, E> dense(weightOf(image), args_.weight_row_stride * kSize, kSize);
    const WeightFactor<T, E> spread(weightOf(image), args_);
    const Factor& left = weight_is_dense_ ? static_cast<const Factor&>(dense) : spread;
    const PositionFactor<T, E> right(sourceOf(image), args_.window);
    const int64_t depth = args_.channels * taps_;
    Gemm<T>::multiply(left, right, tile, depth, rows.sums, rows.pitch, true, scratch);
  }

  const puone_convolution_args& args_;
  unsigned char* out_;
  const unsigned char* source_;
  const unsigned char* weight_;
  const unsigned char* bias_;
  int64_t positions_;
  int64_t taps_;
  bool out_is_dense_;
  bool weight_is_dense_;
};

template <class E>
class WeightGradient {
  using T = ComputeReal<E>;
  using Tile = typename Gemm<T>::Tile;
  static constexpr auto kSize = static_cast<int64_t>(sizeof(E));

 public:
  WeightGradient(Launch& launch, const puone_convolution_weight_args& args)
      : args_(args),
        out_(launch.resolve(args.out)),
        left_(launch.resolve(args.left)),
        source_(launch.resolve(args.source)),
        positions_(volume(args.window.positions)),
        columns_(args.channels * volume(args.window.taps)) {}

  void run(Launch& launch) const {
    const int64_t depth = args_.batch * positions_;
    const Tiling<T> tiling(args_.rows, columns_, depth, args_.groups);
    const int64_t tiles = tiling.tiles() * args_.groups;
    launch.forRanges(tiles, tiling.grain(depth), [&](int64_t begin, int64_t end) {
      typename Gemm<T>::Scratch scratch;
      for (int64_t i = begin; i < end; ++i) {
        const Tile tile = tiling.tile(i % tiling.tiles());
        runTile(i / tiling.tiles(), tile, scratch);
      }
    });
  }

 private:
  const unsigned char* leftOf(int64_t image) const {
    return left_ + image * args_.rows * positions_ * kSize;
  }

  const unsigned char* sourceOf(int64_t image) const {
    return source_ + image * args_.channels * volume(args_.window.source) * kSize;
  }

  void runTile(int64_t group, const Tile& tile, typename Gemm<T>::Scratch& scratch) const {
    Rows<E> rows(tile, out_ + group * args_.rows * columns_ * kSize, columns_, true);
    multiply(rows, tile, group, scratch);
    rows.store({1, 1, columns_}, {0, 0, 1});
  }

  void multiply(
      Rows<E>& rows, const Tile& tile, int64_t group, typename Gemm<T>::Scratch& scratch) const {
    if (args_.batch == 0) { // an empty sum
      for (int64_t i = 0; i < tile.rows; ++i) {
        std::fill_n(rows.sums + i * rows.pitch, tile.columns, T(0));
      }
    }
    for (int64_t n = 0; n < args_.batch; ++n) {
      const int64_t image = n * args_.groups + group;
      Gemm<T>::multiply(
          StridedFactor<T, E>(leftOf(image), positions_ * kSize, kSize),
          TapFactor<T, E>(sourceOf(image), args_.window),
          tile,
          positions_,
          rows.sums,
          rows.pitch,
          n > 0,
          scratch);
    }
  }

  const puone_convolution_weight_args& args_;
  unsigned char* out_;
  const unsigned char* left_;
  const unsigned char* source_;
  int64_t positions_;
  int64_t columns_;
};

template <class E>
void convolve(Launch& launch, const puone_convolution_args& args) {
  if (isDepthwise(args) && isSmall(args.window)) {
    Depthwise<E>(launch, args).run(launch);
  } else {
    Convolution<E>(launch, args).run(launch);
  }
}

template <class E>
void gatherWeightGradient(Launch& launch, const puone_convolution_weight_args& args) {
  if (isDepthwise(args) && isSmall(args.window)) {
    DepthwiseWeight<E>(launch, args).run(launch);
  } else {
    WeightGradient<E>(launch, args).run(launch);
  }
}

} // namespace puone::kernels::PUONE_ISA
