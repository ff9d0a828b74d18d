// SPDX-License-Identifier: BSD-3-Clause
// "sequence" and "triangle_indices": elements that depend only on their position.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "kernels/args/shape.h"
#include "kernels/arithmetic.h"
#include "kernels/blocks.h"
#include "kernels/families/sequence.h"
#include "kernels/generate.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T>
PUONE_FN T number(int64_t i) {
  if constexpr (kIsComplex<T>) {
    return {static_cast<double>(i), 0.0};
  } else {
    return static_cast<T>(i);
  }
}

/// Powers of whole numbers are exact where they fit: results may be truncated to integers, and
/// pow() of a device may be a little less than a whole number.
PUONE_FN double powerOf(double base, double exponent) {
  constexpr double kExact = 9007199254740992; // 2^53
  constexpr double kMostFactors = 64;
  const bool is_whole = base == std::trunc(base) && exponent == std::trunc(exponent);
  if (is_whole && exponent >= 0 && exponent <= kMostFactors) {
    double power = 1;
    for (double k = 0; k < exponent && std::abs(power) <= kExact; ++k) power *= base;
    if (std::abs(power) <= kExact) return power;
  }
  return std::pow(base, exponent);
}

PUONE_FN int64_t powerOf(double base, int64_t exponent) {
  return static_cast<int64_t>(powerOf(base, static_cast<double>(exponent)));
}

/// exp(exponent * log(base)). The logarithm of a negative base is complex.
PUONE_FN Complex<double> powerOf(double base, Complex<double> exponent) {
  constexpr double kPi = 3.14159265358979323846;
  const Complex<double> logarithm{std::log(std::abs(base)), base < 0 ? kPi : 0.0};
  const Complex<double> product = times(exponent, logarithm);
  const double magnitude = std::exp(product.real);
  return {magnitude * std::cos(product.imaginary), magnitude * std::sin(product.imaginary)};
}

/// The modified Bessel function of the first kind, of order 0, by its power series: all terms are
/// positive, so there is no cancellation.
PUONE_FN double besselI0(double x) {
  const double square = x * x / 4;
  double sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= square / (static_cast<double>(k) * k);
    sum += term;
  }
  return sum;
}

template <class T>
class Progression {
 public:
  explicit Progression(const puone_sequence_args& args)
      : n_(args.n),
        kind_(args.progression),
        start_(load<T>(args.start)),
        step_(load<T>(args.step)),
        end_(load<T>(args.end)),
        base_(args.base) {}

  PUONE_FN T operator()(int64_t i) const {
    if (kind_ == PUONE_FROM_START) return forward(i);
    if constexpr (std::is_same_v<T, double>) {
      if (kind_ == PUONE_KAISER) return kaiser(forward(i));
    }
    const T exponent = i < n_ / 2 ? forward(i) : minus(end_, times(step_, number<T>(n_ - 1 - i)));
    return kind_ == PUONE_FROM_BOTH ? exponent : powerOf(base_, exponent);
  }

 private:
  PUONE_FN T forward(int64_t i) const {
    return plus(start_, times(step_, number<T>(i)));
  }

  PUONE_FN double kaiser(double x) const {
    const double inside = 1 - x * x;
    return besselI0(base_ * std::sqrt(inside > 0 ? inside : 0)) / besselI0(base_);
  }

  int64_t n_;
  int32_t kind_;
  T start_, step_, end_;
  double base_;
};

template <class T>
void sequenceOf(Launch& launch, const puone_sequence_args& args) {
  unsigned char* const out = launch.resolve(args.out);
  generate<T>(launch, args.n, out, args.out_stride, args.dtype, Progression<T>(args));
}

void sequence(Launch& launch, const puone_sequence_args& args) {
  switch (args.compute) {
    case PUONE_INT64:
      return sequenceOf<int64_t>(launch, args);
    case PUONE_FLOAT64:
      return sequenceOf<double>(launch, args);
    case PUONE_COMPLEX128:
      return sequenceOf<Complex<double>>(launch, args);
    default:
      throw std::invalid_argument("sequences are computed in int64, float64 or complex128");
  }
}

/// Number of elements on or below the diagonal in the rows before `row`.
PUONE_FN int64_t below(int64_t row, int64_t columns, int64_t diagonal) {
  // Rows from `first` on have elements, those from `full` on have all.
  const int64_t first = std::clamp<int64_t>(-diagonal, 0, row);
  const int64_t full = std::clamp<int64_t>(columns - diagonal - 1, first, row);
  const int64_t growing = full - first;
  const int64_t first_length = first + diagonal + 1;
  return growing * first_length + growing * (growing - 1) / 2 + (row - full) * columns;
}

/// One row's part of a triangle.
template <class T>
struct TriangleRow {
  PUONE_DEVICE void operator()(const Block& block, int64_t row) const {
    const int64_t shift = args.upper != 0 ? 0 : 1;
    const int64_t edge = std::clamp<int64_t>(row + args.diagonal + shift, 0, args.columns);
    const int64_t begin = args.upper != 0 ? edge : 0;
    const int64_t end = args.upper != 0 ? args.columns : edge;
    T* const rows = out + first(row);
    T* const columns = rows + args.count;
    block.each(end - begin, [=](int64_t i) {
      rows[i] = static_cast<T>(row);
      columns[i] = static_cast<T>(begin + i);
    });
  }
  /// The number of the row's first element.
  PUONE_FN int64_t first(int64_t row) const {
    return args.upper != 0 ? row * args.columns - below(row, args.columns, args.diagonal - 1)
                           : below(row, args.columns, args.diagonal);
  }
  puone_triangle_indices_args args;
  T* out;
};

template <class T>
void triangleIndicesOf(Launch& launch, const puone_triangle_indices_args& args) {
  T* const out = reinterpret_cast<T*>(launch.resolve(args.out));
  blocks(launch, args.rows, args.columns, TriangleRow<T>{args, out});
}

void triangleIndices(Launch& launch, const puone_triangle_indices_args& args) {
  if (args.dtype == PUONE_INT64) {
    triangleIndicesOf<int64_t>(launch, args);
  } else {
    triangleIndicesOf<int32_t>(launch, args);
  }
}

} // namespace

PUONE_KERNEL(sequence) = sequence;
PUONE_KERNEL(triangle_indices) = triangleIndices;

} // namespace puone::kernels::PUONE_ISA
