// SPDX-License-Identifier: BSD-3-Clause
// Batch norm on a host: one block per channel or row. Where inner is 1 (channels last, or no
// dimension after the channels), neighbouring channels are processed together.
#pragma once

#include <cstdint>

#include "kernels/batch_norm.h"
#include "kernels/blocks.h"
#include "kernels/cast.h"

namespace puone::kernels::PUONE_ISA {
namespace batch_norm {

template <class X, class P>
struct HostNorm : BatchNorm<X, P> {
  using Base = BatchNorm<X, P>;
  using T = typename Base::T;
  using Base::Base, Base::affine, Base::channels, Base::count, Base::grad_in, Base::in, Base::inner,
      Base::invstdAt, Base::keepSums, Base::meanAt, Base::out, Base::outer, Base::statistics,
      Base::training, Base::weightAt;
  static constexpr int64_t kStrip = 64;

  void apply(const Block& block, int64_t row) const {
    const T *const scales = affine, *const shifts = affine + channels;
    if (inner == 1) {
      const X* const x = in + row * channels;
      X* const y = out + row * channels;
      block.each(
          channels, [=](int64_t c) { y[c] = cast<X>(cast<T>(x[c]) * scales[c] + shifts[c]); });
    } else {
      const X* const x = in + row * inner;
      X* const y = out + row * inner;
      const T scale = scales[row % channels], shift = shifts[row % channels];
      block.each(inner, [=](int64_t i) { y[i] = cast<X>(cast<T>(x[i]) * scale + shift); });
    }
  }

  void sumsOfChannel(const Block& block, int64_t c) const {
    const T mean = meanAt(c);
    const auto add = [](T a, T b) { return a + b; };
    double sum = 0, product = 0;
    for (int64_t o = 0; o < outer; ++o) {
      const X *const x = in + (o * channels + c) * inner, *const dy =
                                                              out + (o * channels + c) * inner;
      sum += block.reduce(inner, T(0), [=](int64_t i) { return cast<T>(dy[i]); }, add);
      product += block.reduce(
          inner, T(0), [=](int64_t i) { return cast<T>(dy[i]) * (cast<T>(x[i]) - mean); }, add);
    }
    block.once([&] { keepSums(c, sum, product); });
  }

  void sumsOfStrip(const Block& block, int64_t strip) const {
    const int64_t first = strip * kStrip;
    const int64_t n = channels - first < kStrip ? channels - first : kStrip;
    double sum[kStrip] = {}, product[kStrip] = {}; // element j belongs to one thread
    T mean[kStrip];
    block.each(n, [&](int64_t j) { mean[j] = meanAt(first + j); });
    for (int64_t o = 0; o < outer; ++o) {
      const X *const x = in + o * channels + first, *const dy = out + o * channels + first;
      block.each(n, [&](int64_t j) {
        sum[j] += static_cast<double>(cast<T>(dy[j]));
        product[j] += static_cast<double>(cast<T>(dy[j]) * (cast<T>(x[j]) - mean[j]));
      });
    }
    block.each(n, [&](int64_t j) { keepSums(first + j, sum[j], product[j]); });
  }

  /// The input's gradient: in training the statistics depend on the input too.
  PUONE_FN T gradient(T dy, T x, int64_t c) const {
    const T scale = weightAt(c) * invstdAt(c);
    if (!training) return dy * scale;
    const T invstd = invstdAt(c);
    const T slope = statistics[channels + c] / count * invstd * invstd;
    return (dy - statistics[c] / count - (x - meanAt(c)) * slope) * scale;
  }
  void backward(const Block& block, int64_t row) const {
    if (inner == 1) {
      const int64_t at = row * channels;
      block.each(channels, [=, this](int64_t c) {
        grad_in[at + c] = cast<X>(gradient(cast<T>(out[at + c]), cast<T>(in[at + c]), c));
      });
    } else {
      const int64_t c = row % channels, at = row * inner;
      const T scale = weightAt(c) * invstdAt(c), invstd = invstdAt(c), mean = meanAt(c);
      const T shift = training ? statistics[c] / count : T(0);
      const T slope = training ? statistics[channels + c] / count * invstd * invstd : T(0);
      block.each(inner, [=, this](int64_t i) {
        grad_in[at + i] =
            cast<X>((cast<T>(out[at + i]) - shift - (cast<T>(in[at + i]) - mean) * slope) * scale);
      });
    }
  }
};

} // namespace batch_norm

inline void batchNormApply(Launch& launch, const puone_batch_norm_args& args) {
  withNorm<batch_norm::HostNorm>(launch, args, [&](const auto norm) {
    blocks(launch, norm.rows(), norm.rowSize(), [=](const Block& block, int64_t row) {
      norm.apply(block, row);
    });
  });
}

inline void batchNormBackwardSums(Launch& launch, const puone_batch_norm_args& args) {
  withNorm<batch_norm::HostNorm>(launch, args, [&](const auto norm) {
    const int64_t size = norm.outer * norm.inner;
    if (norm.inner == 1) {
      const int64_t strips = (norm.channels + norm.kStrip - 1) / norm.kStrip;
      blocks(launch, strips, size * norm.kStrip, [=](const Block& block, int64_t strip) {
        norm.sumsOfStrip(block, strip);
      });
    } else {
      blocks(launch, norm.channels, size, [=](const Block& block, int64_t c) {
        norm.sumsOfChannel(block, c);
      });
    }
  });
}

inline void batchNormBackward(Launch& launch, const puone_batch_norm_args& args) {
  withNorm<batch_norm::HostNorm>(launch, args, [&](const auto norm) {
    blocks(launch, norm.rows(), norm.rowSize(), [=](const Block& block, int64_t row) {
      norm.backward(block, row);
    });
  });
}

} // namespace puone::kernels::PUONE_ISA
