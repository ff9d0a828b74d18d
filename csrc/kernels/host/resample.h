// SPDX-License-Identifier: BSD-3-Clause
// Resampling on host cores: what the elements of an axis are made of is found out once, not for
// each element. A row of the result is made in two steps: the rows that it is made of are added up,
// element by element, and then the elements along that sum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/compute.h"
#include "kernels/launch.h"
#include "kernels/planes.h"
#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA {
namespace resampling {

/// The elements that the elements of one axis are made of, with their weights.
template <class W>
struct Taps {
  struct Tap {
    int64_t index;
    W weight;
  };

  template <class Axis, class Gather>
  Taps(const Axis& axis, int64_t count, const Gather& gather) : starts(1) {
    starts.reserve(static_cast<size_t>(count) + 1);
    for (int64_t at = 0; at < count; ++at) {
      gather(axis, at, [this](int64_t index, W weight) { taps.push_back({index, weight}); });
      starts.push_back(static_cast<int64_t>(taps.size()));
    }
    width = starts.size() > 1 ? starts[1] : 0;
    while (uniform < count && begin(uniform) + width == end(uniform)) ++uniform;
  }

  const Tap* begin(int64_t at) const {
    return taps.data() + starts[static_cast<size_t>(at)];
  }
  const Tap* end(int64_t at) const {
    return begin(at + 1);
  }

  std::vector<Tap> taps;
  std::vector<int64_t> starts; // of each element's, and the end
  int64_t width = 0;           // number of the first element's
  int64_t uniform = 0;         // elements from the first on that have as many
};

template <class Sum, class W>
Sum addedTo(Sum sum, Sum value, W weight) {
  if constexpr (kIsComplex<Sum>) {
    return {sum.real + value.real * weight, sum.imaginary + value.imaginary * weight};
  } else {
    return static_cast<Sum>(sum + value * weight);
  }
}

template <class Sums>
class Rows {
  using Sum = typename Sums::Sum;
  using W = typename Sums::Factor;
  using TapsOf = Taps<W>;

 public:
  explicit Rows(const Sums& sums)
      : sums_(sums),
        z_(sums.axes[0], sums.extent.z, sums.gather),
        y_(sums.axes[1], sums.extent.y, sums.gather),
        x_(sums.axes[2], sums.extent.x, sums.gather) {}

  /// Elements that a row takes to compute.
  int64_t work() const {
    return sums_.from_extent.x + static_cast<int64_t>(x_.taps.size());
  }

  /// The row `index` of the result, counted over all planes. `added`: from_extent.x elements.
  void run(int64_t index, Sum* added) const {
    const int64_t y = index % sums_.extent.y, z = index / sums_.extent.y % sums_.extent.z;
    const int64_t plane = index / sums_.extent.y / sums_.extent.z;
    const int64_t width = sums_.from_extent.x;
    const int64_t in = plane * sums_.from_extent.plane();
    const auto stored = sums_.stored;
    const unsigned char* const from = sums_.from;
    std::fill_n(added, width, Sum{});
    for (auto tap_z = z_.begin(z); tap_z != z_.end(z); ++tap_z) {
      for (auto tap_y = y_.begin(y); tap_y != y_.end(y); ++tap_y) {
        const int64_t row = in + (tap_z->index * sums_.from_extent.y + tap_y->index) * width;
        const auto weight = static_cast<W>(tap_z->weight * tap_y->weight);
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) {
          added[i] = addedTo(added[i], stored.load(from, row + i), weight);
        }
      }
    }
    const int64_t done = x_.width == 1   ? uniform<1>(index, added)
                         : x_.width == 2 ? uniform<2>(index, added)
                         : x_.width == 4 ? uniform<4>(index, added)
                                         : 0;
    for (int64_t at = done; at < sums_.extent.x; ++at) {
      Sum sum{};
      for (auto tap = x_.begin(at); tap != x_.end(at); ++tap) {
        sum = addedTo(sum, added[tap->index], tap->weight);
      }
      stored.store(sums_.to, index * sums_.extent.x + at, sum);
    }
  }

 private:
  /// The elements from the first on that have kWidth taps; returns how many.
  template <int kWidth>
  int64_t uniform(int64_t index, const Sum* added) const {
    // Copies: a store of bytes could change what members and references show.
    const auto stored = sums_.stored;
    const auto* tap = x_.taps.data();
    const int64_t count = x_.uniform, out = index * sums_.extent.x;
    unsigned char* const to = sums_.to;
    for (int64_t at = 0; at < count; ++at, tap += kWidth) {
      Sum sum{};
      for (int k = 0; k < kWidth; ++k) sum = addedTo(sum, added[tap[k].index], tap[k].weight);
      stored.store(to, out + at, sum);
    }
    return count;
  }

  const Sums& sums_;
  TapsOf z_, y_, x_;
};

/// A row of which few elements are used is not worth adding up.
constexpr int64_t kFewOf = 8;

/// Computes the elements of every plane.
template <class Sums>
void sumRows(Launch& launch, int64_t planes, const Sums& sums) {
  constexpr int64_t kWork = 8;
  if (sums.from_extent.x > kFewOf * sums.extent.x) {
    return forPlanes(launch, planes, sums.extent, kWork, sums);
  }
  const Rows<Sums> rows(sums);
  const int64_t grain = std::max<int64_t>(1, kGrain / (rows.work() + 1));
  launch.forRanges(planes * sums.extent.z * sums.extent.y, grain, [&](int64_t begin, int64_t end) {
    std::vector<typename Sums::Sum> added(static_cast<size_t>(sums.from_extent.x));
    for (int64_t row = begin; row < end; ++row) rows.run(row, added.data());
  });
}

} // namespace resampling
} // namespace puone::kernels::PUONE_ISA
