// SPDX-License-Identifier: BSD-3-Clause
// Error functions, gamma functions and the like.
#include "kernels/families/special.h"
#include "kernels/functors.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// erf(x) = y by Newton's method in double, on erfc where y is near 1.
PUONE_FN double inverseErf(double y) {
  const double a = std::abs(y);
  if (!(a < 1)) return a == 1 ? y * kInfinity<double> : kNaN<double>;
  // Winitzki's approximation: good to 2 digits or more.
  const double l = std::log1p(-a * a), c = 4.3307467508; // 2 / (pi 0.147)
  const double h = c + 0.5 * l;
  double x = std::sqrt(std::sqrt(h * h - l / 0.147) - h);
  for (int i = 0; i < 3; ++i) {
    const double error = a < 0.5 ? std::erf(x) - a : (1 - a) - std::erfc(x);
    const double step = error * 0.88622692545275801365 * std::exp(x * x); // sqrt(pi) / 2
    x -= step / (1 + x * step);                                           // Halley's correction
  }
  return std::copysign(x, y);
}

/// lgamma without the standard library's global sign.
PUONE_FN double logGamma(double x) {
#if defined(__GLIBC__) && !defined(PUONE_SIMT)
  int sign;
  return ::lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

/// By recurrence up to 10, then the asymptotic series; by reflection below 0.
PUONE_FN double digammaOf(double x) {
  if (x == 0) return std::copysign(kInfinity<double>, -x);
  double result = 0;
  if (x < 0) {
    if (x == std::floor(x)) return kNaN<double>;
    const double fraction = x - std::trunc(x);
    result = -kPi<double> / std::tan(kPi<double> * fraction);
    x = 1 - x;
  }
  for (; x < 10; ++x) result -= 1 / x;
  const double z = 1 / (x * x);
  const double series = detail::polynomial(
      z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12);
  const double tail = x < 1e17 ? z * series : 0;
  return result + std::log(x) - 0.5 / x - tail;
}

/// Hurwitz's zeta function, the sum of (q + k)^-s over k = 0, 1, ..., of s > 1 and q > 0: the first
/// terms, and the Euler-Maclaurin formula for the rest. Where s is large the terms vanish first.
PUONE_FN double zetaOfPositive(double s, double q) {
  double sum = 0;
  for (const double far = 10 + s / 2; q < far; ++q) {
    const double term = std::pow(q, -s);
    sum += term;
    if (term * (1 + q / (s - 1)) <= 1e-17 * sum) return sum;
  }
  // Bernoulli numbers over factorials: B2 / 2!, B4 / 4!, ...
  constexpr double kBernoulli[] = {
      1.0 / 12,
      -1.0 / 720,
      1.0 / 30240,
      -1.0 / 1209600,
      1.0 / 47900160,
      -691.0 / 1307674368000,
      1.0 / 74724249600,
      -3617.0 / 10670622842880000};
  const double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = power * s / q, next = s + 1;
  for (const double b : kBernoulli) {
    sum += b * factor;
    factor *= next * (next + 1) / (q * q);
    next += 2;
  }
  return sum;
}

/// Hurwitz's zeta function. Below 0, where s must be whole, the terms are powers of -q, -q - 1, ...
/// down to the last above 0, and so a difference of two sums.
PUONE_FN double zetaOf(double s, double q) {
  if (s == 1) return kInfinity<double>;
  if (!(s > 1) || q != q) return kNaN<double>;
  if (q > 0) return zetaOfPositive(s, q);
  if (q == std::floor(q)) return kInfinity<double>;
  if (s != std::floor(s)) return kNaN<double>;
  const double below = zetaOfPositive(s, std::ceil(q) - q) - zetaOfPositive(s, 1 - q);
  return zetaOfPositive(s, q - std::floor(q)) + (std::fmod(s, 2) == 0 ? below : -below);
}

template <class T>
PUONE_FN T entropyOf(T x) {
  return x > 0 ? -x * log(x) : x == 0 ? T(0) : x != x ? x : -kInfinity<T>;
}

PUONE_UNARY(Erf, erf(x));
PUONE_UNARY(Erfc, erfc(x));
PUONE_UNARY(Erfinv, static_cast<T>(inverseErf(x)));
PUONE_UNARY(Lgamma, static_cast<T>(logGamma(x)));
PUONE_UNARY(Digamma, static_cast<T>(digammaOf(x)));
PUONE_UNARY(Entr, entropyOf(x));
PUONE_BINARY(Zeta, static_cast<T>(zetaOf(a, b)));

} // namespace

PUONE_KERNEL(erf) = elementwiseKernel<Erf, Reals>;
PUONE_KERNEL(erfc) = elementwiseKernel<Erfc, Reals>;
PUONE_KERNEL(erfinv) = elementwiseKernel<Erfinv, Reals>;
PUONE_KERNEL(lgamma) = elementwiseKernel<Lgamma, Reals>;
PUONE_KERNEL(digamma) = elementwiseKernel<Digamma, Reals>;
PUONE_KERNEL(zeta) = elementwiseKernel<Zeta, Reals>;
PUONE_KERNEL(special_entr) = elementwiseKernel<Entr, Reals>;

} // namespace puone::kernels::PUONE_ISA
