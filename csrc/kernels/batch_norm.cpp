// SPDX-License-Identifier: BSD-3-Clause
// Batch norm. The input is outer x channels x inner elements; where inner is 1 (channels last, or
// no dimension behind the channels), neighbouring channels are worked on together.
#include <cmath>
#include <stdexcept>

#include "kernels/args/normalization.h"
#include "kernels/blocks.h"
#include "kernels/cast.h"
#include "kernels/entry.h"
#include "kernels/families.h"
#include "kernels/map.h"
#include "kernels/row_math.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// X: elements; P: parameters and statistics.
template <class X, class P>
struct BatchNorm {
  using T = RowType<X>;
  static constexpr int64_t kStrip = 64;

  BatchNorm(Launch& launch, const puone_batch_norm_args& args)
      : training(args.training != 0),
        outer(args.outer),
        channels(args.channels),
        inner(args.inner),
        count(static_cast<T>(args.outer * args.inner)),
        epsilon(static_cast<T>(args.epsilon)),
        momentum(args.momentum),
        in(elementsAt<X>(launch, args.in)),
        out(elementsAt<X>(launch, args.out)),
        weight(elementsAt<P>(launch, args.weight)),
        bias(elementsAt<P>(launch, args.bias)),
        running_mean(elementsAt<P>(launch, args.running_mean)),
        running_var(elementsAt<P>(launch, args.running_var)),
        save_mean(elementsAt<P>(launch, args.save_mean)),
        save_invstd(elementsAt<P>(launch, args.save_invstd)),
        statistics(elementsAt<T>(launch, args.statistics)),
        affine(elementsAt<T>(launch, args.affine)),
        grad_in(elementsAt<X>(launch, args.grad_in)),
        grad_weight(elementsAt<P>(launch, args.grad_weight)),
        grad_bias(elementsAt<P>(launch, args.grad_bias)) {}

  PUONE_FN T weightAt(int64_t c) const {
    return weight ? cast<T>(weight[c]) : T(1);
  }

  /// In training the statistics are the batch's, else the running ones.
  void scale(int64_t c) const {
    const T variance = training ? statistics[c] : cast<T>(running_var[c]);
    const T mean = training ? statistics[channels + c] : cast<T>(running_mean[c]);
    const T invstd = T(1) / std::sqrt(variance + epsilon);
    if (affine) {
      affine[c] = weightAt(c) * invstd;
      affine[channels + c] = (bias ? cast<T>(bias[c]) : T(0)) - mean * weightAt(c) * invstd;
    }
    if (!training) return;
    save_mean[c] = cast<P>(mean);
    save_invstd[c] = cast<P>(invstd);
    if (running_mean) {
      running_mean[c] = cast<P>(mixed(cast<T>(running_mean[c]), mean));
    }
    if (running_var) {
      running_var[c] = cast<P>(mixed(cast<T>(running_var[c]), variance * (count / (count - 1))));
    }
  }
  PUONE_FN T mixed(T old, T now) const {
    return static_cast<T>(momentum * now + (1 - momentum) * old);
  }

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

  PUONE_FN T meanAt(int64_t c) const {
    return training ? cast<T>(save_mean[c]) : cast<T>(running_mean[c]);
  }
  PUONE_FN T invstdAt(int64_t c) const {
    return training ? cast<T>(save_invstd[c]) : T(1) / std::sqrt(cast<T>(running_var[c]) + epsilon);
  }

  void keepSums(int64_t c, double sum, double product) const {
    statistics[c] = static_cast<T>(sum);
    statistics[channels + c] = static_cast<T>(product);
    if (grad_bias) grad_bias[c] = cast<P>(statistics[c]);
    if (grad_weight) grad_weight[c] = cast<P>(statistics[channels + c] * invstdAt(c));
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
    double sum[kStrip] = {}, product[kStrip] = {}; // element j is always the same thread's
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

  int64_t rows() const {
    return inner == 1 ? outer : outer * channels;
  }
  int64_t rowSize() const {
    return inner == 1 ? channels : inner;
  }

  bool training;
  int64_t outer, channels, inner;
  T count, epsilon;
  double momentum;
  X *in, *out;
  P *weight, *bias, *running_mean, *running_var, *save_mean, *save_invstd;
  T *statistics, *affine;
  X* grad_in;
  P *grad_weight, *grad_bias;
};

/// body(BatchNorm<X, P>) for the types that occur together.
template <class Body>
void withNorm(Launch& launch, const puone_batch_norm_args& args, const Body& body) {
  const auto is = [&](int32_t x, int32_t p) {
    return args.dtype == x && args.parameter_dtype == p;
  };
  if (is(PUONE_FLOAT32, PUONE_FLOAT32)) return body(BatchNorm<float, float>(launch, args));
  if (is(PUONE_FLOAT64, PUONE_FLOAT64)) return body(BatchNorm<double, double>(launch, args));
  if (is(PUONE_FLOAT16, PUONE_FLOAT16)) return body(BatchNorm<Half, Half>(launch, args));
  if (is(PUONE_BFLOAT16, PUONE_BFLOAT16)) return body(BatchNorm<BFloat16, BFloat16>(launch, args));
  if (is(PUONE_FLOAT16, PUONE_FLOAT32)) return body(BatchNorm<Half, float>(launch, args));
  if (is(PUONE_BFLOAT16, PUONE_FLOAT32)) return body(BatchNorm<BFloat16, float>(launch, args));
  throw std::invalid_argument("batch norm does not compute in these dtypes");
}

void batchNormScale(Launch& launch, const puone_batch_norm_args& args) {
  withNorm(launch, args, [&](const auto norm) {
    map(launch, norm.channels, [=](int64_t c) { norm.scale(c); });
  });
}

void batchNormApply(Launch& launch, const puone_batch_norm_args& args) {
  withNorm(launch, args, [&](const auto norm) {
    blocks(launch, norm.rows(), norm.rowSize(), [=](const Block& block, int64_t row) {
      norm.apply(block, row);
    });
  });
}

void batchNormBackwardSums(Launch& launch, const puone_batch_norm_args& args) {
  withNorm(launch, args, [&](const auto norm) {
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

void batchNormBackward(Launch& launch, const puone_batch_norm_args& args) {
  withNorm(launch, args, [&](const auto norm) {
    blocks(launch, norm.rows(), norm.rowSize(), [=](const Block& block, int64_t row) {
      norm.backward(block, row);
    });
  });
}

constexpr Kernel kKernels[] = {
    entry<puone_batch_norm_args, batchNormScale>("batch_norm_scale"),
    entry<puone_batch_norm_args, batchNormApply>("batch_norm_apply"),
    entry<puone_batch_norm_args, batchNormBackwardSums>("batch_norm_backward_sums"),
    entry<puone_batch_norm_args, batchNormBackward>("batch_norm_backward"),
};

} // namespace

std::span<const Kernel> batchNormKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
