// SPDX-License-Identifier: BSD-3-Clause
// Convolutions on a device: by the vendor's library if it supports them, else matrix products by
// tiles. Their right factor is the source, read through the sliding window. One product covers the
// positions of all images of a group.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "kernels/args/convolution.h"
#include "kernels/args/matmul.h"
#include "kernels/compute.h"
#include "kernels/launch.h"
#include "kernels/product.h"
#include "kernels/simt/blocks.h"
#include "kernels/simt/convolution_form.h"
#include "kernels/simt/gemm.h"
#include "kernels/simt/map.h"
#include "kernels/simt/stored.h"
#include "kernels/simt/tensor_tile.h"
#include "kernels/simt/window.h"
#include "kernels/types.h"
#include "kernels/window.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

/// Loads the elements first + offsets[e]; 0 where the offset is negative.
template <class T, int kCount>
PUONE_DEVICE void gather(
    const StoredAs<T>& stored,
    const unsigned char* data,
    int64_t first,
    const int64_t (&offsets)[kCount],
    T (&out)[kCount]) {
  stored.visit([&]<class E>(Type<E>) {
    const unsigned char* at = data + first * static_cast<int64_t>(sizeof(E));
    PUONE_UNROLL
    for (int e = 0; e < kCount; ++e) {
      out[e] = offsets[e] < 0 ? T{}
                              : cast<T>(load<E>(at + offsets[e] * static_cast<int64_t>(sizeof(E))));
    }
  });
}

/// A source seen through its window: positions of all images times (channel, tap). Positions are
/// the factor's rows in a convolution and its depth in the gradient of a weight. Neighbouring
/// threads take neighbouring positions.
template <class T, bool kPositionsAreRows>
struct WindowFactor {
  static constexpr bool kHasVectors = false;

  StoredAs<T> stored;
  const unsigned char* data;
  Window window;
  int64_t groups;
  int64_t channels; // per group

  bool isAlongDepth() const {
    return !kPositionsAreRows;
  }

  template <int kCount>
  PUONE_DEVICE void fetch(const Piece& piece, T (&out)[kCount]) const {
    const Point position = window.position(kPositionsAreRows ? piece.row : piece.k);
    const int64_t channel_tap = kPositionsAreRows ? piece.k : piece.row;
    const int32_t step = kPositionsAreRows ? piece.k_step : piece.row_step;
    int64_t offsets[kCount];
    PUONE_UNROLL
    for (int e = 0; e < kCount; ++e) {
      offsets[e] = piece.has(e) ? window.sourceIndex(position, channel_tap + e * step) : -1;
    }
    const int64_t image = position.outer * groups + piece.image;
    gather(stored, data, image * channels * window.channel(), offsets, out);
  }
};

/// A weight with any strides, in elements: rows times (channel, tap).
template <class T>
struct WeightFactor {
  static constexpr bool kHasVectors = false;

  StoredAs<T> stored;
  const unsigned char* data;
  int64_t group_stride;
  int64_t row_stride;
  int64_t channel_stride;
  int64_t tap_strides[3];
  Points taps;

  bool isAlongDepth() const {
    return true;
  }

  PUONE_DEVICE int64_t tapOffset(const Point& tap) const {
    return tap.z * tap_strides[0] + tap.y * tap_strides[1] + tap.x * tap_strides[2];
  }

  template <int kCount>
  PUONE_DEVICE void fetch(const Piece& piece, T (&out)[kCount]) const {
    const Point tap = taps.at(piece.k);
    const int64_t first = piece.image * group_stride + piece.row * row_stride +
                          tap.outer * channel_stride + tapOffset(tap);
    // In a flipped weight a tap's offset can be negative; gather() would skip it in `offsets`.
    int64_t offsets[kCount];
    PUONE_UNROLL
    for (int e = 0; e < kCount; ++e) {
      offsets[e] = piece.has(e) ? e * piece.row_step * row_stride : -1;
    }
    gather(stored, data, first, offsets, out);
  }
};

/// Rows of a gradient times the positions of all images.
template <class T>
struct GradientFactor {
  static constexpr bool kHasVectors = false;

  StoredAs<T> stored;
  const unsigned char* data;
  WideDivider images; // division by `positions`
  int64_t groups;
  int64_t rows;
  int64_t positions;

  bool isAlongDepth() const {
    return true;
  }

  template <int kCount>
  PUONE_DEVICE void fetch(const Piece& piece, T (&out)[kCount]) const {
    int64_t position = piece.k;
    const int64_t image = images.divide(position) * groups + piece.image;
    int64_t offsets[kCount];
    PUONE_UNROLL
    for (int e = 0; e < kCount; ++e) {
      offsets[e] = piece.has(e) ? e * piece.row_step * positions : -1;
    }
    gather(stored, data, (image * rows + piece.row) * positions + position, offsets, out);
  }
};

template <class T>
struct FinishConvolution {
  PUONE_DEVICE void operator()(int64_t group, int64_t row, int64_t column, T sum) const {
    const Point position = positions.at(column);
    const int64_t image = position.outer * groups + group;
    const int64_t at = (image * rows + row) * row_stride + position.z * position_strides[0] +
                       position.y * position_strides[1] + position.x * position_strides[2];
    if (bias != nullptr) sum = plus(stored.load(bias, group * rows + row), sum);
    stored.store(out, at, sum);
  }

  Stored<T> stored;
  unsigned char* out;
  const unsigned char* bias;
  Points positions;
  int64_t groups;
  int64_t rows;
  int64_t row_stride;
  int64_t position_strides[3];
};

template <class T>
struct FinishWeight {
  PUONE_DEVICE void operator()(int64_t group, int64_t row, int64_t column, T sum) const {
    stored.store(out, (group * rows + row) * columns + column, sum);
  }

  Stored<T> stored;
  unsigned char* out;
  int64_t rows;
  int64_t columns;
};

/// Computes an element of a depthwise convolution's result.
template <class T>
struct DepthwiseElement {
  PUONE_DEVICE void operator()(int64_t i) const {
    int64_t position = i;
    int64_t image_row = by_positions.divide(position);
    int64_t row = image_row;
    const int64_t image = by_rows.divide(row);
    int64_t group = image;
    const int64_t n = by_groups.divide(group);
    const int64_t column = n * positions + position;
    T sum{};
    weight.stored.visit([&]<class E>(Type<E>) {
      constexpr auto kSize = static_cast<int64_t>(sizeof(E));
      const unsigned char* const source = data + image * window.channel() * kSize;
      const unsigned char* const row_weight =
          weight.data + (group * weight.group_stride + row * weight.row_stride) * kSize;
      const Point at = window.position(column);
      Point tap{};
      for (tap.z = 0; tap.z < taps[0]; ++tap.z) {
        for (tap.y = 0; tap.y < taps[1]; ++tap.y) {
          for (tap.x = 0; tap.x < taps[2]; ++tap.x) {
            const int64_t offset = window.sourceIndex(at, tap);
            if (offset < 0) continue;
            const T factor = cast<T>(load<E>(row_weight + weight.tapOffset(tap) * kSize));
            sum = plus(sum, times(factor, cast<T>(load<E>(source + offset * kSize))));
          }
        }
      }
    });
    finish(group, row, column, sum);
  }

  const unsigned char* data;
  Window window;
  WeightFactor<T> weight;
  FinishConvolution<T> finish;
  WideDivider by_positions, by_rows, by_groups;
  int64_t positions;
  int32_t taps[3];
};

/// Computes an element of the gradient of a depthwise weight.
template <class T>
struct DepthwiseWeight {
  PUONE_DEVICE void operator()(const Block& block, int64_t index) const {
    const int64_t tap = index % taps;
    const int64_t row = index / taps % gradient.rows;
    const int64_t group = index / taps / gradient.rows;
    const auto product = [&](int64_t k) {
      const Point at = source.window.position(k);
      const int64_t offset = source.window.sourceIndex(at, tap);
      if (offset < 0) return T{};
      const int64_t image = at.outer * source.groups + group;
      const int64_t position = k - at.outer * gradient.positions;
      const Stored<T> stored{source.stored};
      return times(
          stored.load(gradient.data, (image * gradient.rows + row) * gradient.positions + position),
          stored.load(source.data, image * source.window.channel() + offset));
    };
    const T sum = block.reduce(depth, T{}, product, [](T x, T y) { return plus(x, y); });
    block.once([&] { finish(group, row, tap, sum); });
  }

  WindowFactor<T, false> source;
  GradientFactor<T> gradient;
  FinishWeight<T> finish;
  int64_t taps;
  int64_t depth;
};

/// With one group, one tap and no padding or stride, each image is a plain matrix product.
inline bool isProduct(const puone_convolution_args& args) {
  const puone_window& window = args.window;
  for (int d = 0; d < 3; ++d) {
    if (window.taps[d] != 1 || window.position_step[d] != 1 || window.offset[d] != 0 ||
        window.positions[d] != window.source[d]) {
      return false;
    }
  }
  return args.groups == 1 && isDense(window.positions, args.out_position_strides);
}

template <class E>
void multiplyPointwise(Launch& launch, const puone_convolution_args& args) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(E));
  const int64_t positions = volume(args.window.positions);
  puone_gemm_args product{};
  product.dtype = args.dtype;
  product.batch = args.batch;
  product.m = args.rows;
  product.n = positions;
  product.k = args.channels;
  product.alpha = {1, 0, 1};
  const int64_t row = args.out_row_stride * kSize;
  product.out = {args.out, row, kSize, args.rows * row, 0};
  product.a = {
      args.weight, args.weight_row_stride * kSize, args.weight_channel_stride * kSize, 0, 0};
  product.b = {args.source, positions * kSize, kSize, args.channels * positions * kSize, 0};
  if (args.bias != nullptr) {
    product.beta = {1, 0, 1};
    product.self = {args.bias, kSize, 0, 0, 0};
  }
  multiplyMatrices(launch, product);
}

/// Depthwise ones, which read every element once or a few times, are not left to a library.
template <class E, class Args>
bool convolveByLibrary(Launch& launch, const Args& args) {
  if constexpr (std::is_integral_v<E>) {
    return false;
  } else {
    if (args.channels == 0 || isDepthwise(args)) return false;
    const auto convolution = libraryConvolution(args);
    return convolution && launch.convolve(*convolution);
  }
}

template <class E, class Left, class Right, class Finish>
void multiplyFactors(
    Launch& launch,
    int64_t groups,
    int64_t rows,
    int64_t columns,
    int64_t depth,
    const Left& left,
    const Right& right,
    const Finish& finish) {
  withTile<E>(rows, [&]<class Tile>(Tile) {
    const TileGrid grid = tileGrid<Tile>(launch, groups, rows, columns, depth);
    multiply<Tile>(launch, grid, left, right, finish);
  });
}

template <class E, class T = ComputeValue<E>>
void convolveAs(Launch& launch, const puone_convolution_args& args) {
  const StoredAs<T> stored{args.dtype};
  const int64_t positions = volume(args.window.positions);
  const int64_t columns = args.batch * positions;
  const int64_t depth = args.channels * volume(args.window.taps);
  const int64_t (&taps)[3] = args.weight_tap_strides;
  const int64_t (&out)[3] = args.out_position_strides;
  const Window window(args.window, args.batch, args.channels);
  const auto* const source = static_cast<const unsigned char*>(args.source);
  const WeightFactor<T> weight{
      stored,
      static_cast<const unsigned char*>(args.weight),
      args.weight_group_stride,
      args.weight_row_stride,
      args.weight_channel_stride,
      {taps[0], taps[1], taps[2]},
      Points(args.window.taps, depth)};
  const FinishConvolution<T> finish{
      {stored},
      static_cast<unsigned char*>(args.out),
      static_cast<const unsigned char*>(args.bias),
      Points(args.window.positions, columns),
      args.groups,
      args.rows,
      args.out_row_stride,
      {out[0], out[1], out[2]}};
  if (isDepthwise(args)) {
    const int64_t elements = columns * args.groups * args.rows;
    const auto tap = [&](int d) { return static_cast<int32_t>(args.window.taps[d]); };
    const DepthwiseElement<T> element{
        source,
        window,
        weight,
        finish,
        WideDivider(positions, elements),
        WideDivider(args.rows, elements),
        WideDivider(args.groups, elements),
        positions,
        {tap(0), tap(1), tap(2)}};
    return map(launch, elements, element);
  }
  const WindowFactor<T, true> right{stored, source, window, args.groups, args.channels};
  multiplyFactors<E>(launch, args.groups, args.rows, columns, depth, weight, right, finish);
}

template <class E, class T = ComputeValue<E>>
void gatherWeightGradientAs(Launch& launch, const puone_convolution_weight_args& args) {
  const StoredAs<T> stored{args.dtype};
  const int64_t positions = volume(args.window.positions);
  const int64_t depth = args.batch * positions;
  const int64_t columns = args.channels * volume(args.window.taps);
  const GradientFactor<T> left{
      stored,
      static_cast<const unsigned char*>(args.left),
      WideDivider(positions, depth),
      args.groups,
      args.rows,
      positions};
  const WindowFactor<T, false> right{
      stored,
      static_cast<const unsigned char*>(args.source),
      Window(args.window, args.batch, args.channels),
      args.groups,
      args.channels};
  const FinishWeight<T> finish{{stored}, static_cast<unsigned char*>(args.out), args.rows, columns};
  const int64_t elements = args.groups * args.rows * columns;
  if (isDepthwise(args) && elements >= launch.multiprocessors()) {
    return blocks(launch, elements, depth, DepthwiseWeight<T>{right, left, finish, columns, depth});
  }
  multiplyFactors<E>(launch, args.groups, args.rows, columns, depth, left, right, finish);
}

} // namespace detail

template <class E>
void convolve(Launch& launch, const puone_convolution_args& args) {
  if (args.batch * args.groups * args.rows * volume(args.window.positions) == 0) return;
  if (detail::isProduct(args)) return detail::multiplyPointwise<E>(launch, args);
  if (detail::convolveByLibrary<E>(launch, args)) return;
  detail::convolveAs<E>(launch, args);
}

template <class E>
void gatherWeightGradient(Launch& launch, const puone_convolution_weight_args& args) {
  if (args.groups * args.rows * args.channels * volume(args.window.taps) == 0) return;
  if (detail::convolveByLibrary<E>(launch, args)) return;
  detail::gatherWeightGradientAs<E>(launch, args);
}

} // namespace puone::kernels::PUONE_ISA
