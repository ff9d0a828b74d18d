// SPDX-License-Identifier: BSD-3-Clause
// Upsampling and padding: every element of the result is a weighted sum of a few elements of the
// source. In the backward pass, every element of the source gathers from those that used it, so
// that no two threads write the same element.
#include <array>
#include <cmath>
#include <stdexcept>

#include "kernels/args/resample.h"
#include "kernels/compute.h"
#include "kernels/families/resample.h"
#include "kernels/planes.h"
#include "kernels/stored.h"
#include "kernels/target.h"

#ifdef PUONE_SIMT
#include "kernels/simt/resample.h"
#else
#include "kernels/host/resample.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

// One dimension of each mode. forSources(at, f) calls f(i, weight) for the source elements i that
// result element `at` uses; forUsers(i, f) calls f(at, weight) for the result elements that use
// source element i. W is the type of weights.

template <class W>
class Nearest {
 public:
  Nearest(const puone_resample_axis& axis, int32_t mode)
      : source_(axis.source),
        result_(axis.result),
        scale_(static_cast<float>(axis.scale)),
        shift_(mode == PUONE_RESAMPLE_NEAREST_EXACT ? 0.5f : 0.0f) {}

  template <class F>
  PUONE_FN void forSources(int64_t at, const F& f) const {
    f(sourceOf(at), W(1));
  }

  template <class F>
  PUONE_FN void forUsers(int64_t i, const F& f) const {
    // Estimate the first one, then correct it: sources of consecutive positions do not decrease.
    int64_t at = scale_ > 0 ? static_cast<int64_t>(static_cast<float>(i) / scale_) : 0;
    if (at > result_) at = result_;
    while (at > 0 && sourceOf(at - 1) >= i) --at;
    while (at < result_ && sourceOf(at) < i) ++at;
    for (; at < result_ && sourceOf(at) == i; ++at) f(at, W(1));
  }

 private:
  PUONE_FN int64_t sourceOf(int64_t at) const {
    const auto i = static_cast<int64_t>(std::floor((static_cast<float>(at) + shift_) * scale_));
    return i < source_ ? i : source_ - 1;
  }

  int64_t source_;
  int64_t result_;
  float scale_; // torch computes these indices in float for every dtype
  float shift_;
};

template <class W>
class Linear {
 public:
  Linear(const puone_resample_axis& axis, int32_t mode)
      : source_(axis.source),
        result_(axis.result),
        scale_(static_cast<W>(axis.scale)),
        corners_(mode == PUONE_RESAMPLE_LINEAR_CORNERS) {}

  template <class F>
  PUONE_FN void forSources(int64_t at, const F& f) const {
    const Between between = betweenOf(at);
    if (between.first == between.second) return f(between.first, W(1));
    f(between.first, W(1) - between.weight);
    f(between.second, between.weight);
  }

  template <class F>
  PUONE_FN void forUsers(int64_t i, const F& f) const {
    int64_t at = scale_ > W(0) ? static_cast<int64_t>(static_cast<W>(i) / scale_) : 0;
    if (at > result_) at = result_;
    while (at > 0 && betweenOf(at - 1).second >= i) --at;
    while (at < result_ && betweenOf(at).second < i) ++at;
    for (; at < result_; ++at) {
      const Between between = betweenOf(at);
      if (between.first > i) return;
      if (between.first == between.second) {
        f(at, W(1));
      } else {
        f(at, between.first == i ? W(1) - between.weight : between.weight);
      }
    }
  }

 private:
  struct Between {
    int64_t first;
    int64_t second;
    W weight; // of the second
  };

  PUONE_FN Between betweenOf(int64_t at) const {
    if (source_ == result_) return {at, at, W(0)};
    const W exact =
        corners_ ? scale_ * static_cast<W>(at) : scale_ * (static_cast<W>(at) + W(0.5)) - W(0.5);
    const W position = exact > W(0) ? exact : W(0);
    int64_t first = static_cast<int64_t>(position);
    if (first > source_ - 1) first = source_ - 1;
    const W weight = position - static_cast<W>(first);
    return {first, first + (first < source_ - 1 ? 1 : 0), weight < W(1) ? weight : W(1)};
  }

  int64_t source_;
  int64_t result_;
  W scale_;
  bool corners_;
};

template <class W>
class Cubic {
 public:
  Cubic(const puone_resample_axis& axis, int32_t mode)
      : last_(axis.source - 1),
        result_(axis.result),
        scale_(static_cast<W>(axis.scale)),
        corners_(mode == PUONE_RESAMPLE_CUBIC_CORNERS) {}

  template <class F>
  PUONE_FN void forSources(int64_t at, const F& f) const {
    const Place place = placeOf(at);
    for (int k = 0; k < 4; ++k) f(clamped(place.index - 1 + k), weight(place, k));
  }

  template <class F>
  PUONE_FN void forUsers(int64_t i, const F& f) const {
    int64_t at = scale_ > W(0) ? static_cast<int64_t>(static_cast<W>(i) / scale_) : 0;
    if (at > result_) at = result_;
    while (at > 0 && clamped(placeOf(at - 1).index + 2) >= i) --at;
    while (at < result_ && clamped(placeOf(at).index + 2) < i) ++at;
    for (; at < result_; ++at) {
      const Place place = placeOf(at);
      if (clamped(place.index - 1) > i) return;
      for (int k = 0; k < 4; ++k) {
        if (clamped(place.index - 1 + k) == i) f(at, weight(place, k));
      }
    }
  }

 private:
  struct Place {
    int64_t index;
    W beyond; // it, in [0, 1]
  };

  PUONE_FN Place placeOf(int64_t at) const {
    const W exact =
        corners_ ? scale_ * static_cast<W>(at) : scale_ * (static_cast<W>(at) + W(0.5)) - W(0.5);
    const auto floor = static_cast<int64_t>(std::floor(exact));
    const int64_t index = floor < last_ ? floor : last_;
    const W beyond = exact - static_cast<W>(index);
    return {index, beyond < W(0) ? W(0) : beyond > W(1) ? W(1) : beyond};
  }

  PUONE_FN int64_t clamped(int64_t index) const {
    return index < 0 ? 0 : index > last_ ? last_ : index;
  }

  /// The weight of the k-th of the four elements: Keys' cubic convolution kernel, with torch's a.
  PUONE_FN static W weight(const Place& place, int k) {
    constexpr W a = W(-0.75);
    const W offset = place.beyond + W(1) - static_cast<W>(k);
    const W x = offset < W(0) ? -offset : offset;
    return x <= W(1) ? ((a + W(2)) * x - (a + W(3))) * x * x + W(1)
                     : ((a * x - W(5) * a) * x + W(8) * a) * x - W(4) * a;
  }

  int64_t last_;
  int64_t result_;
  W scale_;
  bool corners_;
};

template <class W>
class Reflect {
 public:
  Reflect(const puone_resample_axis& axis, int32_t /*mode*/)
      : last_(axis.source - 1), result_(axis.result), before_(axis.before) {}

  template <class F>
  PUONE_FN void forSources(int64_t at, const F& f) const {
    const int64_t i = at - before_;
    f(i < 0 ? -i : i > last_ ? 2 * last_ - i : i, W(1));
  }

  template <class F>
  PUONE_FN void forUsers(int64_t i, const F& f) const {
    if (i > 0) visit(before_ - i, f);
    visit(before_ + i, f);
    if (i < last_) visit(before_ + 2 * last_ - i, f);
  }

 private:
  template <class F>
  PUONE_FN void visit(int64_t at, const F& f) const {
    if (at >= 0 && at < result_) f(at, W(1));
  }

  int64_t last_;
  int64_t result_;
  int64_t before_;
};

template <class W>
class Replicate {
 public:
  Replicate(const puone_resample_axis& axis, int32_t /*mode*/)
      : last_(axis.source - 1), result_(axis.result), before_(axis.before) {}

  template <class F>
  PUONE_FN void forSources(int64_t at, const F& f) const {
    const int64_t i = at - before_;
    f(i < 0 ? 0 : i > last_ ? last_ : i, W(1));
  }

  template <class F>
  PUONE_FN void forUsers(int64_t i, const F& f) const {
    const int64_t begin = i == 0 || before_ + i < 0 ? 0 : before_ + i;
    const int64_t end = i == last_ || before_ + i >= result_ ? result_ : before_ + i + 1;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t back = at - before_;
      if ((back < 0 ? 0 : back > last_ ? last_ : back) == i) f(at, W(1));
    }
  }

 private:
  int64_t last_;
  int64_t result_;
  int64_t before_;
};

/// The type of sums of elements of type E, and the type of their weights.
template <class E>
using SumOf = std::conditional_t<std::is_integral_v<E>, E, ComputeValue<E>>;
template <class Sum>
using Weight = std::conditional_t<std::is_integral_v<Sum>, int32_t, ComputeReal<Sum>>;

template <class Sum>
PUONE_FN Sum weighted(Sum value, Weight<Sum> weight) {
  if constexpr (kIsComplex<Sum>) {
    return {value.real * weight, value.imaginary * weight};
  } else {
    return static_cast<Sum>(value * weight);
  }
}

/// Computes the elements of a row: sums of the elements of `from` that gather(axis, at, f) gives.
template <class S, class Axis, class Gather>
struct RowSums {
  using Sum = typename S::Value;
  using Factor = Weight<Sum>;

  PUONE_DEVICE auto operator()(const Row& row) const {
    return [=, *this](int64_t at_x) {
      const int64_t in = row.plane * from_extent.plane();
      Sum sum{};
      gather(axes[0], row.z, [&](int64_t z, Weight<Sum> weight_z) {
        gather(axes[1], row.y, [&](int64_t y, Weight<Sum> weight_y) {
          gather(axes[2], at_x, [&](int64_t x, Weight<Sum> weight_x) {
            const int64_t index = (z * from_extent.y + y) * from_extent.x + x;
            const auto weight = static_cast<Weight<Sum>>(weight_z * weight_y * weight_x);
            const Sum term = weighted(stored.load(from, in + index), weight);
            if constexpr (std::is_integral_v<Sum>) {
              sum = static_cast<Sum>(sum + term);
            } else {
              sum = plus(sum, term);
            }
          });
        });
      });
      const int64_t to_row = (row.plane * extent.z + row.z) * extent.y + row.y;
      stored.store(to, to_row * extent.x + at_x, sum);
    };
  }

  S stored;
  std::array<Axis, 3> axes;
  Extent extent;
  unsigned char* to;
  Extent from_extent;
  const unsigned char* from;
  Gather gather;
};

struct FromSources {
  template <class Axis, class F>
  PUONE_FN void operator()(const Axis& axis, int64_t at, const F& f) const {
    axis.forSources(at, f);
  }
};

struct FromUsers {
  template <class Axis, class F>
  PUONE_FN void operator()(const Axis& axis, int64_t at, const F& f) const {
    axis.forUsers(at, f);
  }
};

template <bool kBackward, template <class> class AxisOf, class S>
void resampleAlong(Launch& launch, const puone_resample_args& args, S stored) {
  using Axis = AxisOf<Weight<typename S::Value>>;
  const std::array<Axis, 3> axes{
      Axis(args.axes[0], args.mode), Axis(args.axes[1], args.mode), Axis(args.axes[2], args.mode)};
  const Extent source{args.axes[0].source, args.axes[1].source, args.axes[2].source};
  const Extent result{args.axes[0].result, args.axes[1].result, args.axes[2].result};
  unsigned char* source_data = launch.resolve(args.source);
  unsigned char* result_data = launch.resolve(args.result);
  if constexpr (kBackward) {
    const RowSums<S, Axis, FromUsers> sums{
        stored, axes, source, source_data, result, result_data, {}};
    resampling::sumRows(launch, args.planes, sums);
  } else {
    const RowSums<S, Axis, FromSources> sums{
        stored, axes, result, result_data, source, source_data, {}};
    resampling::sumRows(launch, args.planes, sums);
  }
}

/// Upsampling supports real numbers (bytes only by the nearest); padding supports floating types.
template <bool kBackward, class S>
void resampleAs(Launch& launch, const puone_resample_args& args, S stored) {
  using Sum = typename S::Value;
  constexpr bool kIsReal = !kIsComplex<Sum> && !std::is_integral_v<Sum>;
  switch (args.mode) {
    case PUONE_RESAMPLE_NEAREST:
    case PUONE_RESAMPLE_NEAREST_EXACT:
      if constexpr (!kIsComplex<Sum>) {
        return resampleAlong<kBackward, Nearest>(launch, args, stored);
      }
      break;
    case PUONE_RESAMPLE_LINEAR:
    case PUONE_RESAMPLE_LINEAR_CORNERS:
      if constexpr (kIsReal) return resampleAlong<kBackward, Linear>(launch, args, stored);
      break;
    case PUONE_RESAMPLE_CUBIC:
    case PUONE_RESAMPLE_CUBIC_CORNERS:
      if constexpr (kIsReal) return resampleAlong<kBackward, Cubic>(launch, args, stored);
      break;
    case PUONE_RESAMPLE_REFLECT:
      if constexpr (!std::is_integral_v<Sum>) {
        return resampleAlong<kBackward, Reflect>(launch, args, stored);
      }
      break;
    case PUONE_RESAMPLE_REPLICATE:
      if constexpr (!std::is_integral_v<Sum>) {
        return resampleAlong<kBackward, Replicate>(launch, args, stored);
      }
      break;
  }
  throw std::invalid_argument("no such mode of resampling for this dtype");
}

template <class E, bool kBackward>
void resampleOf(Launch& launch, const puone_resample_args& args) {
  resampleAs<kBackward>(launch, args, stored<E, SumOf<E>>(args.dtype));
}

template <bool kBackward>
void resample(Launch& launch, const puone_resample_args& args) {
  switch (args.dtype) {
    case PUONE_UINT8:
      return resampleOf<uint8_t, kBackward>(launch, args);
    case PUONE_FLOAT16:
      return resampleOf<Half, kBackward>(launch, args);
    case PUONE_BFLOAT16:
      return resampleOf<BFloat16, kBackward>(launch, args);
    case PUONE_FLOAT32:
      return resampleOf<float, kBackward>(launch, args);
    case PUONE_FLOAT64:
      return resampleOf<double, kBackward>(launch, args);
    case PUONE_COMPLEX64:
      return resampleOf<Complex<float>, kBackward>(launch, args);
    case PUONE_COMPLEX128:
      return resampleOf<Complex<double>, kBackward>(launch, args);
  }
  throw std::invalid_argument("no resampling of this dtype");
}

} // namespace

PUONE_KERNEL(resample) = resample<false>;
PUONE_KERNEL(resample_backward) = resample<true>;

} // namespace puone::kernels::PUONE_ISA
