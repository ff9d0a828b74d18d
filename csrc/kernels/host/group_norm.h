// SPDX-License-Identifier: BSD-3-Clause
// Group norm on a host: one block per group.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "kernels/args/normalization.h"
#include "kernels/blocks.h"
#include "kernels/cast.h"
#include "kernels/map.h"
#include "kernels/row_math.h"

namespace puone::kernels::PUONE_ISA {
namespace group_norm {

/// X: elements; P: parameters; S: statistics.
template <class X, class P, class S>
struct GroupNorm {
  using T = RowType<X>;

  GroupNorm(Launch& launch, const puone_group_norm_args& args)
      : groups(args.groups),
        channels(args.channels),
        inner(args.inner),
        size(args.channels * args.inner),
        epsilon(static_cast<T>(args.epsilon)),
        in(elementsAt<X>(launch, args.in)),
        out(elementsAt<X>(launch, args.out)),
        weight(elementsAt<P>(launch, args.weight)),
        bias(elementsAt<P>(launch, args.bias)),
        mean(elementsAt<S>(launch, args.mean)),
        rstd(elementsAt<S>(launch, args.rstd)),
        grad_in(elementsAt<X>(launch, args.grad_in)),
        grad_weight(elementsAt<P>(launch, args.grad_weight)),
        grad_bias(elementsAt<P>(launch, args.grad_bias)),
        sums(elementsAt<T>(launch, args.sums)),
        count(args.rows * args.groups) {}

  PUONE_FN T weightAt(int64_t channel) const {
    return weight ? cast<T>(weight[channel]) : T(1);
  }
  PUONE_FN T biasAt(int64_t channel) const {
    return bias ? cast<T>(bias[channel]) : T(0);
  }

  void forward(const Block& block, int64_t index) const {
    const X* const x = in + index * size;
    X* const y = out + index * size;
    const auto add = [](T a, T b) { return a + b; };
    const T n = static_cast<T>(size);
    // In double: deviations may be small against the mean, and its error counts against them.
    const auto wide = [=](int64_t i) { return static_cast<double>(cast<T>(x[i])); };
    const auto sum = block.reduce(size, 0.0, wide, [](double a, double b) { return a + b; });
    const T center = static_cast<T>(sum / static_cast<double>(size));
    const auto deviation = [=](int64_t i) { return cast<T>(x[i]) - center; };
    const T squares =
        block.reduce(size, T(0), [=](int64_t i) { return deviation(i) * deviation(i); }, add);
    const T scale = T(1) / std::sqrt(squares / n + epsilon);
    block.once([&] {
      mean[index] = cast<S>(center);
      rstd[index] = cast<S>(scale);
    });
    const int64_t first = index % groups * channels;
    if (inner == 1) {
      const P *const w = weight ? weight + first : nullptr, *const b =
                                                                bias ? bias + first : nullptr;
      if (w && b) {
        block.each(size, [=](int64_t i) {
          y[i] = cast<X>(deviation(i) * scale * cast<T>(w[i]) + cast<T>(b[i]));
        });
      } else {
        block.each(size, [=](int64_t i) {
          y[i] = cast<X>(
              deviation(i) * scale * (w ? cast<T>(w[i]) : T(1)) + (b ? cast<T>(b[i]) : T(0)));
        });
      }
      return;
    }
    for (int64_t c = 0; c < channels; ++c) {
      const T w = weightAt(first + c) * scale, b = biasAt(first + c) - center * w;
      const X* const from = x + c * inner;
      X* const to = y + c * inner;
      block.each(inner, [=](int64_t i) { to[i] = cast<X>(cast<T>(from[i]) * w + b); });
    }
  }

  /// The group's part of the input's gradient; for group norms also, per channel, the sums of the
  /// gradient (shifts) and of its products with the normalised input (scales).
  void backward(const Block& block, int64_t index) const {
    const X *const x = in + index * size, *const dy = out + index * size;
    const T center = cast<T>(mean[index]), scale = cast<T>(rstd[index]);
    const int64_t first = index % groups * channels;
    const auto add = [](T a, T b) { return a + b; };
    T shift_all = 0, scale_all = 0;
    if (inner == 1) {
      const P* const w = weight ? weight + first : nullptr;
      const auto dw = [=](int64_t i) {
        return w ? cast<T>(dy[i]) * cast<T>(w[i]) : cast<T>(dy[i]);
      };
      shift_all = block.reduce(size, T(0), dw, add);
      scale_all = block.reduce(
          size, T(0), [=](int64_t i) { return dw(i) * ((cast<T>(x[i]) - center) * scale); }, add);
      if (groups > 1) {
        T *const shifts = sums + index * channels, *const scales = shifts + count * channels;
        block.each(size, [=](int64_t i) {
          shifts[i] = cast<T>(dy[i]);
          scales[i] = cast<T>(dy[i]) * ((cast<T>(x[i]) - center) * scale);
        });
      }
    } else {
      for (int64_t c = 0; c < channels; ++c) {
        const X *const from = x + c * inner, *const grad = dy + c * inner;
        const T shifts =
            block.reduce(inner, T(0), [=](int64_t i) { return cast<T>(grad[i]); }, add);
        const T scales = block.reduce(
            inner,
            T(0),
            [=](int64_t i) { return cast<T>(grad[i]) * ((cast<T>(from[i]) - center) * scale); },
            add);
        block.once([&] {
          sums[index * channels + c] = shifts;
          sums[count * channels + index * channels + c] = scales;
        });
        shift_all += shifts * weightAt(first + c);
        scale_all += scales * weightAt(first + c);
      }
    }
    if (!grad_in) return;
    X* const dx = grad_in + index * size;
    const T shift_mean = shift_all / static_cast<T>(size),
            scale_mean = scale_all / static_cast<T>(size);
    const auto gradient = [=](T d, T value) {
      return (d - shift_mean - (value - center) * scale * scale_mean) * scale;
    };
    if (inner == 1) {
      const P* const w = weight ? weight + first : nullptr;
      block.each(size, [=](int64_t i) {
        const T d = w ? cast<T>(dy[i]) * cast<T>(w[i]) : cast<T>(dy[i]);
        dx[i] = cast<X>(gradient(d, cast<T>(x[i])));
      });
      return;
    }
    for (int64_t c = 0; c < channels; ++c) {
      const T w = weightAt(first + c);
      const int64_t at = c * inner;
      block.each(inner, [=](int64_t i) {
        dx[at + i] = cast<X>(gradient(cast<T>(dy[at + i]) * w, cast<T>(x[at + i])));
      });
    }
  }

  /// The parameters' gradients of group norms, from the sums of all rows.
  void parametersOfSums(int64_t channel) const {
    double shifts = 0, scales = 0;
    const int64_t all = groups * channels;
    for (int64_t row = 0; row < count / groups; ++row) {
      shifts += static_cast<double>(sums[row * all + channel]);
      scales += static_cast<double>(sums[count * channels + row * all + channel]);
    }
    if (grad_bias) grad_bias[channel] = cast<P>(static_cast<T>(shifts));
    if (grad_weight) grad_weight[channel] = cast<P>(static_cast<T>(scales));
  }

  /// The parameters' gradients of layer norms, for kStrip neighbouring parameters.
  static constexpr int64_t kStrip = 64;
  void parametersOfStrip(const Block& block, int64_t strip) const {
    const int64_t first = strip * kStrip;
    const int64_t n = channels - first < kStrip ? channels - first : kStrip;
    double shifts[kStrip] = {}, scales[kStrip] = {}; // element j belongs to one thread
    for (int64_t row = 0; row < count; ++row) {
      const X *const x = in + row * size + first, *const dy = out + row * size + first;
      const T center = cast<T>(mean[row]), scale = cast<T>(rstd[row]);
      block.each(n, [&](int64_t j) {
        shifts[j] += static_cast<double>(cast<T>(dy[j]));
        scales[j] += static_cast<double>(cast<T>(dy[j]) * ((cast<T>(x[j]) - center) * scale));
      });
    }
    block.each(n, [&](int64_t j) {
      if (grad_bias) grad_bias[first + j] = cast<P>(static_cast<T>(shifts[j]));
      if (grad_weight) grad_weight[first + j] = cast<P>(static_cast<T>(scales[j]));
    });
  }

  int64_t groups, channels, inner, size;
  T epsilon;
  X *in, *out;
  P *weight, *bias;
  S *mean, *rstd;
  X* grad_in;
  P *grad_weight, *grad_bias;
  T* sums;
  int64_t count; // groups of all rows
};

/// Calls body.template operator()<X, P, S>() for the combinations of types that occur.
template <class Body>
void withTypes(const puone_group_norm_args& args, const Body& body) {
  const auto is = [&](int32_t x, int32_t p, int32_t s) {
    return args.dtype == x && args.parameter_dtype == p && args.statistics_dtype == s;
  };
  if (is(PUONE_FLOAT32, PUONE_FLOAT32, PUONE_FLOAT32)) {
    return body.template operator()<float, float, float>();
  }
  if (is(PUONE_FLOAT64, PUONE_FLOAT64, PUONE_FLOAT64)) {
    return body.template operator()<double, double, double>();
  }
  if (is(PUONE_FLOAT16, PUONE_FLOAT16, PUONE_FLOAT16)) {
    return body.template operator()<Half, Half, Half>();
  }
  if (is(PUONE_BFLOAT16, PUONE_BFLOAT16, PUONE_BFLOAT16)) {
    return body.template operator()<BFloat16, BFloat16, BFloat16>();
  }
  if (is(PUONE_FLOAT16, PUONE_FLOAT32, PUONE_FLOAT32)) {
    return body.template operator()<Half, float, float>();
  }
  if (is(PUONE_BFLOAT16, PUONE_FLOAT32, PUONE_FLOAT32)) {
    return body.template operator()<BFloat16, float, float>();
  }
  throw std::invalid_argument("group norm does not compute in these dtypes");
}

} // namespace group_norm

inline void groupNormForward(Launch& launch, const puone_group_norm_args& args) {
  group_norm::withTypes(args, [&]<class X, class P, class S>() {
    const group_norm::GroupNorm<X, P, S> norm(launch, args);
    blocks(launch, norm.count, norm.size, [=](const Block& block, int64_t index) {
      norm.forward(block, index);
    });
  });
}

inline void groupNormBackward(Launch& launch, const puone_group_norm_args& args) {
  group_norm::withTypes(args, [&]<class X, class P, class S>() {
    const group_norm::GroupNorm<X, P, S> norm(launch, args);
    blocks(launch, norm.count, norm.size, [=](const Block& block, int64_t index) {
      norm.backward(block, index);
    });
    if (!norm.grad_weight && !norm.grad_bias) return;
    if (norm.inner == 1 && norm.groups == 1) {
      constexpr int64_t kStrip = group_norm::GroupNorm<X, P, S>::kStrip;
      const int64_t strips = (norm.channels + kStrip - 1) / kStrip;
      blocks(launch, strips, norm.count * kStrip, [=](const Block& block, int64_t strip) {
        norm.parametersOfStrip(block, strip);
      });
    } else {
      map(launch, norm.groups * norm.channels, [=](int64_t c) { norm.parametersOfSums(c); });
    }
  });
}

} // namespace puone::kernels::PUONE_ISA
