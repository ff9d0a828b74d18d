// SPDX-License-Identifier: BSD-3-Clause
// Functions of real numbers, under their usual names. Those of a float are written without branches
// and calls, so that loops over them vectorise at every instruction set; the error is below 2.5
// units in the last place, below 4 for tan and the hyperbolic functions. Polynomials are minimax
// fits (Remez) on the interval to which the argument is reduced. Functions of a double, and rare
// ones, are the standard library's. A device's own functions of a float have instructions for their
// core: the most frequent ones are those.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/isa.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

#ifdef PUONE_ON_DEVICE
constexpr bool kOnDevice = true;
#else
constexpr bool kOnDevice = false;
#endif

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
template <class T>
inline constexpr T kPi = static_cast<T>(3.14159265358979323846);

using std::abs;
using std::ceil;
using std::copysign;
using std::floor;
using std::sqrt;
using std::trunc;

#define PUONE_STANDARD(function)       \
  PUONE_FN double function(double x) { \
    return std::function(x);           \
  }
PUONE_STANDARD(exp)
PUONE_STANDARD(exp2)
PUONE_STANDARD(expm1)
PUONE_STANDARD(log)
PUONE_STANDARD(log2)
PUONE_STANDARD(log10)
PUONE_STANDARD(log1p)
PUONE_STANDARD(sin)
PUONE_STANDARD(cos)
PUONE_STANDARD(tan)
PUONE_STANDARD(asin)
PUONE_STANDARD(acos)
PUONE_STANDARD(atan)
PUONE_STANDARD(sinh)
PUONE_STANDARD(cosh)
PUONE_STANDARD(tanh)
PUONE_STANDARD(asinh)
PUONE_STANDARD(acosh)
PUONE_STANDARD(atanh)
PUONE_STANDARD(erf)
PUONE_STANDARD(erfc)
#undef PUONE_STANDARD
PUONE_FN double pow(double x, double y) {
  return std::pow(x, y);
}
PUONE_FN double atan2(double y, double x) {
  return std::atan2(y, x);
}
PUONE_FN float erfc(float x) {
  return std::erfc(x);
}
PUONE_FN float hypot(float x, float y) {
  return std::hypot(x, y);
}
/// A device's own is a unit in the last place too large, which is infinity beside the largest.
PUONE_FN double hypot(double x, double y) {
#ifdef PUONE_SIMT
  if (!std::isfinite(x) || !std::isfinite(y)) return std::hypot(x, y);
  const double a = std::fmax(std::abs(x), std::abs(y)), b = std::fmin(std::abs(x), std::abs(y));
  if (b == 0) return a;
  const int exponent = std::ilogb(a);
  const double p = std::scalbn(a, -exponent), q = std::scalbn(b, -exponent);
  return std::scalbn(std::sqrt(std::fma(q, q, p * p)), exponent);
#else
  return std::hypot(x, y);
#endif
}

namespace detail {

/// c0 + c1 x + c2 x^2 ...
template <class T>
PUONE_FN T polynomial(T /*x*/, T c) {
  return c;
}
template <class T, class... C>
PUONE_FN T polynomial(T x, T c, C... more) {
  return polynomial(x, more...) * x + c;
}

/// Adding it rounds a float below 2^22 to an integer, which is then in the low bits.
constexpr float kRound = 0x1.8p23f;
constexpr double kRoundDouble = 0x1.8p52;

PUONE_FN int32_t roundedBits(float shifted) {
  return std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
}

/// 2^n, n from -126 to 127.
PUONE_FN float powerOfTwo(int32_t n) {
  return std::bit_cast<float>((n + 127) << 23);
}

constexpr float kLn2High = 0x1.63p-1f; // times a small integer it is exact
constexpr float kLn2Low = -2.12194440e-4f;

/// x = n ln 2 + r.
struct Reduced {
  PUONE_FN explicit Reduced(float x) {
    const float shifted = x * 1.44269504f + kRound;
    const float rounded = shifted - kRound;
    n = roundedBits(shifted);
    r = x - rounded * kLn2High - rounded * kLn2Low;
  }
  int32_t n;
  float r;
};

/// e^r - 1, |r| <= ln 2 / 2.
PUONE_FN float expm1Kernel(float r) {
  const float p =
      polynomial(r, 0.4999999348f, 0.1666652077f, 0.04166838252f, 0.008368702744f, 0.001381484358f);
  return r * r * p + r;
}

/// m 2^n in two steps, also where 2^n is not a float.
PUONE_FN float scaled(float m, int32_t n) {
  const int32_t half = n >> 1;
  return m * powerOfTwo(half) * powerOfTwo(n - half);
}

PUONE_FN float clamped(float x, float low, float high) {
  x = x < low ? low : x; // keeps NaN
  return x > high ? high : x;
}

} // namespace detail

PUONE_FN float exp(float x) {
  if constexpr (kOnDevice) return std::exp(x);
  const detail::Reduced reduced(detail::clamped(x, -105, 90));
  return detail::scaled(1 + detail::expm1Kernel(reduced.r), reduced.n);
}

PUONE_FN float exp2(float x) {
  const float bounded = detail::clamped(x, -152, 130);
  const float shifted = bounded + detail::kRound;
  const float r = (bounded - (shifted - detail::kRound)) * 0.693147181f;
  return detail::scaled(1 + detail::expm1Kernel(r), detail::roundedBits(shifted));
}

PUONE_FN float expm1(float x) {
  const detail::Reduced reduced(detail::clamped(x, -20, 90));
  // 2^n (e^r - 1) + 2^n - 1, halved: 2^128 is not a float.
  const float half = detail::powerOfTwo(reduced.n - 1);
  const float result = 2 * (half * detail::expm1Kernel(reduced.r) + (half - 0.5f));
  const float small = reduced.n == 0 ? detail::expm1Kernel(reduced.r) : result;
  return x > 89 ? kInfinity<float> : std::copysign(small, x);
}

namespace detail {

/// log(m) = f + rest, m = 1 + f between sqrt(1/2) and sqrt(2).
PUONE_FN float logRest(float f) {
  const float p = polynomial(
      f,
      0.333333126f,
      -0.250000096f,
      0.2000211864f,
      -0.1666799593f,
      0.1421955275f,
      -0.1240558811f,
      0.1188815904f,
      -0.1167565455f,
      0.06746649788f);
  return f * f * (f * p - 0.5f);
}

/// x = 2^n (1 + f), x > 0; for other x unspecified. Unsigned: their bits may be any.
struct Split {
  PUONE_FN explicit Split(float x) {
    const bool tiny = x < 0x1p-126f;
    const uint32_t bits = std::bit_cast<uint32_t>(tiny ? x * 0x1p23f : x);
    const int32_t exponent =
        static_cast<int32_t>(bits - std::bit_cast<uint32_t>(0.707106781f)) >> 23;
    f = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1;
    n = exponent - (tiny ? 23 : 0);
  }
  int32_t n;
  float f;
};

/// The logarithm of special values, else `general`.
PUONE_FN float logSpecial(float x, float general) {
  const float positive = x < kInfinity<float> ? general : x;
  return x < 0 ? kNaN<float> : x == 0 ? -kInfinity<float> : positive;
}

PUONE_FN float logOf(const Split& s) {
  const float n = static_cast<float>(s.n);
  return n * kLn2Low + logRest(s.f) + s.f + n * kLn2High;
}

} // namespace detail

PUONE_FN float log(float x) {
  if constexpr (kOnDevice) return std::log(x);
  return detail::logSpecial(x, detail::logOf(detail::Split(x)));
}

PUONE_FN float log2(float x) {
  const detail::Split s(x);
  const float rest = detail::logRest(s.f);
  // log2(e) = 1 + 0.4427; the factor 1 causes no rounding.
  const float general = (rest + s.f) * 0.442695041f + rest + s.f + static_cast<float>(s.n);
  return detail::logSpecial(x, general);
}

PUONE_FN float log10(float x) {
  const detail::Split s(x);
  const float n = static_cast<float>(s.n);
  const float general = n * 4.60503898e-6f + (s.f + detail::logRest(s.f)) * 0.434294482f +
                        n * 0x1.344p-2f; // log10(2) in two parts
  return detail::logSpecial(x, general);
}

PUONE_FN float log1p(float x) {
  const float u = 1 + x;
  const float lost = std::abs(x) < 1 ? x - (u - 1) : 1 - (u - x);
  detail::Split s(u);
  s.f += lost * std::bit_cast<float>((s.n < 127 ? 127 - s.n : 0) << 23);
  const float general = detail::logSpecial(u, detail::logOf(s));
  return x == 0 ? x : general;
}

PUONE_FN float tanh(float x) {
  if constexpr (kOnDevice) return std::tanh(x);
  const float magnitude = std::abs(x);
  const float e = expm1(2 * (magnitude > 10 ? 10 : magnitude));
  return std::copysign(e / (e + 2), x);
}

template <class T>
PUONE_FN T sigmoid(T x) {
  return 1 / (1 + exp(-x));
}

PUONE_FN float sinh(float x) {
  const float magnitude = std::abs(x);
  const float e = expm1(magnitude), half = exp(0.5f * magnitude);
  return std::copysign(magnitude > 80 ? 0.5f * half * half : 0.5f * (e + e / (e + 1)), x);
}

PUONE_FN float cosh(float x) {
  const float magnitude = std::abs(x);
  const float e = exp(magnitude), half = exp(0.5f * magnitude);
  return magnitude > 80 ? 0.5f * half * half : 0.5f * (e + 1 / e);
}

PUONE_FN float asinh(float x) {
  const float a = std::abs(x);
  const float small = log1p(a + a * a / (1 + std::sqrt(a * a + 1)));
  return std::copysign(a > 0x1p30f ? log(a) + 0.693147181f : small, x);
}

PUONE_FN float acosh(float x) {
  const float t = x - 1;
  const float small = log1p(t + std::sqrt(2 * t + t * t));
  return x < 1 ? kNaN<float> : x > 0x1p30f ? log(x) + 0.693147181f : small;
}

PUONE_FN float atanh(float x) {
  const float a = std::abs(x);
  return std::copysign(0.5f * log1p(2 * a / (1 - a)), x);
}

PUONE_FN float erf(float x) {
  if constexpr (kOnDevice) return std::erf(x);
  const float z = x * x;
  const float small = detail::polynomial(
      z,
      0.1283791659f,
      -0.3761262714f,
      0.1128360018f,
      -0.02685444465f,
      0.005189535438f,
      -0.0008020842084f,
      7.889122066e-5f);
  // erfc(t) = 2^-h, t from 1 to 4
  const float magnitude = std::abs(x);
  const float h = detail::polynomial(
      magnitude > 4 ? 4 : magnitude,
      0.0005102929426f,
      1.625975132f,
      0.9207649231f,
      0.1486515552f,
      -0.03145844489f,
      0.004240960814f,
      -0.0002677270095f);
  // Rounds and adds the bias of exponents: the bits of 2^n are then these, shifted.
  constexpr float kRoundExponent = detail::kRound + 127;
  const float shifted = kRoundExponent - h;
  const float p = detail::polynomial(
      (kRoundExponent - shifted) - h,
      1.000000119f,
      0.693146944f,
      0.2402212024f,
      0.05550713092f,
      0.009675541893f,
      0.001327647362f);
  const float power = std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
  const float large = std::copysign(1 - p * power, x);
  return magnitude < 1 ? x * small + x : large;
}

namespace detail {

/// x = n pi/2 + r, for |x| < kQuadrantLimit. In double, so that r has all its digits near 0.
constexpr float kQuadrantLimit = 1e5f;

struct Quadrant {
  PUONE_FN explicit Quadrant(float x) {
    const float shifted = x * 0.636619772f + kRound;
    const double rounded = static_cast<double>(shifted - kRound);
    n = roundedBits(shifted);
    // pi/2 in two parts, the first of 33 bits: its product is exact.
    const double high = 0x1.921fb544p0, low = 0x1.0b4611a626331p-34;
    r = static_cast<float>(static_cast<double>(x) - rounded * high - rounded * low);
  }
  int32_t n;
  float r;
};

PUONE_FN float sinKernel(float r) {
  const float z = r * r;
  const float p = polynomial(z, -0.1666665497f, 0.00833217856f, -0.0001951727133f);
  return std::copysign(r * z * p + r, r);
}
PUONE_FN float cosKernel(float r) {
  const float z = r * r;
  return z * z * polynomial(z, 0.04166664706f, -0.001388737488f, 2.443912136e-5f) + (1 - 0.5f * z);
}
PUONE_FN float sinOf(const Quadrant& q, int32_t n) {
  const float value = (n & 1) != 0 ? cosKernel(q.r) : sinKernel(q.r);
  return (n & 2) != 0 ? -value : value;
}

} // namespace detail

/// Whether sin, cos and tan must use the standard library for this argument.
PUONE_FN bool isFarAngle(float x) {
  return std::abs(x) >= detail::kQuadrantLimit;
}

/// sin, cos and tan, for arguments for which isFarAngle() is false.
PUONE_FN float sin(float x) {
  const detail::Quadrant q(x);
  return detail::sinOf(q, q.n);
}
PUONE_FN float cos(float x) {
  const detail::Quadrant q(x);
  return detail::sinOf(q, q.n + 1);
}
PUONE_FN float tan(float x) {
  const detail::Quadrant q(x);
  const float s = detail::sinKernel(q.r), c = detail::cosKernel(q.r);
  const bool odd = (q.n & 1) != 0;
  return (odd ? -c : s) / (odd ? s : c);
}

namespace detail {

/// atan(z), |z| <= tan(pi/8).
PUONE_FN float atanKernel(float x) {
  const float z = x * x;
  const float p =
      polynomial(z, -0.3333331637f, 0.1999852871f, -0.1424444078f, 0.1059963541f, -0.06091286683f);
  return x * z * p + x;
}

constexpr float kHalfPi = 1.57079633f;
constexpr float kHalfPiLow = -4.37113883e-8f; // what kHalfPi lacks

/// asin(s), 0 <= s <= 1/2, z = s^2.
PUONE_FN float asinKernel(float s, float z) {
  const float p = polynomial(
      z,
      0.1666666022f,
      0.07500495551f,
      0.0445181198f,
      0.03180059694f,
      0.01445871873f,
      0.03749525141f);
  return s * z * p + s;
}

} // namespace detail

PUONE_FN float atan(float x) {
  const float t = std::abs(x);
  const bool middle = t > 0.414213562f, large = t > 2.41421356f;
  const float above = large ? -1.0f : middle ? t - 1 : t;
  const float below = large ? t : middle ? t + 1 : 1.0f;
  const float offset = large ? detail::kHalfPi : middle ? 0.5f * detail::kHalfPi : 0.0f;
  const float low = large ? detail::kHalfPiLow : middle ? 0.5f * detail::kHalfPiLow : 0.0f;
  return std::copysign(offset + (detail::atanKernel(above / below) + low), x);
}

PUONE_FN float atan2(float y, float x) {
  const float a = std::abs(x), b = std::abs(y);
  const bool steep = b > a;
  const float small = steep ? a : b, large = steep ? b : a;
  const float ratio = large == 0 ? 0.0f : small == kInfinity<float> ? 1.0f : small / large;
  float angle = atan(ratio);
  angle = steep ? detail::kHalfPi - (angle - detail::kHalfPiLow) : angle;
  const bool left = std::bit_cast<int32_t>(x) < 0;
  angle = left ? 2 * detail::kHalfPi - (angle - 2 * detail::kHalfPiLow) : angle;
  return x != x || y != y ? kNaN<float> : std::copysign(angle, y);
}

PUONE_FN float asin(float x) {
  const float a = std::abs(x);
  const bool large = a > 0.5f;
  const float z = large ? 0.5f * (1 - a) : a * a;
  const float p = detail::asinKernel(large ? std::sqrt(z) : a, z);
  const float half = detail::kHalfPi;
  return std::copysign(large ? half - (2 * p - detail::kHalfPiLow) : p, x);
}

PUONE_FN float acos(float x) {
  const float a = std::abs(x);
  const bool large = a > 0.5f;
  const float z = large ? 0.5f * (1 - a) : a * a;
  const float p = detail::asinKernel(large ? std::sqrt(z) : a, z);
  const float half = detail::kHalfPi, low = detail::kHalfPiLow;
  const float outer = x < 0 ? 2 * half - (2 * p - 2 * low) : 2 * p;
  return large ? outer : half - (std::copysign(p, x) - low);
}

namespace detail {

/// log2 of a float above 0, to a double's relative 1e-13.
PUONE_FN double log2Wide(float x) {
  constexpr uint64_t kBias = 1024;
  const uint64_t bits = std::bit_cast<uint64_t>(static_cast<double>(x));
  const uint64_t n =
      (bits + (kBias << 52) - std::bit_cast<uint64_t>(0.70710678118654752)) >> 52; // + kBias
  const double m = std::bit_cast<double>(bits - ((n - kBias) << 52));
  const double exponent =
      std::bit_cast<double>(n | std::bit_cast<uint64_t>(0x1p52)) - (0x1p52 + kBias);
  const double s = (m - 1) / (m + 1);
  const double p = polynomial(
      s * s,
      2.8853900817778448,
      0.961796694123719591,
      0.577077939125021234,
      0.412209600077516501,
      0.319890678158403126,
      0.283124685260386638);
  return s * p + exponent;
}

/// 2^t, rounded to float at the end only.
PUONE_FN float exp2Wide(double t) {
  t = t < -160 ? -160 : t;
  t = t > 140 ? 140 : t;
  const double shifted = t + kRoundDouble;
  const double p = polynomial(
      t - (shifted - kRoundDouble),
      0.999999999961621174,
      0.693147180728709679,
      0.240226511987567168,
      0.0555041035284833708,
      0.00961802717252851829,
      0.00133339228425300525,
      0.000154693173761574294,
      0.0000152019041991993);
  const uint64_t scale = (std::bit_cast<uint64_t>(shifted) + 1023) << 52;
  return static_cast<float>(p * std::bit_cast<double>(scale));
}

} // namespace detail

PUONE_FN float pow(float x, float y) {
  const float a = std::abs(x);
  double log = detail::log2Wide(a);
  log = a == 0 ? -kInfinity<double> : a == kInfinity<float> ? kInfinity<double> : log;
  float result = detail::exp2Wide(static_cast<double>(y) * log);
  result = a == 1 && y == y ? 1.0f : result;
  result = a == a ? result : a;
  // A float from 2^24 on is even.
  const double bounded = static_cast<double>(detail::clamped(y, -0x1p30f, 0x1p30f));
  const double shifted = bounded + detail::kRoundDouble;
  const bool whole = shifted - detail::kRoundDouble == bounded;
  const bool odd = whole && (std::bit_cast<uint64_t>(shifted) & 1) != 0;
  const bool negative = std::bit_cast<int32_t>(x) < 0;
  result = negative && odd ? -result : result;
  result = x < 0 && a != kInfinity<float> && !whole ? kNaN<float> : result;
  return y == 0 || x == 1 ? 1.0f : result;
}

} // namespace puone::kernels::PUONE_ISA
