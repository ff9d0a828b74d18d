// SPDX-License-Identifier: BSD-3-Clause
// Functions of two elements, besides those of arithmetic.h. Nothing here traps: an integer divided
// by zero gives an unspecified number, as on other devices.
#include <type_traits>

#include "kernels/families/binary.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
PUONE_FN T larger(T a, T b) { // NaN if either is NaN
  return a > b || a != a ? a : b;
}
template <class T>
PUONE_FN T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}
template <class T>
PUONE_FN T largerNumber(T a, T b) { // NaN only if both are NaN
  return a > b || b != b ? a : b;
}
template <class T>
PUONE_FN T smallerNumber(T a, T b) {
  return a < b || b != b ? a : b;
}

/// a / b towards zero; integers only.
template <class T>
PUONE_FN T quotient(T a, T b) {
  return b == 0 ? T(-1) : b == -1 ? negated(a) : static_cast<T>(a / b);
}

template <class T>
PUONE_FN T fmodOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(b == 0 ? a : b == -1 ? 0 : a % b);
  } else {
    return std::fmod(a, b);
  }
}

/// The remainder with the sign of b.
template <class T>
PUONE_FN T remainderOf(T a, T b) {
  const T rest = fmodOf(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <class T>
PUONE_FN T truncatedQuotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return quotient(a, b);
  } else {
    return trunc(a / b);
  }
}

template <class T>
PUONE_FN T floorQuotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T q = quotient(a, b);
    return (a < 0) != (b < 0) && b != 0 && fmodOf(a, b) != 0 ? q - 1 : q;
  } else {
    // Use the remainder, because a / b may round up to an integer.
    if (b == 0) return a / b;
    const T rest = std::fmod(a, b);
    T q = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) q -= 1;
    if (q == 0) return copysign(T(0), a / b);
    const T below = floor(q);
    return q - below > T(0.5) ? below + 1 : below;
  }
}

template <class T>
PUONE_FN T powOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
    T result = 1;
    for (; b != 0; b /= 2, a = times(a, a)) {
      if (b % 2 != 0) result = times(result, a);
    }
    return result;
  } else {
    return pow(a, b);
  }
}

template <class T>
PUONE_FN T gcdOf(T a, T b) {
  while (a != 0) {
    const T rest = fmodOf(b, a);
    b = a;
    a = rest;
  }
  return b < 0 ? negated(b) : b;
}
template <class T>
PUONE_FN T lcmOf(T a, T b) {
  const T divisor = gcdOf(a, b);
  const T product = divisor == 0 ? T(0) : times(quotient(a, divisor), b);
  return product < 0 ? negated(product) : product;
}

/// Bits shifted out on the left are lost, and so is everything for a distance out of range.
template <class T>
PUONE_FN T shiftedLeft(T a, T b) {
  using Bits = std::make_unsigned_t<T>;
  const bool fits = static_cast<Bits>(b) < sizeof(T) * 8;
  return fits ? static_cast<T>(static_cast<Bits>(a) << b) : T(0);
}
template <class T>
PUONE_FN T shiftedRight(T a, T b) {
  constexpr T kLast = sizeof(T) * 8 - 1;
  using Bits = std::make_unsigned_t<T>;
  return a >> (static_cast<Bits>(b) <= static_cast<Bits>(kLast) ? b : kLast);
}

/// log(e^a + e^b)
template <class T>
PUONE_FN T logAddExp(T a, T b) {
  const T top = larger(a, b);
  return a == b && abs(a) == kInfinity<T> ? a : top + log1p(exp(-abs(a - b)));
}
/// log2(2^a + 2^b). The product is not rounded before the sum, which may nearly cancel.
template <class T>
PUONE_FN T logAddExp2(T a, T b) {
  const T log2_e = static_cast<T>(1.44269504088896340736);
  const T top = larger(a, b);
  if (a == b && abs(a) == kInfinity<T>) return a;
  return std::fma(log1p(exp2(-abs(a - b))), log2_e, top);
}

PUONE_BINARY(Maximum, larger(a, b));
PUONE_BINARY(Minimum, smaller(a, b));
PUONE_BINARY(Fmax, largerNumber(a, b));
PUONE_BINARY(Fmin, smallerNumber(a, b));
PUONE_BINARY(Fmod, fmodOf(a, b));
PUONE_BINARY(Remainder, remainderOf(a, b));
PUONE_BINARY(DivTrunc, truncatedQuotient(a, b));
PUONE_BINARY(DivFloor, floorQuotient(a, b));
PUONE_BINARY(Pow, powOf(a, b));
PUONE_BINARY(Atan2, atan2(a, b));
PUONE_BINARY(Hypot, hypot(a, b));
PUONE_BINARY(Copysign, copysign(a, b));
PUONE_BINARY(Nextafter, std::nextafter(a, b));
PUONE_BINARY(LogAddExp, logAddExp(a, b));
PUONE_BINARY(LogAddExp2, logAddExp2(a, b));
PUONE_BINARY(Xlogy, b != b ? b : a == 0 ? T(0) : a * log(b));
PUONE_BINARY(Xlog1py, b != b ? b : a == 0 ? T(0) : a * log1p(b));
PUONE_BINARY(Heaviside, a == 0 ? b : static_cast<T>(a > 0));
PUONE_BINARY(BitwiseAnd, static_cast<T>(a& b));
PUONE_BINARY(BitwiseOr, static_cast<T>(a | b));
PUONE_BINARY(BitwiseXor, static_cast<T>(a ^ b));
PUONE_BINARY(LeftShift, shiftedLeft(a, b));
PUONE_BINARY(RightShift, shiftedRight(a, b));
PUONE_BINARY(Gcd, gcdOf(a, b));
PUONE_BINARY(Lcm, lcmOf(a, b));

template <class T>
struct PowScalar {
  explicit PowScalar(const Parameters& p) : exponent(p.get<T>(0)) {}
  PUONE_FN T operator()(T x) const {
    return powOf(x, exponent);
  }
  T exponent;
};

} // namespace

PUONE_KERNEL(maximum) = elementwiseKernel<Maximum, Ordered>;
PUONE_KERNEL(minimum) = elementwiseKernel<Minimum, Ordered>;
PUONE_KERNEL(fmax) = elementwiseKernel<Fmax, Ordered>;
PUONE_KERNEL(fmin) = elementwiseKernel<Fmin, Ordered>;
PUONE_KERNEL(fmod) = elementwiseKernel<Fmod, Ordered>;
PUONE_KERNEL(remainder) = elementwiseKernel<Remainder, Ordered>;
PUONE_KERNEL(div_trunc) = elementwiseKernel<DivTrunc, Ordered>;
PUONE_KERNEL(div_floor) = elementwiseKernel<DivFloor, Ordered>;
PUONE_KERNEL(pow) = elementwiseKernel<Pow, Numbers>;
PUONE_KERNEL(pow_scalar) = elementwiseKernel<PowScalar, Numbers>;
PUONE_KERNEL(atan2) = elementwiseKernel<Atan2, Reals>;
PUONE_KERNEL(hypot) = elementwiseKernel<Hypot, Reals>;
PUONE_KERNEL(copysign) = elementwiseKernel<Copysign, Reals>;
PUONE_KERNEL(nextafter) = elementwiseKernel<Nextafter, Reals>;
PUONE_KERNEL(logaddexp) = elementwiseKernel<LogAddExp, Reals>;
PUONE_KERNEL(logaddexp2) = elementwiseKernel<LogAddExp2, Reals>;
PUONE_KERNEL(xlogy) = elementwiseKernel<Xlogy, Reals>;
PUONE_KERNEL(xlog1py) = elementwiseKernel<Xlog1py, Reals>;
PUONE_KERNEL(heaviside) = elementwiseKernel<Heaviside, Ordered>;
PUONE_KERNEL(bitwise_and) = elementwiseKernel<BitwiseAnd, Integers>;
PUONE_KERNEL(bitwise_or) = elementwiseKernel<BitwiseOr, Integers>;
PUONE_KERNEL(bitwise_xor) = elementwiseKernel<BitwiseXor, Integers>;
PUONE_KERNEL(left_shift) = elementwiseKernel<LeftShift, Integers>;
PUONE_KERNEL(right_shift) = elementwiseKernel<RightShift, Integers>;
PUONE_KERNEL(gcd) = elementwiseKernel<Gcd, Integers>;
PUONE_KERNEL(lcm) = elementwiseKernel<Lcm, Integers>;

} // namespace puone::kernels::PUONE_ISA
