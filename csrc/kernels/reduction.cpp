// SPDX-License-Identifier: BSD-3-Clause
// Sums, products, logical reductions, vector norms.
#include <cmath>
#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/families/reduction.h"
#include "kernels/reduce.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
struct FoldTypes {
  using In = T;
  using Lane = T;
  using Wide = typename Wider<T>::Type;
};

/// parameters: divisor of the sum. Sums of integers are not divided.
template <class T>
struct Sum : FoldTypes<T> {
  using Wide = typename Wider<T>::Type;
  explicit Sum(const puone_reduce_args& args) : divisor(args.parameters[0]) {}
  PUONE_FN T identity() const {
    return {};
  }
  PUONE_FN T step(T lane, T x) const {
    return plus(lane, x);
  }
  PUONE_FN Wide combine(Wide a, Wide b) const {
    return plus(a, b);
  }
  PUONE_FN Wide finish(Wide all) const {
    if constexpr (std::is_integral_v<Wide>) {
      return all;
    } else if constexpr (kIsComplex<Wide>) {
      return {all.real / divisor, all.imaginary / divisor};
    } else {
      return all / divisor;
    }
  }
  double divisor;
};

template <class T>
struct SumOfNumbers : Sum<T> {
  using Sum<T>::Sum;
  PUONE_FN T step(T lane, T x) const {
    return lane + (x == x ? x : T(0));
  }
};

template <class T>
struct Product : FoldTypes<T> {
  using Wide = typename Wider<T>::Type;
  explicit Product(const puone_reduce_args& /*args*/) {}
  PUONE_FN T identity() const {
    return cast<T>(int8_t{1});
  }
  PUONE_FN T step(T lane, T x) const {
    return times(lane, x);
  }
  PUONE_FN Wide combine(Wide a, Wide b) const {
    return times(a, b);
  }
  PUONE_FN Wide finish(Wide all) const {
    return all;
  }
};

struct TruthTypes {
  using In = Bool;
  using Lane = uint8_t;
  using Wide = uint8_t;
  explicit TruthTypes(const puone_reduce_args& /*args*/) {}
};

template <class T>
struct Any : TruthTypes {
  using TruthTypes::TruthTypes;
  PUONE_FN uint8_t identity() const {
    return 0;
  }
  PUONE_FN uint8_t step(uint8_t lane, Bool x) const {
    return lane | static_cast<uint8_t>(x.bits != 0);
  }
  PUONE_FN uint8_t combine(uint8_t a, uint8_t b) const {
    return a | b;
  }
  PUONE_FN Bool finish(uint8_t all) const {
    return {all};
  }
};

template <class T>
struct All : TruthTypes {
  using TruthTypes::TruthTypes;
  PUONE_FN uint8_t identity() const {
    return 1;
  }
  PUONE_FN uint8_t step(uint8_t lane, Bool x) const {
    return lane & static_cast<uint8_t>(x.bits != 0);
  }
  PUONE_FN uint8_t combine(uint8_t a, uint8_t b) const {
    return a & b;
  }
  PUONE_FN Bool finish(uint8_t all) const {
    return {all};
  }
};

template <class T>
struct CountNonzero {
  using In = Bool;
  using Lane = int32_t; // a lane counts a piece or some rows of one chunk
  using Wide = int64_t;
  explicit CountNonzero(const puone_reduce_args& /*args*/) {}
  PUONE_FN int32_t identity() const {
    return 0;
  }
  PUONE_FN int32_t step(int32_t lane, Bool x) const {
    return lane + (x.bits != 0);
  }
  PUONE_FN int64_t combine(int64_t a, int64_t b) const {
    return a + b;
  }
  PUONE_FN int64_t finish(int64_t all) const {
    return all;
  }
};

template <class T>
struct PartOf {
  using Type = T;
};
template <class T>
struct PartOf<Complex<T>> {
  using Type = T;
};

template <class T>
PUONE_FN auto magnitude(T x) {
  if constexpr (kIsComplex<T>) {
    return hypot(x.real, x.imaginary);
  } else {
    return std::abs(x);
  }
}

template <class T>
struct NormTypes {
  using In = T;
  using Lane = typename PartOf<T>::Type;
  using Wide = double;
  PUONE_FN Lane identity() const {
    return 0;
  }
  PUONE_FN double combine(double a, double b) const {
    return a + b;
  }
  PUONE_FN double finish(double all) const {
    return all;
  }
};

template <class T>
struct Norm1 : NormTypes<T> {
  using Lane = typename PartOf<T>::Type;
  explicit Norm1(const puone_reduce_args& /*args*/) {}
  PUONE_FN Lane step(Lane lane, T x) const {
    return lane + magnitude(x);
  }
};

template <class T>
struct Norm2 : NormTypes<T> {
  using Lane = typename PartOf<T>::Type;
  explicit Norm2(const puone_reduce_args& /*args*/) {}
  PUONE_FN Lane step(Lane lane, T x) const {
    if constexpr (kIsComplex<T>) {
      return lane + (x.real * x.real + x.imaginary * x.imaginary);
    } else {
      return lane + x * x;
    }
  }
  PUONE_FN double finish(double all) const {
    return std::sqrt(all);
  }
};

/// parameters: the order.
template <class T>
struct NormP : NormTypes<T> {
  using Lane = typename PartOf<T>::Type;
  explicit NormP(const puone_reduce_args& args) : order(args.parameters[0]) {}
  PUONE_FN Lane step(Lane lane, T x) const {
    return lane + std::pow(magnitude(x), static_cast<Lane>(order));
  }
  PUONE_FN double finish(double all) const {
    return std::pow(all, 1 / order);
  }
  double order;
};

template <class T>
struct NormInfinity : NormTypes<T> {
  using Lane = typename PartOf<T>::Type;
  explicit NormInfinity(const puone_reduce_args& /*args*/) {}
  PUONE_FN Lane step(Lane lane, T x) const {
    const Lane size = magnitude(x);
    return (size > lane) | (size != size) ? size : lane;
  }
  PUONE_FN double combine(double a, double b) const {
    return (b > a) | (b != b) ? b : a;
  }
};

template <class T>
struct NormMinusInfinity : NormTypes<T> {
  using Lane = typename PartOf<T>::Type;
  explicit NormMinusInfinity(const puone_reduce_args& /*args*/) {}
  PUONE_FN Lane identity() const {
    return INFINITY;
  }
  PUONE_FN Lane step(Lane lane, T x) const {
    const Lane size = magnitude(x);
    return (size < lane) | (size != size) ? size : lane;
  }
  PUONE_FN double combine(double a, double b) const {
    return (b < a) | (b != b) ? b : a;
  }
};

template <class T>
using SumOf = Fold<Sum<T>>;
template <class T>
using SumOfNumbersOf = Fold<SumOfNumbers<T>>;
template <class T>
using ProductOf = Fold<Product<T>>;
template <class T>
using AnyOf = Fold<Any<T>>;
template <class T>
using AllOf = Fold<All<T>>;
template <class T>
using CountNonzeroOf = Fold<CountNonzero<T>>;
template <class T>
using Norm1Of = Fold<Norm1<T>>;
template <class T>
using Norm2Of = Fold<Norm2<T>>;
template <class T>
using NormPOf = Fold<NormP<T>>;
template <class T>
using NormInfinityOf = Fold<NormInfinity<T>>;
template <class T>
using NormMinusInfinityOf = Fold<NormMinusInfinity<T>>;

using Totals = ComputeTypes<int64_t, float, double, Complex<float>, Complex<double>>;
using Truth = ComputeTypes<Bool>;

} // namespace

PUONE_KERNEL(sum) = reduceKernel<SumOf, Totals>;
PUONE_KERNEL(nansum) = reduceKernel<SumOfNumbersOf, Reals>;
PUONE_KERNEL(prod) = reduceKernel<ProductOf, Totals>;
PUONE_KERNEL(any) = reduceKernel<AnyOf, Truth>;
PUONE_KERNEL(all) = reduceKernel<AllOf, Truth>;
PUONE_KERNEL(count_nonzero) = reduceKernel<CountNonzeroOf, Truth>;
PUONE_KERNEL(norm_1) = reduceKernel<Norm1Of, Inexact>;
PUONE_KERNEL(norm_2) = reduceKernel<Norm2Of, Inexact>;
PUONE_KERNEL(norm_p) = reduceKernel<NormPOf, Inexact>;
PUONE_KERNEL(norm_infinity) = reduceKernel<NormInfinityOf, Inexact>;
PUONE_KERNEL(norm_minus_infinity) = reduceKernel<NormMinusInfinityOf, Inexact>;
PUONE_KERNEL(moments) = reduceKernel<Moments, Reals>;

} // namespace puone::kernels::PUONE_ISA
