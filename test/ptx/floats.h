// SPDX-License-Identifier: BSD-3-Clause
// Floating-point numbers as PTX has them, for the parts that execute them.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace puone::ptx {

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
