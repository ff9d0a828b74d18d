// SPDX-License-Identifier: BSD-3-Clause
// Functions of complex numbers for which libraries of devices lose digits by cancellation: the
// inverse trigonometric and hyperbolic ones, and the tangents. For finite arguments in double
// precision; the error of each part is a few units in its last place.
//
// asinh and acos: T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, "Implementing the complex arcsine
// and arccosine functions using exception handling", ACM TOMS 23 (1997). atanh and tanh: W. Kahan,
// "Branch cuts for complex elementary functions" (1987).
#pragma once

#include <cmath>
#include <limits>

#include "kernels/isa.h"
#include "kernels/math.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA::inverse {

using PUONE_ISA::acos;
using PUONE_ISA::asin;
using PUONE_ISA::sinh;
using PUONE_ISA::tan;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kFar = 1 / kEpsilon; // beyond it, 1 is lost beside the argument
constexpr double kTiny = 0x1p-28;     // below it, its cube is lost beside the argument
constexpr double kLn2 = 0.69314718055994530942;
constexpr double kHalfPi = 1.57079632679489661923;
constexpr double kHalfPiRest = 6.12323399573676603587e-17; // of pi / 2, behind its double

/// What asinh(x + iy) and acos(y + ix) are made of, for x, y >= 0: the ellipse through the point
/// with the foci i and -i. With `a`, half the sum of its distances to these, asinh's real part is
/// arcosh(a), and the sine of its imaginary part is y / a.
struct Ellipse {
  PUONE_FN Ellipse(double x, double y) : height(y) {
    const double above = hypot(x, y + 1), below = hypot(x, y - 1);
    const double a = std::fmax((above + below) / 2, 1.0);
    if (a > 1.5) {
      distance = log(a + sqrt(a * a - 1));
    } else {
      // a - 1 is the mean of above - (1 + y) and below - (1 - y). Where these cancel, each is the
      // square of x by a sum; x itself is kept apart, because its square may underflow.
      if (y < 1) {
        const double rest = (1 / (above + (1 + y)) + 1 / (below + (1 - y))) / 2;
        distance = log1p(x * x * rest + x * sqrt(rest * (a + 1)));
      } else {
        const double beyond = (x * x / (above + (1 + y)) + (below + (y - 1))) / 2;
        distance = log1p(beyond + sqrt(beyond * (a + 1)));
      }
    }
    sine = y / a;
    is_conditioned = sine <= 0.6417;
    // a - y is the mean of above - (y + 1) and below - (y - 1), likewise.
    if (is_conditioned) {
      cosine = 0; // not needed
    } else if (y > 1) {
      cosine = x * sqrt((1 / (above + (y + 1)) + 1 / (below + (y - 1))) / 2 * (a + y));
    } else {
      cosine = sqrt((x * x / (above + (y + 1)) + (below + (1 - y))) / 2 * (a + y));
    }
  }

  double distance; // asinh's real part
  double sine;     // asinh's imaginary part is asin(sine), as long as that is well conditioned
  double cosine;   // else it is atan2(height, cosine)
  double height;
  bool is_conditioned;
};

/// log(2 |z|) for a large z: also where |z| is no double.
PUONE_FN double logOfTwice(double x, double y) {
  const double scale = std::abs(x) > 0x1p1000 || std::abs(y) > 0x1p1000 ? 0x1p-30 : 1;
  const double rest = scale == 1 ? 0 : 30 * kLn2;
  return log(hypot(x * scale, y * scale)) + (kLn2 + rest);
}

PUONE_FN Complex<double> asinh(Complex<double> z) {
  const double x = std::abs(z.real), y = std::abs(z.imaginary);
  if (x < kTiny && y < kTiny) return z;
  double real, imaginary;
  if (x > kFar || y > kFar) {
    real = logOfTwice(x, y);
    imaginary = atan2(y, x);
  } else {
    const Ellipse e(x, y);
    real = e.distance;
    imaginary = e.is_conditioned ? asin(e.sine) : atan2(e.height, e.cosine);
  }
  return {std::copysign(real, z.real), std::copysign(imaginary, z.imaginary)};
}

PUONE_FN Complex<double> asin(Complex<double> z) {
  const Complex<double> w = asinh(Complex<double>{z.imaginary, z.real});
  return {w.imaginary, w.real};
}

PUONE_FN Complex<double> acos(Complex<double> z) {
  const double x = std::abs(z.real), y = std::abs(z.imaginary);
  double real, imaginary;
  if (x < kTiny && y < kTiny) return {kHalfPi - (z.real - kHalfPiRest), -z.imaginary};
  if (x > kFar || y > kFar) {
    real = atan2(y, z.real);
    imaginary = logOfTwice(x, y);
  } else {
    const Ellipse e(y, x);
    const double sign = std::signbit(z.real) ? -1 : 1;
    real = e.is_conditioned ? acos(sign * e.sine) : atan2(e.cosine, sign * e.height);
    imaginary = e.distance;
  }
  return {real, std::signbit(z.imaginary) ? imaginary : -imaginary};
}

PUONE_FN Complex<double> acosh(Complex<double> z) {
  const Complex<double> w = acos(z);
  return {std::abs(w.imaginary), std::copysign(w.real, z.imaginary)};
}

PUONE_FN Complex<double> atanh(Complex<double> z) {
  const double x = std::abs(z.real), y = std::abs(z.imaginary);
  if (x < kTiny && y < kTiny) return z;
  double real, imaginary;
  if (x > kFar || y > kFar) {
    const double size = x > y ? x : y;
    const double near = x / size, far = y / size; // x / (x^2 + y^2), without its squares
    real = near / (near * near + far * far) / size;
    imaginary = kHalfPi;
  } else {
    const double beside = y < 0x1p-511 ? 0 : y * y;
    real = x == 1 && y < kEpsilon ? (kLn2 - log(y)) / 2
                                  : log1p(4 * x / ((x - 1) * (x - 1) + beside)) / 4;
    if (x == 1) {
      imaginary = y == 0 ? 0 : atan2(2.0, -y) / 2;
    } else {
      imaginary = atan2(2 * y, (1 - x) * (1 + x) - (y < kEpsilon ? 0 : y * y)) / 2;
    }
  }
  return {std::copysign(real, z.real), std::copysign(imaginary, z.imaginary)};
}

PUONE_FN Complex<double> atan(Complex<double> z) {
  const Complex<double> w = atanh(Complex<double>{z.imaginary, z.real});
  return {w.imaginary, w.real};
}

PUONE_FN Complex<double> tanh(Complex<double> z) {
  const double x = z.real, y = z.imaginary;
  if (std::abs(x) > 20) {
    const double decayed = exp(-std::abs(x));
    return {std::copysign(1.0, x), 4 * sin(y) * cos(y) * decayed * decayed};
  }
  const double t = tan(y), beta = 1 + t * t;
  const double s = sinh(x), rho = sqrt(1 + s * s); // rho is cosh(x)
  const double denominator = 1 + beta * s * s;
  return {beta * rho * s / denominator, t / denominator};
}

PUONE_FN Complex<double> tan(Complex<double> z) {
  const Complex<double> w = tanh(Complex<double>{-z.imaginary, z.real});
  return {w.imaginary, -w.real};
}

} // namespace puone::kernels::PUONE_ISA::inverse
