// SPDX-License-Identifier: BSD-3-Clause
// Convolutions of single channels on host cores. What the windows of a tile of positions reach is
// copied to small planes, one per phase of the window's steps, together with the zeros around the
// source. In these planes each tap is one run over the whole tile, without edges, for any step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/args/convolution.h"
#include "kernels/compute.h"
#include "kernels/host/gemm.h"
#include "kernels/host/runs.h"
#include "kernels/host/stored.h"
#include "kernels/types.h"
#include "kernels/window.h"

namespace puone::kernels::PUONE_ISA {

/// Known steps make vectors.
using One = std::integral_constant<int64_t, 1>;
using Two = std::integral_constant<int64_t, 2>;

/// to[i] = from[i] for i < n. Most lines are a few vectors long, so the last vector overlaps the
/// one before it, in the place of a loop over what is left.
template <class T>
void copyLine(T* to, const T* from, int64_t n) {
  using Vector = typename Gemm<T>::UnalignedVector;
  constexpr int64_t kLanes = Gemm<T>::kLanes;
  const auto copyVector = [&](int64_t i) {
    *reinterpret_cast<Vector*>(to + i) = *reinterpret_cast<const Vector*>(from + i);
  };
  if (n < kLanes) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n - kLanes; i += kLanes) copyVector(i);
  copyVector(n - kLanes);
}

/// to[i] = element first + i * step of `from`, for i < n.
template <class T, class E, class Step>
void loadLine(T* to, const unsigned char* from, int64_t first, int64_t n, Step step) {
  if constexpr (std::is_same_v<E, T> && std::is_same_v<Step, One>) {
    copyLine(to, reinterpret_cast<const T*>(from) + first, n);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = Stored<E, T>().load(from, first + i * step);
  }
}

/// Element i * step of `to` = from[i], for i < n.
template <class T, class E, class Step>
void storeLine(unsigned char* to, const T* from, int64_t n, Step step) {
  if constexpr (std::is_same_v<E, T> && std::is_same_v<Step, One>) {
    copyLine(reinterpret_cast<T*>(to), from, n);
  } else {
    for (int64_t i = 0; i < n; ++i) Stored<E, T>().store(to, i * step, from[i]);
  }
}

/// Positions [y, y + rows) x [x, x + columns) of one z.
struct PositionTile {
  int64_t z;
  int64_t y;
  int64_t x;
  int64_t rows;
  int64_t columns;
};

/// Elements of all planes of one row of positions, as far as these fit a core's caches.
constexpr int64_t kMostInPlanes = 1 << 16;

/// A dimension of a window: how a tap's distance from the lowest one divides into a phase of the
/// step and a shift in that phase.
class Phases {
 public:
  Phases(const puone_window& window, int d)
      : step_(window.position_step[d]),
        tap_step_(window.tap_step[d]),
        lowest(std::min<int64_t>(0, (window.taps[d] - 1) * tap_step_)),
        reach(std::max<int64_t>(0, window.taps[d] - 1) * std::abs(tap_step_)),
        count(std::min(step_, reach + 1)),
        most_shift(std::min(reach / step_, kMostInPlanes)) {}

  int64_t phase(int64_t tap) const {
    return (tap * tap_step_ - lowest) % step_;
  }
  int64_t shift(int64_t tap) const {
    return (tap * tap_step_ - lowest) / step_;
  }

 private:
  int64_t step_;
  int64_t tap_step_;

 public:
  const int64_t lowest;     // tap's distance from tap 0
  const int64_t reach;      // from there to the highest
  const int64_t count;      // of the phases that have a tap
  const int64_t most_shift; // not more than kMostInPlanes, which is too far for planes
};

/// The planes of a tile, and how an image is divided into tiles. Element (y, x) of a tile is number
/// y * pitch + x of a run, and meets a tap at that place after the tap's offset.
class PhasePlanes {
 public:
  static constexpr int64_t kColumns = 512;   // of a tile
  static constexpr int64_t kElements = 4096; // of all planes together: half of a core's first cache

  explicit PhasePlanes(const puone_window& window)
      : window(window),
        y(window, 1),
        x(window, 2),
        columns(std::clamp<int64_t>(window.positions[2], 1, kColumns)),
        pitch(columns + x.most_shift),
        count(window.taps[0] * y.count * x.count),
        rows(
            std::clamp<int64_t>(
                kElements / std::max<int64_t>(1, count * pitch) - y.most_shift,
                1,
                std::max<int64_t>(1, window.positions[1]))),
        plane_size((rows + y.most_shift) * pitch),
        size(std::min(count, kMostInPlanes + 1) * plane_size),
        tile_rows((window.positions[1] + rows - 1) / rows),
        tile_columns((window.positions[2] + columns - 1) / columns),
        tiles(window.positions[0] * tile_rows * tile_columns) {}

  PositionTile tile(int64_t index) const {
    const int64_t at_x = index % tile_columns * columns;
    const int64_t at_y = index / tile_columns % tile_rows * rows;
    return {
        index / (tile_columns * tile_rows),
        at_y,
        at_x,
        std::min(rows, window.positions[1] - at_y),
        std::min(columns, window.positions[2] - at_x)};
  }

  /// Of every tap.
  std::vector<int64_t> offsets() const {
    std::vector<int64_t> all(static_cast<size_t>(volume(window.taps)));
    Index tap{0, 0, 0};
    for (int64_t& offset : all) {
      const int64_t plane = (tap.z * y.count + y.phase(tap.y)) * x.count + x.phase(tap.x);
      offset = plane * plane_size + y.shift(tap.y) * pitch + x.shift(tap.x);
      tap.next(window.taps);
    }
    return all;
  }

  /// Calls visit(n, count, source) for the runs of positions of the tile, from its n-th one on, at
  /// which the tap is inside of the source, from its element `source` on.
  template <class Visit>
  void forRunsOf(const PositionTile& tile, const Index& tap, const Visit& visit) const {
    Index position{tile.z, tile.y, tile.x};
    for (int64_t row = 0; row < tile.rows; ++row, ++position.y) {
      forRuns(window, tap, position, tile.columns, [&](const Run& run) {
        visit(row * pitch + run.first, run.count, run.source);
      });
    }
  }

  /// Copies what the tile's windows reach in `source`, elements of type E. Outside of it are zeros:
  /// planes are zero before the first tile, and a lone tile reaches the same places of each image.
  template <class T, class E>
  void fill(T* planes, const unsigned char* source, const PositionTile& tile) const {
    const int64_t step = window.position_step[2];
    if (step == 1) {
      fillBySteps<T, E>(planes, source, tile, One());
    } else if (step == 2) {
      fillBySteps<T, E>(planes, source, tile, Two());
    } else {
      fillBySteps<T, E>(planes, source, tile, step);
    }
  }

  const puone_window& window;
  const Phases y;
  const Phases x;
  const int64_t columns; // of a tile, at most
  const int64_t pitch;   // of a row of a plane
  const int64_t count;   // of planes
  const int64_t rows;    // of a tile, at most
  const int64_t plane_size;
  const int64_t size;      // of all planes
  const int64_t tile_rows; // of an image
  const int64_t tile_columns;
  const int64_t tiles;

 private:
  int64_t lowest(int d, int64_t position, const Phases& phases) const {
    return position * window.position_step[d] + window.offset[d] + phases.lowest;
  }

  template <class T, class E, class Step>
  void fillBySteps(
      T* planes, const unsigned char* source, const PositionTile& tile, Step step) const {
    const int64_t low_z = tile.z * window.position_step[0] + window.offset[0];
    const int64_t low_y = lowest(1, tile.y, y), low_x = lowest(2, tile.x, x);
    const int64_t tile_lines = tile.rows + y.most_shift, size = window.source[2];
    for (int64_t x_phase = 0; x_phase < x.count; ++x_phase) {
      const int64_t first = low_x + x_phase;
      const int64_t begin = std::min(pitch, first < 0 ? (step - 1 - first) / step : int64_t{0});
      const int64_t end =
          first < size ? std::clamp((size - 1 - first) / step + 1, begin, pitch) : begin;
      for (int64_t tz = 0; tz < window.taps[0]; ++tz) {
        const int64_t z = low_z + tz * window.tap_step[0];
        for (int64_t y_phase = 0; y_phase < y.count; ++y_phase) {
          T* to = planes + ((tz * y.count + y_phase) * x.count + x_phase) * plane_size;
          for (int64_t row = 0; row < tile_lines; ++row, to += pitch) {
            const int64_t at = low_y + y_phase + row * window.position_step[1];
            if (z < 0 || z >= window.source[0] || at < 0 || at >= window.source[1]) {
              if (tiles > 1) std::fill_n(to, pitch, T(0));
              continue;
            }
            if (tiles > 1) {
              std::fill_n(to, begin, T(0));
              std::fill_n(to + end, pitch - end, T(0));
            }
            if (begin == end) continue;
            const int64_t from = (z * window.source[1] + at) * size + first + begin * step;
            loadLine<T, E>(to + begin, source, from, end - begin, step);
          }
        }
      }
    }
  }
};

/// What both directions share: vectors of T, groups of taps that are handled together.
template <class T>
struct Taps {
  using Vector = typename Gemm<T>::Vector;
  using UnalignedVector = typename Gemm<T>::UnalignedVector;
  static constexpr int64_t kLanes = Gemm<T>::kLanes;

  static Vector read(const T* from) {
    return *reinterpret_cast<const UnalignedVector*>(from);
  }
  static void write(T* to, Vector values) {
    *reinterpret_cast<UnalignedVector*>(to) = values;
  }
  static bool isFinite(T value) {
    return value - value == T(0);
  }
  static T sum(Vector values) {
    T sum(0);
    for (int64_t lane = 0; lane < kLanes; ++lane) sum += values[lane];
    return sum;
  }
  static int64_t inVectors(int64_t n) {
    return (n + kLanes - 1) / kLanes * kLanes;
  }

  /// Calls visit.template operator()<n>(first) for groups of n taps: as many as registers hold.
  template <class Visit>
  static void inGroups(int64_t taps, const Visit& visit) {
    int64_t first = 0;
    const auto all = [&]<int kTaps>() {
      for (; first + kTaps <= taps; first += kTaps) visit.template operator()<kTaps>(first);
    };
    all.template operator()<9>();
    all.template operator()<7>();
    all.template operator()<5>();
    all.template operator()<3>();
    all.template operator()<1>();
  }
};

/// Kernel "convolution" for isDepthwise() and isSmall().
template <class E>
class Depthwise {
  using T = ComputeReal<E>;
  using Of = Taps<T>;
  static constexpr auto kSize = static_cast<int64_t>(sizeof(E));

 public:
  Depthwise(Launch& launch, const puone_convolution_args& args)
      : args_(args),
        out_(launch.resolve(args.out)),
        source_(launch.resolve(args.source)),
        weight_(launch.resolve(args.weight)),
        bias_(args.bias != nullptr ? launch.resolve(args.bias) : nullptr),
        planes_(args.window),
        offsets_(planes_.offsets()) {}

  void run(Launch& launch) const {
    constexpr int64_t kWork = 64 << 10; // products
    const int64_t taps = static_cast<int64_t>(offsets_.size());
    const int64_t run = planes_.rows * planes_.pitch;
    const int64_t grain = std::max<int64_t>(1, kWork / (run * args_.rows * (taps + 4)));
    launch.forRanges(
        args_.batch * args_.groups * planes_.tiles, grain, [&](int64_t begin, int64_t end) {
          std::vector<T> planes(static_cast<size_t>(planes_.size + Of::kLanes));
          std::vector<T> sums(static_cast<size_t>(Of::inVectors(run)));
          std::vector<T> weights(offsets_.size());
          for (int64_t i = begin; i < end; ++i) {
            runTile(
                i / planes_.tiles,
                planes_.tile(i % planes_.tiles),
                planes.data(),
                sums.data(),
                weights.data());
          }
        });
  }

 private:
  const unsigned char* sourceOf(int64_t image) const {
    return source_ + image * volume(args_.window.source) * kSize;
  }

  void runTile(int64_t image, const PositionTile& tile, T* planes, T* sums, T* weights) const {
    const int64_t group = image % args_.groups;
    planes_.fill<T, E>(planes, sourceOf(image), tile);
    for (int64_t row = 0; row < args_.rows; ++row) {
      const bool are_finite = readWeights(weights, group, row);
      const T start =
          bias_ != nullptr ? Stored<E, T>().load(bias_, group * args_.rows + row) : T(0);
      const int64_t n = Of::inVectors((tile.rows - 1) * planes_.pitch + tile.columns);
      std::fill_n(sums, n, start);
      if (are_finite) {
        Of::inGroups(static_cast<int64_t>(offsets_.size()), [&]<int kTaps>(int64_t first) {
          add<kTaps>(sums, n, planes, offsets_.data() + first, weights + first);
        });
      } else {
        addInside(sums, tile, image, weights);
      }
      store(sums, tile, image * args_.rows + row);
    }
  }

  /// False if one is infinite or NaN: times the zeros around the source it would be NaN.
  bool readWeights(T* weights, int64_t group, int64_t row) const {
    const int64_t first = group * args_.weight_group_stride + row * args_.weight_row_stride;
    Index tap{0, 0, 0};
    bool are_finite = true;
    for (size_t t = 0; t < offsets_.size(); ++t, tap.next(args_.window.taps)) {
      weights[t] = Stored<E, T>().load(weight_, first + dot(tap, args_.weight_tap_strides));
      are_finite &= Of::isFinite(weights[t]);
    }
    return are_finite;
  }

  void addInside(T* sums, const PositionTile& tile, int64_t image, const T* weights) const {
    const unsigned char* const source = sourceOf(image);
    const int64_t step = args_.window.position_step[2];
    Index tap{0, 0, 0};
    for (size_t t = 0; t < offsets_.size(); ++t, tap.next(args_.window.taps)) {
      planes_.forRunsOf(tile, tap, [&](int64_t n, int64_t count, int64_t from) {
        for (int64_t i = 0; i < count; ++i) {
          sums[n + i] += weights[t] * Stored<E, T>().load(source, from + i * step);
        }
      });
    }
  }

  template <int kTaps>
  static void add(T* sums, int64_t n, const T* planes, const int64_t* offsets, const T* weights) {
    const T* from[kTaps];
    typename Of::Vector weight[kTaps];
    for (int t = 0; t < kTaps; ++t) {
      from[t] = planes + offsets[t];
      weight[t] = weights[t] - typename Of::Vector{};
    }
    for (int64_t i = 0; i < n; i += Of::kLanes) {
      typename Of::Vector sum = Of::read(sums + i);
#pragma GCC unroll 9
      for (int t = 0; t < kTaps; ++t) sum += weight[t] * Of::read(from[t] + i);
      Of::write(sums + i, sum);
    }
  }

  void store(const T* sums, const PositionTile& tile, int64_t row) const {
    const int64_t (&strides)[3] = args_.out_position_strides;
    unsigned char* const to = out_ + (row * args_.out_row_stride + tile.z * strides[0] +
                                      tile.y * strides[1] + tile.x * strides[2]) *
                                         kSize;
    for (int64_t y = 0; y < tile.rows; ++y) {
      const T* const from = sums + y * planes_.pitch;
      unsigned char* const line = to + y * strides[1] * kSize;
      if (strides[2] == 1) {
        storeLine<T, E>(line, from, tile.columns, One());
      } else {
        storeLine<T, E>(line, from, tile.columns, strides[2]);
      }
    }
  }

  const puone_convolution_args& args_;
  unsigned char* out_;
  const unsigned char* source_;
  const unsigned char* weight_;
  const unsigned char* bias_;
  PhasePlanes planes_;
  std::vector<int64_t> offsets_;
};

/// Kernel "convolution_weight" for isDepthwise() and isSmall(). A core adds up all taps of a group.
template <class E>
class DepthwiseWeight {
  using T = ComputeReal<E>;
  using Of = Taps<T>;
  using Vector = typename Of::Vector;
  static constexpr auto kSize = static_cast<int64_t>(sizeof(E));

 public:
  DepthwiseWeight(Launch& launch, const puone_convolution_weight_args& args)
      : args_(args),
        out_(launch.resolve(args.out)),
        left_(launch.resolve(args.left)),
        source_(launch.resolve(args.source)),
        planes_(args.window),
        offsets_(planes_.offsets()) {}

  void run(Launch& launch) const {
    launch.forRanges(args_.groups, 1, [&](int64_t begin, int64_t end) {
      Scratch scratch(*this);
      for (int64_t group = begin; group < end; ++group) runGroup(group, scratch);
    });
  }

 private:
  struct Scratch {
    explicit Scratch(const DepthwiseWeight& of)
        : planes(static_cast<size_t>(of.planes_.size + Of::kLanes)),
          left(static_cast<size_t>(of.planes_.rows * Of::inVectors(of.planes_.columns))),
          sums(static_cast<size_t>(of.args_.rows) * of.offsets_.size()) {}

    std::vector<T> planes;
    std::vector<T> left;
    std::vector<Vector> sums;
  };

  void runGroup(int64_t group, Scratch& scratch) const {
    const int64_t taps = static_cast<int64_t>(offsets_.size());
    std::fill(scratch.sums.begin(), scratch.sums.end(), Vector{});
    for (int64_t n = 0; n < args_.batch; ++n) {
      const int64_t image = n * args_.groups + group;
      const unsigned char* const source = source_ + image * volume(args_.window.source) * kSize;
      for (int64_t i = 0; i < planes_.tiles; ++i) {
        const PositionTile tile = planes_.tile(i);
        planes_.fill<T, E>(scratch.planes.data(), source, tile);
        for (int64_t row = 0; row < args_.rows; ++row) {
          Vector* const sums = scratch.sums.data() + row * taps;
          if (readLeft(scratch.left.data(), tile, image * args_.rows + row)) {
            Of::inGroups(taps, [&]<int kTaps>(int64_t first) {
              add<kTaps>(sums + first, tile, scratch, offsets_.data() + first);
            });
          } else {
            addInside(sums, tile, scratch.left.data(), source);
          }
        }
      }
    }
    for (size_t i = 0; i < scratch.sums.size(); ++i) {
      const int64_t at =
          group * static_cast<int64_t>(scratch.sums.size()) + static_cast<int64_t>(i);
      Stored<E, T>().store(out_, at, Of::sum(scratch.sums[i]));
    }
  }

  /// The left factor of a tile, in whole vectors. False if an element is infinite or NaN: times the
  /// zeros around the source it would be NaN.
  bool readLeft(T* to, const PositionTile& tile, int64_t row) const {
    const int64_t (&positions)[3] = args_.window.positions;
    const int64_t pitch = Of::inVectors(tile.columns);
    Vector zero{};
    for (int64_t y = 0; y < tile.rows; ++y, to += pitch) {
      const int64_t first =
          ((row * positions[0] + tile.z) * positions[1] + tile.y + y) * positions[2] + tile.x;
      loadLine<T, E>(to, left_, first, tile.columns, One());
      std::fill(to + tile.columns, to + pitch, T(0));
      for (int64_t x = 0; x < pitch; x += Of::kLanes) zero += Of::read(to + x) - Of::read(to + x);
    }
    return Of::isFinite(Of::sum(zero));
  }

  void addInside(
      Vector* sums, const PositionTile& tile, const T* left, const unsigned char* source) const {
    const int64_t step = args_.window.position_step[2], pitch = Of::inVectors(tile.columns);
    Index tap{0, 0, 0};
    for (size_t t = 0; t < offsets_.size(); ++t, tap.next(args_.window.taps)) {
      planes_.forRunsOf(tile, tap, [&](int64_t n, int64_t count, int64_t from) {
        const T* const factors = left + n / planes_.pitch * pitch + n % planes_.pitch;
        for (int64_t i = 0; i < count; ++i) {
          sums[t][i % Of::kLanes] += factors[i] * Stored<E, T>().load(source, from + i * step);
        }
      });
    }
  }

  template <int kTaps>
  void add(Vector* sums, const PositionTile& tile, const Scratch& scratch, const int64_t* offsets)
      const {
    const int64_t pitch = Of::inVectors(tile.columns);
    const T* from[kTaps];
    Vector sum[kTaps] = {};
    for (int t = 0; t < kTaps; ++t) from[t] = scratch.planes.data() + offsets[t];
    const T* left = scratch.left.data();
    for (int64_t y = 0; y < tile.rows; ++y, left += pitch) {
      const int64_t line = y * planes_.pitch;
      const int64_t whole = tile.columns / Of::kLanes * Of::kLanes;
      for (int64_t x = 0; x < whole; x += Of::kLanes) {
        const Vector factor = Of::read(left + x);
#pragma GCC unroll 9
        for (int t = 0; t < kTaps; ++t) sum[t] += factor * Of::read(from[t] + line + x);
      }
      if (whole == tile.columns) continue;
      // What follows the tile in a plane may be infinite: times zero it would be NaN.
      const auto is_inside = lanesBelow(tile.columns - whole);
      const Vector factor = Of::read(left + whole);
#pragma GCC unroll 9
      for (int t = 0; t < kTaps; ++t) {
        sum[t] += factor * (is_inside ? Of::read(from[t] + line + whole) : Vector{});
      }
    }
    for (int t = 0; t < kTaps; ++t) sums[t] += sum[t];
  }

  static auto lanesBelow(int64_t n) {
    Vector lane;
    for (int64_t i = 0; i < Of::kLanes; ++i) lane[i] = static_cast<T>(i);
    return lane < static_cast<T>(n) - Vector{};
  }

  const puone_convolution_weight_args& args_;
  unsigned char* out_;
  const unsigned char* left_;
  const unsigned char* source_;
  PhasePlanes planes_;
  std::vector<int64_t> offsets_;
};

/// Whether the planes of a row of positions fit a core's caches, as all but huge windows do.
inline bool isSmall(const puone_window& window) {
  const PhasePlanes planes(window);
  return planes.count <= kMostInPlanes && (planes.rows > 1 || planes.size <= kMostInPlanes);
}

} // namespace puone::kernels::PUONE_ISA
