// SPDX-License-Identifier: BSD-3-Clause
// Distributions with one number per element, and functions that apply them directly to a tensor.
// Compiled without contraction of floating-point operations (kernels.cmake).
#include "kernels/random.h"

#include <cmath>
#include <cstdint>

#include "kernels/families/random.h"
#include "kernels/uniform_bits.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
PUONE_FN T clamped(T value, T low, T high) {
  value = value < low ? low : value;
  return value > high ? high : value;
}

/// In [from, to). `last` is the output type's largest number below `to`: rounding might give `to`.
template <class T>
struct Uniform {
  explicit Uniform(const Parameters& p)
      : from(p.get<T>(0)), range(p.get<T>(1)), last(p.get<T>(2)) {}
  PUONE_FN T operator()(BitsFor<T> bits) const {
    const T x = from + unit(bits) * range;
    return x < last ? x : last;
  }
  T from, range, last;
};

template <class T>
struct NormalDistribution {
  explicit NormalDistribution(const Parameters& p) : mean(p.get<T>(0)), deviation(p.get<T>(1)) {}
  PUONE_FN T operator()(Normal<T> z) const {
    return mean + deviation * z.value;
  }
  T mean, deviation;
};

template <class T>
struct LogNormal {
  explicit LogNormal(const Parameters& p) : logarithm(p) {}
  PUONE_FN T operator()(Normal<T> z) const {
    return exponential(logarithm(z));
  }
  NormalDistribution<T> logarithm;
};

template <class T>
struct Exponential {
  explicit Exponential(const Parameters& p)
      : mean(p.get<T>(0)), low(p.get<T>(1)), high(p.get<T>(2)) {}
  PUONE_FN T operator()(BitsFor<T> bits) const {
    return clamped(-logarithm(openUnit(bits)) * mean, low, high);
  }
  T mean, low, high;
};

/// The number of trials until the first success; `scale` is 1 / log(1 - p).
template <class T>
struct Geometric {
  explicit Geometric(const Parameters& p) : scale(p.get<T>(0)), high(p.get<T>(1)) {}
  PUONE_FN T operator()(BitsFor<T> bits) const {
    return clamped(std::ceil(logarithm(openUnit(bits)) * scale), T(1), high);
  }
  T scale, high;
};

template <class T>
struct Cauchy {
  explicit Cauchy(const Parameters& p)
      : median(p.get<T>(0)), sigma(p.get<T>(1)), high(p.get<T>(2)) {}
  PUONE_FN T operator()(BitsFor<T> bits) const {
    const Point<T> p = circlePoint<T>(bits);
    return clamped(median + sigma * (p.y / p.x), -high, high);
  }
  T median, sigma, high;
};

/// An integer of [from, from + range); a range of 0 means 2^64. The probabilities of two numbers
/// differ by at most 2^-64.
template <class T>
struct Integer {
  explicit Integer(const Parameters& p)
      : from(static_cast<uint64_t>(p.get<T>(0))), range(static_cast<uint64_t>(p.get<T>(1))) {}
  PUONE_FN T operator()(uint64_t bits) const {
    return static_cast<T>(from + (range == 0 ? bits : highProduct(bits, range)));
  }
  uint64_t from, range;
};

template <class T>
struct Bernoulli {
  static constexpr const char* kRefusal = "bernoulli_ expects p to be in [0, 1]";
  PUONE_FN static bool accepts(T p) {
    return p >= 0 && p <= 1;
  }
  PUONE_FN T operator()(BitsFor<T> bits, T p) const {
    return unit(bits) < p ? T(1) : T(0);
  }
};

template <class T>
struct BernoulliScalar {
  explicit BernoulliScalar(const Parameters& parameters) : p(parameters.get<T>(0)) {}
  PUONE_FN T operator()(BitsFor<T> bits) const {
    return unit(bits) < p ? T(1) : T(0);
  }
  T p;
};

template <class T>
struct Dropout {
  explicit Dropout(const Parameters& p) : keep(p.get<T>(0)), scale(p.get<T>(1)) {}
  PUONE_FN Pair<T, Bool> operator()(uint32_t bits, T x) const {
    const bool kept = unit(bits) < keep;
    return {x * (kept ? scale : T(0)), {kept}};
  }
  T keep, scale;
};

template <class T>
struct DropoutBackward {
  explicit DropoutBackward(const Parameters& p) : scale(p.get<T>(0)) {}
  PUONE_FN T operator()(T gradient, Bool kept) const {
    return gradient * (kept.bits != 0 ? scale : T(0));
  }
  T scale;
};

/// The output and the random slope that was used.
template <class T>
struct Rrelu {
  explicit Rrelu(const Parameters& p) : lower(p.get<T>(0)), range(p.get<T>(1)) {}
  PUONE_FN Pair<T, T> operator()(BitsFor<T> bits, T x) const {
    const T slope = x <= 0 ? lower + unit(bits) * range : T(1);
    return {x * slope, slope};
  }
  T lower, range;
};

} // namespace

PUONE_KERNEL(bernoulli) = randomKernel<Bernoulli, Reals>;
PUONE_KERNEL(bernoulli_scalar) = randomKernel<BernoulliScalar, ComputeTypes<float>>;
PUONE_KERNEL(cauchy) = randomKernel<Cauchy, Reals>;
PUONE_KERNEL(dropout) = randomKernel<Dropout, Reals>;
PUONE_KERNEL(dropout_backward) = elementwiseKernel<DropoutBackward, Reals>;
PUONE_KERNEL(exponential) = randomKernel<Exponential, Reals>;
PUONE_KERNEL(geometric) = randomKernel<Geometric, Reals>;
PUONE_KERNEL(log_normal) = randomKernel<LogNormal, Reals>;
PUONE_KERNEL(normal) = randomKernel<NormalDistribution, Reals>;
PUONE_KERNEL(random) = randomKernel<Integer, ComputeTypes<int64_t>>;
PUONE_KERNEL(rrelu) = randomKernel<Rrelu, Reals>;
PUONE_KERNEL(uniform) = randomKernel<Uniform, Reals>;

} // namespace puone::kernels::PUONE_ISA
