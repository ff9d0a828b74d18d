// SPDX-License-Identifier: BSD-3-Clause
// Choices, bounds and blends of elements.
#include "kernels/families/ternary.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
struct Where {
  PUONE_FN T operator()(Bool condition, T a, T b) const {
    return condition.bits != 0 ? a : b;
  }
};

/// min(max(x, low), high); NaN, also among the bounds, gives NaN.
template <class T>
PUONE_FN T bounded(T x, T low, T high) {
  const T raised = x < low || low != low ? low : x;
  const T result = raised > high || high != high ? high : raised;
  return x != x ? x : result;
}

template <class T>
struct Clamp {
  explicit Clamp(const Parameters& p) : low(p.get<T>(0)), high(p.get<T>(1)) {}
  PUONE_FN T operator()(T x) const {
    return bounded(x, low, high);
  }
  T low, high;
};

template <class T>
struct ClampTensor {
  PUONE_FN T operator()(T x, T low, T high) const {
    return bounded(x, low, high);
  }
};

/// Interpolates from the nearer end, so that a weight of 1 gives exactly `end`.
template <class T>
PUONE_FN T blend(T start, T end, T weight) {
  const T difference = end - start;
  bool near;
  if constexpr (kIsComplex<T>) {
    near = abs(weight) < 0.5;
  } else {
    near = abs(weight) < T(0.5);
  }
  const T ahead = start + weight * difference;
  const T back = end - difference * (number<T>(1) - weight);
  return near ? ahead : back;
}

template <class T>
struct Lerp {
  PUONE_FN T operator()(T start, T end, T weight) const {
    return blend(start, end, weight);
  }
};

template <class T>
struct LerpScalar {
  explicit LerpScalar(const Parameters& p) : weight(p.get<T>(0)) {}
  PUONE_FN T operator()(T start, T end) const {
    return blend(start, end, weight);
  }
  T weight;
};

template <class T>
struct Addcmul {
  explicit Addcmul(const Parameters& p) : value(p.get<T>(0)) {}
  PUONE_FN T operator()(T x, T a, T b) const {
    return plus(x, times(times(value, a), b));
  }
  T value;
};

template <class T>
struct Addcdiv {
  explicit Addcdiv(const Parameters& p) : value(p.get<T>(0)) {}
  PUONE_FN T operator()(T x, T a, T b) const {
    return plus(x, over(times(value, a), b));
  }
  T value;
};

} // namespace

PUONE_KERNEL(where) = elementwiseKernel<Where, Numbers>;
PUONE_KERNEL(clamp) = elementwiseKernel<Clamp, Ordered>;
PUONE_KERNEL(clamp_tensor) = elementwiseKernel<ClampTensor, Ordered>;
PUONE_KERNEL(lerp) = elementwiseKernel<Lerp, Inexact>;
PUONE_KERNEL(lerp_scalar) = elementwiseKernel<LerpScalar, Inexact>;
PUONE_KERNEL(addcmul) = elementwiseKernel<Addcmul, Numbers>;
PUONE_KERNEL(addcdiv) = elementwiseKernel<Addcdiv, Inexact>;

} // namespace puone::kernels::PUONE_ISA
