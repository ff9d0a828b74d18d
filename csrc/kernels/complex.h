// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic and functions of complex numbers, under the same names as those of real ones. The
// functions are the standard library's; for a device, simt_complex.h (next to simt_dialect.h) names
// the namespace that has them. Those lose digits, so on a device the functions below exp to atanh
// are computed in double precision for Complex<float>, too, and some for Complex<double> are ours
// (complex_inverse.h).
#pragma once

#ifdef PUONE_SIMT
#include "kernels/complex_inverse.h"
#include "simt_complex.h"
#else
#include <complex>
#define PUONE_COMPLEX_LIBRARY std
#endif

#include "kernels/arithmetic.h"
#include "kernels/isa.h"
#include "kernels/math.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

template <class T>
PUONE_FN Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return plus(a, b);
}
template <class T>
PUONE_FN Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return minus(a, b);
}
template <class T>
PUONE_FN Complex<T> operator-(Complex<T> a) {
  return negated(a);
}
template <class T>
PUONE_FN Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return times(a, b);
}
template <class T>
PUONE_FN Complex<T> operator/(Complex<T> a, Complex<T> b) {
  return over(a, b);
}
template <class T>
PUONE_FN bool operator==(Complex<T> a, Complex<T> b) {
  return a.real == b.real && a.imaginary == b.imaginary;
}

/// A constant in any compute type.
template <class T>
PUONE_FN T number(double value) {
  if constexpr (kIsComplex<T>) {
    return {static_cast<decltype(T::real)>(value), 0};
  } else {
    return static_cast<T>(value);
  }
}

namespace detail {
template <class T>
PUONE_FN PUONE_COMPLEX_LIBRARY::complex<T> theirs(Complex<T> z) {
  return {z.real, z.imaginary};
}
template <class T>
PUONE_FN Complex<T> ours(const PUONE_COMPLEX_LIBRARY::complex<T>& z) {
  return {z.real(), z.imag()};
}
PUONE_FN Complex<double> widen(Complex<float> z) {
  return {z.real, z.imaginary};
}
PUONE_FN Complex<float> narrow(Complex<double> z) {
  return {static_cast<float>(z.real), static_cast<float>(z.imaginary)};
}
} // namespace detail

#define PUONE_LIBRARY(function, z) detail::ours(PUONE_COMPLEX_LIBRARY::function(detail::theirs(z)))
#ifdef PUONE_SIMT
#define PUONE_IN_DOUBLE(function)                      \
  PUONE_FN Complex<float> function(Complex<float> z) { \
    return detail::narrow(function(detail::widen(z))); \
  }
#define PUONE_COMPLEX_FUNCTION(function)                 \
  PUONE_FN Complex<double> function(Complex<double> z) { \
    return PUONE_LIBRARY(function, z);                   \
  }                                                      \
  PUONE_IN_DOUBLE(function)
#define PUONE_INVERSE_FUNCTION(function)                                        \
  PUONE_FN Complex<double> function(Complex<double> z) {                        \
    const bool is_finite = std::isfinite(z.real) && std::isfinite(z.imaginary); \
    return is_finite ? inverse::function(z) : PUONE_LIBRARY(function, z);       \
  }                                                                             \
  PUONE_IN_DOUBLE(function)
#else
#define PUONE_COMPLEX_FUNCTION(function)       \
  template <class T>                           \
  PUONE_FN Complex<T> function(Complex<T> z) { \
    return PUONE_LIBRARY(function, z);         \
  }
#define PUONE_INVERSE_FUNCTION PUONE_COMPLEX_FUNCTION
#endif
PUONE_COMPLEX_FUNCTION(exp)
PUONE_COMPLEX_FUNCTION(log)
PUONE_COMPLEX_FUNCTION(log10)
PUONE_COMPLEX_FUNCTION(sqrt)
PUONE_COMPLEX_FUNCTION(sin)
PUONE_COMPLEX_FUNCTION(cos)
PUONE_COMPLEX_FUNCTION(sinh)
PUONE_COMPLEX_FUNCTION(cosh)
PUONE_INVERSE_FUNCTION(tan)
PUONE_INVERSE_FUNCTION(tanh)
PUONE_INVERSE_FUNCTION(asin)
PUONE_INVERSE_FUNCTION(acos)
PUONE_INVERSE_FUNCTION(atan)
PUONE_INVERSE_FUNCTION(asinh)
PUONE_INVERSE_FUNCTION(acosh)
PUONE_INVERSE_FUNCTION(atanh)
#undef PUONE_INVERSE_FUNCTION
#undef PUONE_COMPLEX_FUNCTION
#undef PUONE_IN_DOUBLE
#undef PUONE_LIBRARY

template <class T>
PUONE_FN Complex<T> pow(Complex<T> z, Complex<T> w) {
  return detail::ours(PUONE_COMPLEX_LIBRARY::pow(detail::theirs(z), detail::theirs(w)));
}

template <class T>
PUONE_FN T abs(Complex<T> z) {
  return hypot(z.real, z.imaginary);
}

template <class T>
PUONE_FN Complex<T> exp2(Complex<T> z) {
  const T ln2 = static_cast<T>(0.69314718055994530942);
  return exp(Complex<T>{z.real * ln2, z.imaginary * ln2});
}

template <class T>
PUONE_FN Complex<T> expm1(Complex<T> z) {
  const T half = std::sin(z.imaginary / 2);
  return {
      std::expm1(z.real) * std::cos(z.imaginary) - 2 * half * half,
      std::exp(z.real) * std::sin(z.imaginary)};
}

template <class T>
PUONE_FN Complex<T> log2(Complex<T> z) {
  const T log2_e = static_cast<T>(1.44269504088896340736);
  const Complex<T> l = log(z);
  return {l.real * log2_e, l.imaginary * log2_e};
}

template <class T>
PUONE_FN Complex<T> log1p(Complex<T> z) {
  const Complex<T> u{1 + z.real, z.imaginary};
  if (!(abs(z) < T(0.5))) return log(u);
  const T square = z.real * (2 + z.real) + z.imaginary * z.imaginary; // |u|^2 - 1
  return {std::log1p(square) / 2, std::atan2(u.imaginary, u.real)};
}

template <class T>
PUONE_FN Complex<T> sigmoid(Complex<T> z) {
  const Complex<T> one{1, 0};
  return one / (one + exp(-z));
}

} // namespace puone::kernels::PUONE_ISA
