// SPDX-License-Identifier: BSD-3-Clause
// From random bits to random numbers. Exact, or by portable_math.h: equal bits everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/isa.h"
#include "kernels/philox.h"
#include "kernels/portable_math.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// The random bits that one number of type T is made from.
template <class T>
using BitsFor = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;

/// In [0, 1): as many equally likely values as the mantissa has, all exact.
PUONE_FN float unit(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 8)) * 0x1p-24f;
}
PUONE_FN double unit(uint64_t bits) {
  return static_cast<double>(static_cast<int64_t>(bits >> 11)) * 0x1p-53;
}

/// In (0, 1), finer near 0: for logarithms, whose result is neither infinite nor zero.
PUONE_FN float openUnit(uint32_t bits) {
  const float u = (static_cast<float>(static_cast<int32_t>(bits >> 1)) + 0.5f) * 0x1p-31f;
  return u < 1 - 0x1p-24f ? u : 1 - 0x1p-24f;
}
PUONE_FN double openUnit(uint64_t bits) {
  const double u = (static_cast<double>(static_cast<int64_t>(bits >> 1)) + 0.5) * 0x1p-63;
  return u < 1 - 0x1p-53 ? u : 1 - 0x1p-53;
}

/// The high 64 bits of a * b, without integers of 128 bits.
PUONE_FN uint64_t highProductOfHalves(uint64_t a, uint64_t b) {
  const uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (middle >> 32) + (((middle & 0xffffffff) + a0 * b1) >> 32);
}

/// The high 64 bits of a * b: with random bits `a`, an integer of [0, b).
PUONE_FN uint64_t highProduct(uint64_t a, uint64_t b) {
#ifdef PUONE_SIMT
  return highProductOfHalves(a, b);
#else
  __extension__ using Product = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Product>(a) * b >> 64);
#endif
}

/// A point of the unit circle. Neither coordinate is ever zero.
template <class T>
PUONE_FN Point<T> circlePoint(BitsFor<T> bits) {
  constexpr int kBits = sizeof(bits) * 8;
  using Signed = std::make_signed_t<BitsFor<T>>;
  // The two high bits are the quadrant, the others the position in it, from -1/2 to 1/2.
  const auto place = static_cast<Signed>(bits << 2) >> 2;
  constexpr T kStep = kBits == 32 ? T(0x1p-30) : T(0x1p-62);
  const T half_pi = T(1.57079632679489661923);
  const Point<T> p = cosineSine<T>((static_cast<T>(place) + T(0.5)) * kStep * half_pi);
  const bool swap = (bits >> (kBits - 2) & 1) != 0;
  const bool turn = (bits >> (kBits - 1) & 1) != 0;
  const T x = swap ? -p.y : p.x;
  const T y = swap ? p.x : p.y;
  return {turn ? -x : x, turn ? -y : y};
}

/// Two independent standard normal numbers (Box and Muller, 1958).
template <class T>
PUONE_FN Point<T> normalPair(BitsFor<T> radius, BitsFor<T> angle) {
  const T r = std::sqrt(T(-2) * logarithm(openUnit(radius)));
  const Point<T> p = circlePoint<T>(angle);
  return {r * p.x, r * p.y};
}

} // namespace puone::kernels::PUONE_ISA
