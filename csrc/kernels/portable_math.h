// SPDX-License-Identifier: BSD-3-Clause
// Elementary functions made of plain IEEE operations: equal bits on every driver and instruction
// set, if the compiler does not contract multiplications and additions (-ffp-contract=off; nvcc:
// --fmad=false). Only the sources that kernels.cmake compiles so may use them: the linker keeps one
// copy of each function. The error is a few units in the last place, on the ranges that random
// numbers need. Branch-free, so that loops vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/isa.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

template <class T>
struct FloatFormat;
template <>
struct FloatFormat<float> {
  using Bits = int32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kBias = 127;
  static constexpr Bits kSqrtHalf = 0x3f3504f3; // the bits of sqrt(1/2)
};
template <>
struct FloatFormat<double> {
  using Bits = int64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kBias = 1023;
  static constexpr Bits kSqrtHalf = 0x3fe6a09e667f3bcd;
};

/// c[0] + c[1] x + c[2] x^2 + ...
template <class T, size_t kTerms>
PUONE_FN T polynomial(T x, const T (&c)[kTerms]) {
  T sum = c[kTerms - 1];
#ifndef PUONE_SIMT
#pragma GCC unroll 16
#endif
  for (size_t i = kTerms - 1; i > 0; --i) sum = sum * x + c[i - 1];
  return sum;
}

/// log(x) for a normal, finite x > 0: x = 2^e m with m around 1, and log(m) = 2 artanh(s) with
/// s = (m - 1) / (m + 1).
template <class T>
PUONE_FN T logarithm(T x) {
  using Format = FloatFormat<T>;
  using Bits = typename Format::Bits;
  const Bits bits = std::bit_cast<Bits>(x);
  const Bits exponent = (bits - Format::kSqrtHalf) >> Format::kMantissa;
  const T m = std::bit_cast<T>(bits - (exponent << Format::kMantissa));
  const T s = (m - 1) / (m + 1);
  T series;
  if constexpr (std::is_same_v<T, float>) {
    series = polynomial(s * s, {2.0f, 2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9});
  } else {
    series = polynomial(
        s * s,
        {2.0,
         2.0 / 3,
         2.0 / 5,
         2.0 / 7,
         2.0 / 9,
         2.0 / 11,
         2.0 / 13,
         2.0 / 15,
         2.0 / 17,
         2.0 / 19,
         2.0 / 21});
  }
  return static_cast<T>(static_cast<int32_t>(exponent)) * T(0.693147180559945309417) + s * series;
}

/// exp(x); infinity on overflow, zero on underflow. NaN is not allowed.
template <class T>
PUONE_FN T exponential(T x) {
  using Format = FloatFormat<T>;
  using Bits = typename Format::Bits;
  constexpr bool kFloat = std::is_same_v<T, float>;
  constexpr T kLimit = kFloat ? T(104) : T(746);
  x = x < -kLimit ? -kLimit : x;
  x = x > kLimit ? kLimit : x;
  const T scaled = x * T(1.44269504088896340736);
  const int32_t k = static_cast<int32_t>(scaled + (scaled < 0 ? T(-0.5) : T(0.5)));
  // log(2) in two parts; the first has few bits, so that products are exact.
  const T high = kFloat ? T(0.693359375) : T(0.693147180369123816490);
  const T low = kFloat ? T(-2.12194440e-4) : T(1.90821492927058770002e-10);
  const T r = (x - static_cast<T>(k) * high) - static_cast<T>(k) * low;
  T series;
  if constexpr (kFloat) {
    series = polynomial(
        r, {1.0f, 1.0f, 1.0f / 2, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040});
  } else {
    series = polynomial(
        r,
        {1.0,
         1.0,
         1.0 / 2,
         1.0 / 6,
         1.0 / 24,
         1.0 / 120,
         1.0 / 720,
         1.0 / 5040,
         1.0 / 40320,
         1.0 / 362880,
         1.0 / 3628800,
         1.0 / 39916800,
         1.0 / 479001600,
         1.0 / 6227020800});
  }
  // 2^k as two factors: 2^k itself can be out of range at both ends.
  const auto power = [](int32_t exponent) {
    return std::bit_cast<T>((static_cast<Bits>(exponent) + Format::kBias) << Format::kMantissa);
  };
  return series * power(k / 2) * power(k - k / 2);
}

template <class T>
struct Point {
  T x, y;
};

/// (cos, sin) of an angle within an eighth of a turn.
template <class T>
PUONE_FN Point<T> cosineSine(T angle) {
  const T square = angle * angle;
  if constexpr (std::is_same_v<T, float>) {
    return {
        polynomial(
            square, {1.0f, -1.0f / 2, 1.0f / 24, -1.0f / 720, 1.0f / 40320, -1.0f / 3628800}),
        angle * polynomial(square, {1.0f, -1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880})};
  } else {
    return {
        polynomial(
            square,
            {1.0,
             -1.0 / 2,
             1.0 / 24,
             -1.0 / 720,
             1.0 / 40320,
             -1.0 / 3628800,
             1.0 / 479001600,
             -1.0 / 87178291200,
             1.0 / 20922789888000}),
        angle * polynomial(
                    square,
                    {1.0,
                     -1.0 / 6,
                     1.0 / 120,
                     -1.0 / 5040,
                     1.0 / 362880,
                     -1.0 / 39916800,
                     1.0 / 6227020800,
                     -1.0 / 1307674368000})};
  }
}

} // namespace puone::kernels::PUONE_ISA
