// SPDX-License-Identifier: BSD-3-Clause
// Batch norm, per channel. The input is outer x channels x inner elements; host/batch_norm.h and
// simt/batch_norm.h spread them over threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "kernels/args/normalization.h"
#include "kernels/cast.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/row_math.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// X: elements; P: parameters and statistics.
template <class X, class P>
struct BatchNorm {
  using T = RowType<X>;

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
  PUONE_FN void scale(int64_t c) const {
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

  PUONE_FN T meanAt(int64_t c) const {
    return training ? cast<T>(save_mean[c]) : cast<T>(running_mean[c]);
  }
  PUONE_FN T invstdAt(int64_t c) const {
    return training ? cast<T>(save_invstd[c]) : T(1) / std::sqrt(cast<T>(running_var[c]) + epsilon);
  }

  PUONE_FN void keepSums(int64_t c, double sum, double product) const {
    statistics[c] = static_cast<T>(sum);
    statistics[channels + c] = static_cast<T>(product);
    if (grad_bias) grad_bias[c] = cast<P>(statistics[c]);
    if (grad_weight) grad_weight[c] = cast<P>(statistics[channels + c] * invstdAt(c));
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

/// Calls body(Norm<X, P>) for the combinations of types that occur.
template <template <class, class> class Norm, class Body>
void withNorm(Launch& launch, const puone_batch_norm_args& args, const Body& body) {
  const auto is = [&](int32_t x, int32_t p) {
    return args.dtype == x && args.parameter_dtype == p;
  };
  if (is(PUONE_FLOAT32, PUONE_FLOAT32)) return body(Norm<float, float>(launch, args));
  if (is(PUONE_FLOAT64, PUONE_FLOAT64)) return body(Norm<double, double>(launch, args));
  if (is(PUONE_FLOAT16, PUONE_FLOAT16)) return body(Norm<Half, Half>(launch, args));
  if (is(PUONE_BFLOAT16, PUONE_BFLOAT16)) return body(Norm<BFloat16, BFloat16>(launch, args));
  if (is(PUONE_FLOAT16, PUONE_FLOAT32)) return body(Norm<Half, float>(launch, args));
  if (is(PUONE_BFLOAT16, PUONE_FLOAT32)) return body(Norm<BFloat16, float>(launch, args));
  throw std::invalid_argument("batch norm does not compute in these dtypes");
}

} // namespace puone::kernels::PUONE_ISA
