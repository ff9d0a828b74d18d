// SPDX-License-Identifier: BSD-3-Clause
// The four operations on the types kernels compute in. Integers wrap around, as PyTorch's do.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/isa.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

namespace detail {
template <class T>
PUONE_FN auto wrapping(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(value);
  } else {
    return value;
  }
}
} // namespace detail

/// The accumulator type for sums of many elements of a type.
template <class T>
struct Wider {
  using Type = T;
};
template <>
struct Wider<float> {
  using Type = double;
};
template <>
struct Wider<Complex<float>> {
  using Type = Complex<double>;
};

template <class T>
PUONE_FN T plus(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {a.real + b.real, a.imaginary + b.imaginary};
  } else {
    return static_cast<T>(detail::wrapping(a) + detail::wrapping(b));
  }
}

template <class T>
PUONE_FN T minus(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {a.real - b.real, a.imaginary - b.imaginary};
  } else {
    return static_cast<T>(detail::wrapping(a) - detail::wrapping(b));
  }
}

template <class T>
PUONE_FN T times(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {
        a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  } else {
    return static_cast<T>(detail::wrapping(a) * detail::wrapping(b));
  }
}

/// True division. Complex numbers are divided by Smith's method (Algorithm 116, CACM 1962), which
/// does not overflow where the quotient does not.
template <class T>
PUONE_FN T over(T a, T b) {
  if constexpr (kIsComplex<T>) {
    const auto magnitude = std::abs(b.real), imaginary_magnitude = std::abs(b.imaginary);
    if (magnitude >= imaginary_magnitude) {
      if (magnitude == 0) return {a.real / magnitude, a.imaginary / imaginary_magnitude};
      const auto ratio = b.imaginary / b.real;
      const auto scale = 1 / (b.real + b.imaginary * ratio);
      return {(a.real + a.imaginary * ratio) * scale, (a.imaginary - a.real * ratio) * scale};
    }
    const auto ratio = b.real / b.imaginary;
    const auto scale = 1 / (b.real * ratio + b.imaginary);
    return {(a.real * ratio + a.imaginary) * scale, (a.imaginary * ratio - a.real) * scale};
  } else {
    return a / b;
  }
}

} // namespace puone::kernels::PUONE_ISA
