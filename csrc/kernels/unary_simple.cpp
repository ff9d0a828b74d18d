// SPDX-License-Identifier: BSD-3-Clause
// Signs, magnitudes, rounding and tests of elements.
#include <type_traits>

#include "kernels/families/unary_simple.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
PUONE_FN auto magnitude(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x < 0 ? negated(x) : x;
  } else {
    return abs(x);
  }
}

template <class T>
PUONE_FN T signOf(T x) {
  if constexpr (kIsComplex<T>) {
    const auto m = abs(x);
    return m == 0 ? T{0, 0} : T{x.real / m, x.imaginary / m};
  } else {
    return static_cast<T>((x > 0) - (x < 0));
  }
}

template <class T>
PUONE_FN auto angleOf(T x) {
  if constexpr (kIsComplex<T>) {
    return std::atan2(x.imaginary, x.real);
  } else {
    return x != x ? x : x < 0 ? kPi<T> : T(0);
  }
}

PUONE_UNARY(Abs, magnitude(x));
PUONE_UNARY(Neg, negated(x));
PUONE_UNARY(Reciprocal, number<T>(1) / x);
PUONE_UNARY(Square, times(x, x));
PUONE_UNARY(Cube, times(times(x, x), x));
PUONE_UNARY(InverseSquare, number<T>(1) / (x * x));
PUONE_UNARY(Sign, signOf(x));
PUONE_UNARY(Angle, angleOf(x));
PUONE_UNARY(Conj, conjugated(x));
PUONE_UNARY(Ceil, ceil(x));
PUONE_UNARY(Floor, floor(x));
PUONE_UNARY(Round, std::nearbyint(x));
PUONE_UNARY(Trunc, trunc(x));
PUONE_UNARY(Frac, x - trunc(x));
PUONE_UNARY(BitwiseNot, static_cast<T>(~x));
PUONE_UNARY(LogicalNot, truth(!isNonzero(x)));
PUONE_UNARY(IsPositiveInfinity, truth(x == kInfinity<T>));
PUONE_UNARY(IsNegativeInfinity, truth(x == -kInfinity<T>));

template <class T>
struct Signbit {
  PUONE_FN Bool operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return truth(x < 0);
    } else {
      return truth(std::signbit(x));
    }
  }
};

/// Rounds to n decimals: parameter 0 is 10^|n|, parameter 1 says whether n is negative.
template <class T>
struct RoundDecimals {
  explicit RoundDecimals(const Parameters& p) : power(p.get<T>(0)), negative(p.get<T>(1) != 0) {}
  PUONE_FN T operator()(T x) const {
    return negative ? std::nearbyint(x / power) * power : std::nearbyint(x * power) / power;
  }
  T power;
  bool negative;
};

/// Parameters: replacements for NaN, infinity and minus infinity.
template <class T>
struct NanToNum {
  explicit NanToNum(const Parameters& p) : nan(p.get<T>(0)), top(p.get<T>(1)), low(p.get<T>(2)) {}
  PUONE_FN T operator()(T x) const {
    if constexpr (kIsComplex<T>) {
      return {
          replaced(x.real, nan.real, top.real, low.real),
          replaced(x.imaginary, nan.real, top.real, low.real)};
    } else {
      return replaced(x, nan, top, low);
    }
  }
  template <class Part>
  PUONE_FN static Part replaced(Part x, Part nan, Part top, Part low) {
    x = x == kInfinity<Part> ? top : x == -kInfinity<Part> ? low : x;
    return x == x ? x : nan;
  }
  T nan, top, low;
};

} // namespace

PUONE_KERNEL(abs) = elementwiseKernel<Abs, Numbers>;
PUONE_KERNEL(neg) = elementwiseKernel<Neg, Numbers>;
PUONE_KERNEL(reciprocal) = elementwiseKernel<Reciprocal, Inexact>;
PUONE_KERNEL(square) = elementwiseKernel<Square, Numbers>;
PUONE_KERNEL(cube) = elementwiseKernel<Cube, Numbers>;
PUONE_KERNEL(inverse_square) = elementwiseKernel<InverseSquare, Inexact>;
PUONE_KERNEL(sign) = elementwiseKernel<Sign, Numbers>;
PUONE_KERNEL(angle) = elementwiseKernel<Angle, Inexact>;
PUONE_KERNEL(conj) = elementwiseKernel<Conj, Complexes>;
PUONE_KERNEL(ceil) = elementwiseKernel<Ceil, Reals>;
PUONE_KERNEL(floor) = elementwiseKernel<Floor, Reals>;
PUONE_KERNEL(round) = elementwiseKernel<Round, Reals>;
PUONE_KERNEL(round_decimals) = elementwiseKernel<RoundDecimals, Reals>;
PUONE_KERNEL(trunc) = elementwiseKernel<Trunc, Reals>;
PUONE_KERNEL(frac) = elementwiseKernel<Frac, Reals>;
PUONE_KERNEL(nan_to_num) = elementwiseKernel<NanToNum, Inexact>;
PUONE_KERNEL(bitwise_not) = elementwiseKernel<BitwiseNot, Integers>;
PUONE_KERNEL(logical_not) = elementwiseKernel<LogicalNot, Numbers>;
PUONE_KERNEL(signbit) = elementwiseKernel<Signbit, Ordered>;
PUONE_KERNEL(isposinf) = elementwiseKernel<IsPositiveInfinity, Reals>;
PUONE_KERNEL(isneginf) = elementwiseKernel<IsNegativeInfinity, Reals>;

} // namespace puone::kernels::PUONE_ISA
