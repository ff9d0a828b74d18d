// SPDX-License-Identifier: BSD-3-Clause
// Floating-point numbers as PTX has them, for the parts that execute them.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace puone::ptx {

/// 16-bit floats as their bits.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

/// A 16-bit float: bits of the exponent and of the mantissa behind the point.
template <class T>
struct Format;
template <>
struct Format<Half> {
  static constexpr int kExponent = 5, kMantissa = 10;
};
template <>
struct Format<Bfloat> {
  static constexpr int kExponent = 8, kMantissa = 7;
};

template <class T>
constexpr bool isSmall = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

template <class T>
double widened(T value) {
  if constexpr (isSmall<T>) {
    using F = Format<T>;
    constexpr int kBias = (1 << (F::kExponent - 1)) - 1;
    const int exponent = value.bits >> F::kMantissa & ((1 << F::kExponent) - 1);
    const int mantissa = value.bits & ((1 << F::kMantissa) - 1);
    const double sign = (value.bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == (1 << F::kExponent) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - kBias - F::kMantissa);
    return sign * std::ldexp(mantissa + (1 << F::kMantissa), exponent - kBias - F::kMantissa);
  } else {
    return value;
  }
}

/// Single-precision results that are not numbers have these bits; those of double precision are not
/// specified.
inline float canonical(float value) {
  return value != value ? std::bit_cast<float>(0x7fffffffu) : value;
}
inline double canonical(double value) {
  return value != value ? std::bit_cast<double>(uint64_t{0x7fffffffffffffff}) : value;
}

/// .ftz: a subnormal number is a zero of its sign.
inline float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
inline double flushed(double value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0, value) : value;
}

/// Rounds in another direction than to nearest even while it lives.
class Rounding {
 public:
  explicit Rounding(int mode) {
    std::fesetround(mode);
  }
  ~Rounding() {
    std::fesetround(FE_TONEAREST);
  }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;
};

} // namespace puone::ptx
