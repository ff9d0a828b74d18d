// SPDX-License-Identifier: BSD-3-Clause
// Running sums, products, extremes and log-sum-exps.
#include <cmath>
#include <limits>

#include "kernels/arithmetic.h"
#include "kernels/families/cumulative.h"
#include "kernels/scan.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
struct CumulativeSum {
  using In = T;
  using Gathered = typename Wider<T>::Type;
  PUONE_FN Gathered nothing() const {
    return {};
  }
  PUONE_FN Gathered step(Gathered all, T x, int64_t /*position*/) const {
    return plus(all, cast<Gathered>(x));
  }
  PUONE_FN Gathered combine(Gathered a, Gathered b) const {
    return plus(a, b);
  }
  PUONE_FN T result(Gathered all) const {
    return cast<T>(all);
  }
};

template <class T>
struct CumulativeProduct {
  using In = T;
  using Gathered = typename Wider<T>::Type;
  PUONE_FN Gathered nothing() const {
    return cast<Gathered>(int8_t{1});
  }
  PUONE_FN Gathered step(Gathered all, T x, int64_t /*position*/) const {
    return times(all, cast<Gathered>(x));
  }
  PUONE_FN Gathered combine(Gathered a, Gathered b) const {
    return times(a, b);
  }
  PUONE_FN T result(Gathered all) const {
    return cast<T>(all);
  }
};

/// Of equal elements, the last one is taken.
template <class T, bool kLargest>
struct CumulativeExtreme {
  using In = T;
  using Gathered = Pair<T, int64_t>;
  PUONE_FN Gathered nothing() const {
    return {T{}, -1};
  }
  PUONE_FN Gathered step(Gathered all, T x, int64_t position) const {
    const bool better = kLargest ? x >= all.first : x <= all.first;
    return (all.second < 0) | (x != x) | better ? Gathered{x, position} : all;
  }
  PUONE_FN Gathered combine(Gathered a, Gathered b) const {
    return b.second < 0 ? a : step(a, b.first, b.second);
  }
  PUONE_FN Pair<T, int64_t> result(Gathered all) const {
    return all;
  }
};
template <class T>
using CumulativeMaximum = CumulativeExtreme<T, true>;
template <class T>
using CumulativeMinimum = CumulativeExtreme<T, false>;

template <class T>
struct LogCumulativeSumExp {
  using In = T;
  using Gathered = typename Wider<T>::Type;
  PUONE_FN Gathered nothing() const {
    return -std::numeric_limits<Gathered>::infinity();
  }
  PUONE_FN Gathered step(Gathered all, T x, int64_t /*position*/) const {
    return combine(all, x);
  }
  PUONE_FN Gathered combine(Gathered all, Gathered x) const {
    if ((all != all) | (x != x)) return std::numeric_limits<Gathered>::quiet_NaN();
    const Gathered low = x < all ? x : all, high = x < all ? all : x;
    // Equal infinities: their difference is NaN.
    return low == high && std::isinf(low) ? low : high + std::log1p(std::exp(low - high));
  }
  PUONE_FN T result(Gathered all) const {
    return static_cast<T>(all);
  }
};

using Totals = ComputeTypes<int64_t, float, double, Complex<float>, Complex<double>>;

} // namespace

PUONE_KERNEL(cumsum) = scanKernel<CumulativeSum, Totals>;
PUONE_KERNEL(cumprod) = scanKernel<CumulativeProduct, Totals>;
PUONE_KERNEL(cummax) = scanKernel<CumulativeMaximum, Ordered>;
PUONE_KERNEL(cummin) = scanKernel<CumulativeMinimum, Ordered>;
PUONE_KERNEL(logcumsumexp) = scanKernel<LogCumulativeSumExp, Reals>;

} // namespace puone::kernels::PUONE_ISA
