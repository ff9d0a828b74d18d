// SPDX-License-Identifier: BSD-3-Clause
// The operations of which generators of code compose modules, as namespace ops. Their names and
// meaning are those of torch._inductor.ops_handler. Element types without arithmetic are loaded and
// stored by read() and write(); in between, half precision is float and Bool is bool. The result
// of arithmetic has the type of its operands, or the common type if these differ, and integers
// wrap.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/isa.h"
#include "kernels/math.h"
#include "kernels/philox.h"
#include "kernels/target.h"
#include "kernels/together.h"
#include "kernels/types.h"
#include "kernels/uniform_bits.h"

namespace puone::kernels::PUONE_ISA {

/// Columns that one block of a module handles at most; rows of its tiles.
constexpr int64_t kModuleColumns = 64;
constexpr int64_t kModuleRows = 16;

} // namespace puone::kernels::PUONE_ISA

namespace puone::kernels::PUONE_ISA::ops {

// ---- types ----

template <class E>
PUONE_FN auto read(E element) {
  if constexpr (std::is_same_v<E, Bool>) {
    return isNonzero(element);
  } else if constexpr (kIsStorageFloat<E>) {
    return toFloat(element);
  } else {
    return element;
  }
}

/// What read() gives for an E.
template <class E>
using Computed = decltype(read(E{}));

template <class T, class V>
PUONE_FN T to_dtype(V value) {
  if constexpr (std::is_same_v<T, bool>) {
    return isNonzero(value);
  } else if constexpr (std::is_same_v<V, bool>) {
    return value ? T(1) : T(0);
  } else {
    return cast<T>(value);
  }
}

/// The index that was made from a bool. GCC 12 forgets that it was converted where it makes vectors
/// of addresses: true would be the place before the first.
template <class T>
PUONE_FN T place(T index) {
#ifndef PUONE_SIMT
  __asm__("" : "+r"(index));
#endif
  return index;
}

template <class E, class V>
PUONE_FN E write(V value) {
  if constexpr (std::is_same_v<E, Bool>) {
    return {static_cast<uint8_t>(isNonzero(value))};
  } else if constexpr (kIsStorageFloat<E>) {
    return fromFloat<E>(to_dtype<float>(value));
  } else {
    return to_dtype<E>(value);
  }
}

template <class A, class B>
struct CommonOf {
  using type = decltype(A{} + B{});
};
template <class A>
struct CommonOf<A, A> {
  using type = A;
};
template <class A, class B>
using Common = typename CommonOf<A, B>::type;

/// The type in which arithmetic of T wraps instead of being undefined.
template <class T>
struct WrappingOf {
  using type = T;
};
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
struct WrappingOf<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <class T>
using Wrapping = typename WrappingOf<T>::type;

// ---- arithmetic ----

#define PUONE_WRAPPING(name, operation)                         \
  template <class A, class B>                                   \
  PUONE_FN auto name(A a, B b) {                                \
    using T = Common<A, B>;                                     \
    const auto x = static_cast<Wrapping<T>>(static_cast<T>(a)); \
    const auto y = static_cast<Wrapping<T>>(static_cast<T>(b)); \
    return static_cast<T>(x operation y);                       \
  }
PUONE_WRAPPING(add, +)
PUONE_WRAPPING(sub, -)
PUONE_WRAPPING(mul, *)
#undef PUONE_WRAPPING

template <class T>
PUONE_FN T neg(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return -a;
  } else {
    return static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(a));
  }
}
template <class T>
PUONE_FN T abs(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::abs(a);
  } else {
    return a < T(0) ? neg(a) : a;
  }
}
template <class T>
PUONE_FN T square(T a) {
  return mul(a, a);
}
template <class T>
PUONE_FN T sign(T a) {
  return static_cast<T>((T(0) < a) - (a < T(0)));
}
template <class T>
PUONE_FN auto reciprocal(T a) {
  return 1 / a;
}
template <class A, class B>
PUONE_FN auto truediv(A a, B b) {
  using T = Common<A, B>;
  using F = std::conditional_t<std::is_floating_point_v<T>, T, float>;
  return static_cast<F>(a) / static_cast<F>(b);
}
template <class A, class B>
PUONE_FN auto int_truediv(A a, B b) {
  return truediv(a, b);
}
template <class A, class B>
PUONE_FN auto div_rn(A a, B b) {
  return truediv(a, b);
}

/// Towards zero. A quotient that no integer is, by zero and of the smallest by -1, must not stop
/// the processor.
template <class A, class B>
PUONE_FN auto truncdiv(A a, B b) {
  using T = Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>) {
    return std::trunc(x / y);
  } else {
    if (y == T(0)) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (y == T(-1)) return neg(x);
    }
    return static_cast<T>(x / y);
  }
}
template <class A, class B>
PUONE_FN auto floordiv(A a, B b) {
  using T = Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>) {
    return std::floor(x / y);
  } else {
    const T quotient = truncdiv(x, y);
    const bool rest = mul(quotient, y) != x;
    return static_cast<T>(rest && ((x < T(0)) != (y < T(0))) ? quotient - 1 : quotient);
  }
}
/// C's remainder, with the sign of the dividend.
template <class A, class B>
PUONE_FN auto mod(A a, B b) {
  using T = Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::fmod(x, y));
  } else {
    return sub(x, mul(truncdiv(x, y), y));
  }
}
template <class A, class B>
PUONE_FN auto fmod(A a, B b) {
  return mod(a, b);
}
/// Python's remainder, with the sign of the divisor.
template <class A, class B>
PUONE_FN auto remainder(A a, B b) {
  using T = Common<A, B>;
  const T y = static_cast<T>(b), rest = mod(a, b);
  return rest != T(0) && ((rest < T(0)) != (y < T(0))) ? add(rest, y) : rest;
}

// NaN wins. Two selections are vectorised, one with a disjunction is not.
template <class A, class B>
PUONE_FN auto maximum(A a, B b) {
  using T = Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  const T larger = x > y ? x : y;
  return x != x ? x : larger;
}
template <class A, class B>
PUONE_FN auto minimum(A a, B b) {
  using T = Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  const T smaller = x < y ? x : y;
  return x != x ? x : smaller;
}
template <class T>
PUONE_FN T relu(T a) {
  return maximum(a, T(0));
}
template <class A, class B>
PUONE_FN auto where(bool condition, A a, B b) {
  using T = Common<A, B>;
  return condition ? static_cast<T>(a) : static_cast<T>(b);
}
template <class A, class B, class C>
PUONE_FN auto fma(A a, B b, C c) {
  using T = Common<Common<A, B>, C>;
  return static_cast<T>(std::fma(static_cast<T>(a), static_cast<T>(b), static_cast<T>(c)));
}
template <class A, class B>
PUONE_FN auto mul_rn(A a, B b) {
  return mul(a, b);
}

template <class A, class B>
PUONE_FN auto pow(A a, B b) {
  using T = Common<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::pow(static_cast<T>(a), static_cast<T>(b)));
  } else {
    T base = static_cast<T>(a), exponent = static_cast<T>(b), result = 1;
    if (exponent < T(0))
      return base == T(1) ? T(1) : T(base == T(-1) ? (exponent & 1 ? -1 : 1) : 0);
    for (; exponent != 0; exponent = static_cast<T>(exponent >> 1)) {
      if (exponent & 1) result = mul(result, base);
      base = mul(base, base);
    }
    return result;
  }
}

// ---- functions ----

// Of other than floating-point numbers, floats.
template <class T>
using Real = std::conditional_t<std::is_floating_point_v<T>, T, float>;

#define PUONE_FUNCTION(name)                         \
  template <class T>                                 \
  PUONE_FN Real<T> name(T a) {                       \
    return PUONE_ISA::name(static_cast<Real<T>>(a)); \
  }
PUONE_FUNCTION(exp)
PUONE_FUNCTION(exp2)
PUONE_FUNCTION(expm1)
PUONE_FUNCTION(log)
PUONE_FUNCTION(log2)
PUONE_FUNCTION(log10)
PUONE_FUNCTION(log1p)
PUONE_FUNCTION(sin)
PUONE_FUNCTION(cos)
PUONE_FUNCTION(tan)
PUONE_FUNCTION(asin)
PUONE_FUNCTION(acos)
PUONE_FUNCTION(atan)
PUONE_FUNCTION(sinh)
PUONE_FUNCTION(cosh)
PUONE_FUNCTION(tanh)
PUONE_FUNCTION(asinh)
PUONE_FUNCTION(acosh)
PUONE_FUNCTION(atanh)
PUONE_FUNCTION(erf)
PUONE_FUNCTION(erfc)
PUONE_FUNCTION(sqrt)
PUONE_FUNCTION(sigmoid)
#undef PUONE_FUNCTION

template <class T>
PUONE_FN auto rsqrt(T a) {
  return 1 / sqrt(a);
}

#define PUONE_ROUNDING(name, function)           \
  template <class T>                             \
  PUONE_FN T name(T a) {                         \
    if constexpr (std::is_floating_point_v<T>) { \
      return std::function(a);                   \
    } else {                                     \
      return a;                                  \
    }                                            \
  }
PUONE_ROUNDING(floor, floor)
PUONE_ROUNDING(ceil, ceil)
PUONE_ROUNDING(trunc, trunc)
PUONE_ROUNDING(round, nearbyint)
#undef PUONE_ROUNDING

#define PUONE_BINARY(name)                                                        \
  template <class A, class B>                                                     \
  PUONE_FN auto name(A a, B b) {                                                  \
    using T = Real<Common<A, B>>;                                                 \
    return static_cast<T>(PUONE_ISA::name(static_cast<T>(a), static_cast<T>(b))); \
  }
PUONE_BINARY(atan2)
PUONE_BINARY(hypot)
PUONE_BINARY(copysign)
#undef PUONE_BINARY

// ---- truth and bits ----

template <class T>
PUONE_FN bool isnan(T a) {
  return a != a;
}
template <class T>
PUONE_FN bool isinf(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::abs(a) == kInfinity<T>;
  } else {
    return false;
  }
}
template <class T>
PUONE_FN bool signbit(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::copysign(T(1), a) < 0;
  } else {
    return a < T(0);
  }
}

#define PUONE_COMPARISON(name, operation)                 \
  template <class A, class B>                             \
  PUONE_FN bool name(A a, B b) {                          \
    using T = Common<A, B>;                               \
    return static_cast<T>(a) operation static_cast<T>(b); \
  }
PUONE_COMPARISON(eq, ==)
PUONE_COMPARISON(ne, !=)
PUONE_COMPARISON(lt, <)
PUONE_COMPARISON(gt, >)
PUONE_COMPARISON(le, <=)
PUONE_COMPARISON(ge, >=)
#undef PUONE_COMPARISON

// Both operands are there: a branch would keep loops from being vectorised.
template <class A, class B>
PUONE_FN bool logical_and(A a, B b) {
  return (isNonzero(a) & isNonzero(b)) != 0;
}
template <class A, class B>
PUONE_FN bool logical_or(A a, B b) {
  return (isNonzero(a) | isNonzero(b)) != 0;
}
template <class A, class B>
PUONE_FN bool logical_xor(A a, B b) {
  return isNonzero(a) != isNonzero(b);
}
template <class T>
PUONE_FN bool logical_not(T a) {
  return !isNonzero(a);
}

#define PUONE_BITWISE(name, operation)                                    \
  template <class A, class B>                                             \
  PUONE_FN auto name(A a, B b) {                                          \
    using T = Common<A, B>;                                               \
    return static_cast<T>(static_cast<T>(a) operation static_cast<T>(b)); \
  }
PUONE_BITWISE(bitwise_and, &)
PUONE_BITWISE(bitwise_or, |)
PUONE_BITWISE(bitwise_xor, ^)
#undef PUONE_BITWISE
template <class T>
PUONE_FN T bitwise_not(T a) {
  if constexpr (std::is_same_v<T, bool>) {
    return !a;
  } else {
    return static_cast<T>(~a);
  }
}
/// By more bits than there are, and by negative numbers, everything is shifted out.
template <class A, class B>
PUONE_FN auto bitwise_left_shift(A a, B b) {
  using T = Common<A, B>;
  const T x = static_cast<T>(a), by = static_cast<T>(b);
  const bool out = by < T(0) || by >= T(8 * sizeof(T));
  return out ? T(0) : static_cast<T>(static_cast<Wrapping<T>>(x) << by);
}
template <class A, class B>
PUONE_FN auto bitwise_right_shift(A a, B b) {
  using T = Common<A, B>;
  const T x = static_cast<T>(a), by = static_cast<T>(b), most = T(8 * sizeof(T) - 1);
  return static_cast<T>(x >> (by < T(0) || by > most ? most : by));
}

template <class To, class From>
PUONE_FN auto to_dtype_bitcast(From value) {
  return read(std::bit_cast<To>(value));
}

// ---- random numbers, each from the seed and the position alone ----

PUONE_FN float rand(int64_t seed, int64_t offset) {
  return unit(philox(static_cast<uint64_t>(offset), 0, static_cast<uint64_t>(seed)).words[0]);
}
PUONE_FN float randn(int64_t seed, int64_t offset) {
  const PhiloxBlock bits = philox(static_cast<uint64_t>(offset), 0, static_cast<uint64_t>(seed));
  return normalPair<float>(bits.words[0], bits.words[1]).x;
}
PUONE_FN int64_t randint64(int64_t seed, int64_t offset, int64_t low, int64_t high) {
  const PhiloxBlock bits = philox(static_cast<uint64_t>(offset), 0, static_cast<uint64_t>(seed));
  const uint64_t random = uint64_t{bits.words[1]} << 32 | bits.words[0];
  return add(low, static_cast<int64_t>(highProduct(random, static_cast<uint64_t>(sub(high, low)))));
}

// ---- reductions: what combines two values, and an identity ----

template <class T>
PUONE_FN T lowest() {
  if constexpr (std::is_same_v<T, bool>) {
    return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    return -kInfinity<T>;
  } else {
    return std::numeric_limits<T>::lowest();
  }
}
template <class T>
PUONE_FN T highest() {
  if constexpr (std::is_same_v<T, bool>) {
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    return kInfinity<T>;
  } else {
    return std::numeric_limits<T>::max();
  }
}

/// A value and its position; none yet if the position is negative.
template <class T>
struct At {
  T value;
  int64_t position;
};
/// The better one: NaN, or what `better` prefers, or else the first.
template <class T, class Better>
PUONE_FN At<T> firstBest(At<T> a, At<T> b, const Better& better) {
  if (a.position < 0) return b;
  if (b.position < 0) return a;
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  const bool equal = a.value == b.value || (a_is_nan && b_is_nan);
  if (equal) return a.position < b.position ? a : b;
  if (a_is_nan || b_is_nan) return a_is_nan ? a : b;
  return better(a.value, b.value) ? a : b;
}
template <class T>
PUONE_FN At<T> argmax(At<T> a, At<T> b) {
  return firstBest(a, b, [](T x, T y) PUONE_DEVICE { return x > y; });
}
template <class T>
PUONE_FN At<T> argmin(At<T> a, At<T> b) {
  return firstBest(a, b, [](T x, T y) PUONE_DEVICE { return x < y; });
}

/// Mean, sum of squared deviations and number of elements.
template <class T>
struct Moments {
  T mean, squares, count;
};
/// Chan, Golub and LeVeque's update.
template <class T>
PUONE_FN Moments<T> welford_combine(Moments<T> a, Moments<T> b) {
  const T count = a.count + b.count, delta = b.mean - a.mean;
  const T share = count == 0 ? T(0) : b.count / count;
  const T weighted = a.count * share * delta; // first: 0 without elements, however large delta
  // What is small comes first: `a` may be of many elements.
  return {a.mean + delta * share, a.squares + (b.squares + weighted * delta), count};
}
/// Welford's update: one more element.
template <class T>
PUONE_FN Moments<T> welford_add(Moments<T> a, T value) {
  const T count = a.count + 1, delta = value - a.mean, mean = a.mean + delta / count;
  return {mean, a.squares + delta * (value - mean), count};
}

/// What corrected() is given the sums of: a deviation from a mean, and its square.
template <class T>
PUONE_FN Together<T, T> deviation(T value, T mean) {
  const T each = value - mean;
  return together(each, each * each);
}
/// Moments, from a mean that was rounded and the sums of deviation() from it: the corrected
/// two-pass algorithm (Chan, Golub and LeVeque, "Algorithms for computing the sample variance",
/// 1983). Deviations may be so small against the mean that its rounding matters.
template <class T, class Sum>
PUONE_FN Moments<T> corrected(T mean, const Together<Sum, Sum>& sums, T count) {
  const T deviations = sums.first, squares = sums.rest.first;
  const T rest = deviations / count, about = squares - deviations * rest;
  return {mean + rest, about < 0 ? T(0) : about, count};
}

/// Mean, and sum of squared deviations from it, in two passes over load(0) ... load(n - 1). Where
/// each is the result of a computation, see moments() of a block.
template <class Block, class T, class Load>
PUONE_FN Moments<T> welford_reduce(const Block& block, int64_t n, T zero, const Load& load) {
  const auto plus = [](T a, T b) PUONE_DEVICE { return a + b; };
  const T count = static_cast<T>(n), mean = block.reduce(n, zero, load, plus) / count;
  const auto each = [=](int64_t i) PUONE_DEVICE { return deviation(load(i), mean); };
  const auto sums = block.reduce(n, together(zero, zero), each, combineEach(plus, plus));
  return corrected(mean, sums, count);
}

/// The same for rows of load(row, i).
template <class Block, class T, class Load>
PUONE_FN Moments<T> welford_reduce_rows(
    const Block& block, int64_t rows, int64_t length, T zero, const Load& load) {
  const auto plus = [](T a, T b) PUONE_DEVICE { return a + b; };
  const T count = static_cast<T>(rows * length);
  const T mean = block.reduceRows(rows, length, zero, load, plus) / count;
  const auto each = [=](int64_t row, int64_t i)
                        PUONE_DEVICE { return deviation(load(row, i), mean); };
  const auto sums =
      block.reduceRows(rows, length, together(zero, zero), each, combineEach(plus, plus));
  return corrected(mean, sums, count);
}

/// The same for columns of load(column, i).
template <class Block, class T, class Load>
PUONE_FN void welford_reduce_columns(
    const Block& block, int64_t width, int64_t n, T zero, const Load& load, Moments<T>* out) {
  const auto plus = [](T a, T b) PUONE_DEVICE { return a + b; };
  const T count = static_cast<T>(n);
  T means[kModuleColumns];
  Together<T, T> pairs[kModuleColumns];
  T* const mean = means; // lambdas copy arrays
  Together<T, T>* const sums = pairs;
  block.reduceColumns(width, n, zero, load, plus, mean);
  block.eachColumn(width, [=](int64_t column) PUONE_DEVICE { mean[column] /= count; });
  const auto each = [=](int64_t column, int64_t i)
                        PUONE_DEVICE { return deviation(load(column, i), mean[column]); };
  block.reduceColumns(width, n, together(zero, zero), each, combineEach(plus, plus), sums);
  block.eachColumn(width, [=](int64_t column) PUONE_DEVICE {
    out[column] = corrected(mean[column], sums[column], count);
  });
}

} // namespace puone::kernels::PUONE_ISA::ops
