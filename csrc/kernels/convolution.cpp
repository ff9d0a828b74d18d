// SPDX-License-Identifier: BSD-3-Clause
// Convolutions as matrix products: of the weight and of the source seen through a sliding window,
// which is never stored but read in the order that the product needs it.
#include <algorithm>
#include <stdexcept>

#include "kernels/args/convolution.h"
#include "kernels/compute.h"
#include "kernels/entry.h"
#include "kernels/families.h"
#include "kernels/gemm.h"

namespace puone::kernels::PUONE_ISA {
namespace {

int64_t volume(const int64_t (&sizes)[3]) {
  return sizes[0] * sizes[1] * sizes[2];
}

/// An index along three dimensions, x being the fastest.
struct Index {
  Index(int64_t linear, const int64_t (&sizes)[3])
      : z(linear / (sizes[1] * sizes[2])), y(linear / sizes[2] % sizes[1]), x(linear % sizes[2]) {}

  void nextRow(const int64_t (&sizes)[3]) {
    x = 0;
    if (++y < sizes[1]) return;
    y = 0;
    ++z;
  }

  void next(const int64_t (&sizes)[3]) {
    if (++x == sizes[2]) nextRow(sizes);
  }

  int64_t z;
  int64_t y;
  int64_t x;
};

/// The channels of one image and group, as a window slides over them.
template <class T, class Storage>
class Source {
 public:
  Source(const unsigned char* data, const puone_window& window)
      : data_(data), window_(window), size_(volume(window.source)) {}

  /// out[i * step] = what meets `tap` at the i-th position from `position` on, for i < n.
  void gather(
      T* out, int64_t step, int64_t channel, const Index& tap, Index position, int64_t n) const {
    const unsigned char* image = data_ + channel * size_ * sizeof(Storage);
    while (n > 0) {
      const int64_t in_row = std::min(n, window_.positions[2] - position.x);
      const int64_t z = sourceIndex(0, position.z, tap.z);
      const int64_t y = sourceIndex(1, position.y, tap.y);
      if (z < 0 || y < 0) {
        clear(out, step, in_row);
      } else {
        const int64_t row = (z * window_.source[1] + y) * window_.source[2];
        gatherRow(out, step, image + row * sizeof(Storage), position.x, tap.x, in_row);
      }
      out += in_row * step;
      n -= in_row;
      position.nextRow(window_.positions);
    }
  }

 private:
  /// Before the division; may lie outside.
  int64_t scaledIndex(int d, int64_t position, int64_t tap) const {
    return position * window_.position_step[d] + window_.offset[d] + tap * window_.tap_step[d];
  }

  /// -1 outside of the source.
  int64_t sourceIndex(int d, int64_t position, int64_t tap) const {
    const int64_t scaled = scaledIndex(d, position, tap);
    if (scaled < 0 || scaled % window_.divisor[d] != 0) return -1;
    const int64_t index = scaled / window_.divisor[d];
    return index < window_.source[d] ? index : -1;
  }

  static void clear(T* out, int64_t step, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i * step] = T(0);
  }

  static T read(const unsigned char* row, int64_t index) {
    return cast<T>(load<Storage>(row + index * static_cast<int64_t>(sizeof(Storage))));
  }

  void gatherRow(
      T* out, int64_t step, const unsigned char* row, int64_t x, int64_t tap, int64_t n) const {
    const int64_t first = scaledIndex(2, x, tap);
    if (window_.divisor[2] != 1) {
      gatherSparse(out, step, row, first, n);
      return;
    }
    // Zeros left and right of the source, and a strided copy between.
    const int64_t stride = window_.position_step[2];
    const int64_t last = window_.source[2] - 1;
    const int64_t begin = first < 0 ? std::min(n, (stride - 1 - first) / stride) : 0;
    const int64_t end = first > last ? begin : std::clamp((last - first) / stride + 1, begin, n);
    clear(out, step, begin);
    clear(out + end * step, step, n - end);
    if (stride == 1 && step == 1) {
      for (int64_t i = begin; i < end; ++i) out[i] = read(row, first + i);
    } else {
      for (int64_t i = begin; i < end; ++i) out[i * step] = read(row, first + i * stride);
    }
  }

  /// Only every divisor-th position meets an element.
  void gatherSparse(
      T* out, int64_t step, const unsigned char* row, int64_t first, int64_t n) const {
    const int64_t divisor = window_.divisor[2];
    clear(out, step, n);
    for (int64_t i = (divisor - first % divisor) % divisor; i < n; i += divisor) {
      const int64_t index = (first + i) / divisor;
      if (first + i >= 0 && index < window_.source[2]) out[i * step] = read(row, index);
    }
  }

  const unsigned char* data_;
  const puone_window& window_;
  int64_t size_;
};

/// The right factor of a convolution: positions times (channel, tap).
template <class T, class Storage>
class PositionFactor final : public Gemm<T>::Factor {
 public:
  PositionFactor(const unsigned char* data, const puone_window& window)
      : source_(data, window), window_(window), taps_(volume(window.taps)) {
    if constexpr (sizeof(T) == sizeof(Storage)) {
      if (!isPointwise(window)) return;
      this->in_place = reinterpret_cast<const T*>(data);
      this->lane_step = 1;
      this->depth_step = volume(window.source);
    }
  }

  void pack(T* out, int64_t lane, int lanes, int width, int64_t k, int64_t depth) const override {
    const Index position(lane, window_.positions);
    Index tap(k % taps_, window_.taps);
    int64_t channel = k / taps_;
    for (int64_t p = 0; p < depth; ++p, out += width) {
      source_.gather(out, 1, channel, tap, position, lanes);
      for (int j = lanes; j < width; ++j) out[j] = T(0);
      tap.next(window_.taps);
      if (tap.z < window_.taps[0]) continue;
      tap.z = 0;
      ++channel;
    }
  }

 private:
  static bool isPointwise(const puone_window& window) {
    for (int d = 0; d < 3; ++d) {
      if (window.taps[d] != 1 || window.position_step[d] != 1 || window.offset[d] != 0 ||
          window.divisor[d] != 1 || window.positions[d] != window.source[d]) {
        return false;
      }
    }
    return true;
  }

  Source<T, Storage> source_;
  const puone_window& window_;
  int64_t taps_;
};

/// The right factor of a weight's gradient: (channel, tap) times positions.
template <class T, class Storage>
class TapFactor final : public Gemm<T>::Factor {
 public:
  TapFactor(const unsigned char* data, const puone_window& window)
      : source_(data, window), window_(window), taps_(volume(window.taps)) {}

  void pack(T* out, int64_t lane, int lanes, int width, int64_t k, int64_t depth) const override {
    const Index position(k, window_.positions);
    for (int j = 0; j < lanes; ++j) {
      const Index tap((lane + j) % taps_, window_.taps);
      source_.gather(out + j, width, (lane + j) / taps_, tap, position, depth);
    }
    for (int j = lanes; j < width; ++j) {
      for (int64_t p = 0; p < depth; ++p) out[p * width + j] = T(0);
    }
  }

 private:
  Source<T, Storage> source_;
  const puone_window& window_;
  int64_t taps_;
};

/// The left factor of a convolution: rows times (channel, tap), where channels do not follow each
/// other in memory.
template <class T, class Storage>
class WeightFactor final : public Gemm<T>::Factor {
 public:
  WeightFactor(const unsigned char* data, int64_t row_stride, int64_t channel_stride, int64_t taps)
      : data_(data), row_stride_(row_stride), channel_stride_(channel_stride), taps_(taps) {}

  void pack(T* out, int64_t lane, int lanes, int width, int64_t k, int64_t depth) const override {
    for (int64_t p = k; p < k + depth; ++p, out += width) {
      const int64_t first = lane * row_stride_ + p / taps_ * channel_stride_ + p % taps_;
      for (int j = 0; j < lanes; ++j) {
        const int64_t index = first + j * row_stride_;
        out[j] = cast<T>(load<Storage>(data_ + index * static_cast<int64_t>(sizeof(Storage))));
      }
      for (int j = lanes; j < width; ++j) out[j] = T(0);
    }
  }

 private:
  const unsigned char* data_;
  int64_t row_stride_; // in elements
  int64_t channel_stride_;
  int64_t taps_;
};

/// A tile of a result of type E. It is summed in place if the sums are of that type.
template <class E>
class ResultTile {
  using T = ComputeReal<E>;
  static constexpr bool kInPlace = sizeof(E) == sizeof(T);

 public:
  ResultTile(unsigned char* out, int64_t pitch, const typename Gemm<T>::Tile& tile)
      : out_(out + (tile.row * pitch + tile.column) * static_cast<int64_t>(sizeof(E))),
        out_pitch_(pitch),
        tile_(tile) {}

  T* sums() {
    return kInPlace ? reinterpret_cast<T*>(out_) : buffer_;
  }

  int64_t pitch() const {
    return kInPlace ? out_pitch_ : tile_.columns;
  }

  void store() {
    if constexpr (!kInPlace) {
      for (int64_t i = 0; i < tile_.rows; ++i) {
        unsigned char* row = out_ + i * out_pitch_ * static_cast<int64_t>(sizeof(E));
        const T* from = buffer_ + i * tile_.columns;
        for (int64_t j = 0; j < tile_.columns; ++j) {
          kernels::PUONE_ISA::store(row + j * sizeof(E), cast<E>(from[j]));
        }
      }
    }
  }

 private:
  unsigned char* out_;
  int64_t out_pitch_;
  typename Gemm<T>::Tile tile_;
  T buffer_[kInPlace ? 1 : Gemm<T>::kTileRows * Gemm<T>::kTileColumns];
};

template <class E>
void convolutionOf(Launch& launch, const puone_convolution_args& args) {
  using T = ComputeReal<E>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(E));
  unsigned char* out = launch.resolve(args.out);
  const unsigned char* source = launch.resolve(args.source);
  const unsigned char* weight = launch.resolve(args.weight);
  const unsigned char* bias = args.bias != nullptr ? launch.resolve(args.bias) : nullptr;
  const int64_t positions = volume(args.window.positions);
  const int64_t taps = volume(args.window.taps);
  const int64_t depth = args.channels * taps;
  const bool is_dense = args.weight_channel_stride == taps;
  const int64_t images = args.batch * args.groups;
  const Tiling<T> tiling(args.rows, positions, depth, images);

  launch.forRanges(tiling.tiles() * images, tiling.grain(depth), [&](int64_t begin, int64_t end) {
    typename Gemm<T>::Scratch scratch;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / tiling.tiles();
      const int64_t group = image % args.groups;
      const auto tile = tiling.tile(i % tiling.tiles());
      const unsigned char* rows = weight + group * args.weight_group_stride * kSize;
      const StridedFactor<T, E> dense(rows, args.weight_row_stride * kSize, kSize);
      const WeightFactor<T, E> spread(
          rows, args.weight_row_stride, args.weight_channel_stride, taps);
      const typename Gemm<T>::Factor& left =
          is_dense ? static_cast<const typename Gemm<T>::Factor&>(dense) : spread;
      const PositionFactor<T, E> right(
          source + image * args.channels * volume(args.window.source) * kSize, args.window);
      ResultTile<E> result(out + image * args.rows * positions * kSize, positions, tile);
      if (bias != nullptr) {
        for (int64_t r = 0; r < tile.rows; ++r) {
          const int64_t row = group * args.rows + tile.row + r;
          const T value = cast<T>(load<E>(bias + row * kSize));
          std::fill_n(result.sums() + r * result.pitch(), tile.columns, value);
        }
      }
      Gemm<T>::multiply(
          left, right, tile, depth, result.sums(), result.pitch(), bias != nullptr, scratch);
      result.store();
    }
  });
}

template <class E>
void weightOf(Launch& launch, const puone_convolution_weight_args& args) {
  using T = ComputeReal<E>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(E));
  unsigned char* out = launch.resolve(args.out);
  const unsigned char* left = launch.resolve(args.left);
  const unsigned char* source = launch.resolve(args.source);
  const int64_t positions = volume(args.window.positions);
  const int64_t columns = args.channels * volume(args.window.taps);
  const int64_t depth = args.batch * positions;
  const Tiling<T> tiling(args.rows, columns, depth, args.groups);

  launch.forRanges(
      tiling.tiles() * args.groups, tiling.grain(depth), [&](int64_t begin, int64_t end) {
        typename Gemm<T>::Scratch scratch;
        for (int64_t i = begin; i < end; ++i) {
          const int64_t group = i / tiling.tiles();
          const auto tile = tiling.tile(i % tiling.tiles());
          ResultTile<E> result(out + group * args.rows * columns * kSize, columns, tile);
          for (int64_t n = 0; n < args.batch; ++n) {
            const int64_t image = n * args.groups + group;
            const StridedFactor<T, E> rows(
                left + image * args.rows * positions * kSize, positions * kSize, kSize);
            const TapFactor<T, E> window(
                source + image * args.channels * volume(args.window.source) * kSize, args.window);
            Gemm<T>::multiply(
                rows, window, tile, positions, result.sums(), result.pitch(), n > 0, scratch);
          }
          result.store();
        }
      });
}

/// Complex numbers are convolved by parts, which is the caller's business.
template <class Body>
void forRealType(int32_t dtype, const Body& body) {
  forComputeType(dtype, [&]<class E>(Type<E> type) {
    if constexpr (kIsComplex<E>) {
      throw std::invalid_argument("convolution has no such dtype");
    } else {
      body(type);
    }
  });
}

void convolution(Launch& launch, const puone_convolution_args& args) {
  forRealType(args.dtype, [&]<class E>(Type<E>) { convolutionOf<E>(launch, args); });
}

void convolutionWeight(Launch& launch, const puone_convolution_weight_args& args) {
  forRealType(args.dtype, [&]<class E>(Type<E>) { weightOf<E>(launch, args); });
}

constexpr Kernel kKernels[] = {
    entry<puone_convolution_args, convolution>("convolution"),
    entry<puone_convolution_weight_args, convolutionWeight>("convolution_weight"),
};

} // namespace

std::span<const Kernel> convolutionKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
