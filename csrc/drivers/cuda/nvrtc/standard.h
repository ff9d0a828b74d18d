// SPDX-License-Identifier: BSD-3-Clause
// What the dialect of modules uses of the C++ library, which NVRTC does not have. It is in the
// place of each of the library's headers. Of strings there are declarations only: the host's code,
// which uses them, is read and not compiled.
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;

#define INT64_MAX 0x7fffffffffffffffL
#define INT32_MAX 0x7fffffff

namespace std {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ptrdiff_t = long;

// ---- type_traits ----

template <class T, T kValue>
struct integral_constant {
  static constexpr T value = kValue;
  using type = integral_constant;
  constexpr operator T() const {
    return kValue;
  }
};
template <bool kValue>
using bool_constant = integral_constant<bool, kValue>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;
template <class A, class B>
struct is_same : bool_constant<is_same_v<A, B>> {};

template <bool kCondition, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool kCondition, class A, class B>
using conditional_t = typename conditional<kCondition, A, B>::type;

template <class T>
struct type_identity {
  using type = T;
};
template <class T>
using type_identity_t = T;

template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;

template <class T>
struct make_unsigned;
template <class T>
struct make_signed;
#define PUONE_SIGNED(Signed, Unsigned) \
  template <>                          \
  struct make_unsigned<Signed> {       \
    using type = Unsigned;             \
  };                                   \
  template <>                          \
  struct make_unsigned<Unsigned> {     \
    using type = Unsigned;             \
  };                                   \
  template <>                          \
  struct make_signed<Signed> {         \
    using type = Signed;               \
  };                                   \
  template <>                          \
  struct make_signed<Unsigned> {       \
    using type = Signed;               \
  };
PUONE_SIGNED(signed char, unsigned char)
PUONE_SIGNED(short, unsigned short)
PUONE_SIGNED(int, unsigned int)
PUONE_SIGNED(long, unsigned long)
PUONE_SIGNED(long long, unsigned long long)
#undef PUONE_SIGNED
template <>
struct make_unsigned<char> {
  using type = unsigned char;
};
template <class T>
using make_signed_t = typename make_signed<T>::type;
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;

template <class T>
inline constexpr bool is_integral_v = requires { typename make_unsigned<T>::type; };
template <>
inline constexpr bool is_integral_v<bool> = true;

template <class T>
inline constexpr bool is_signed_v = T(-1) < T(0);

// ---- bit, cstring ----

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}
using ::memcpy;

// ---- limits ----

template <class T>
struct numeric_limits {
  static constexpr bool is_signed = is_signed_v<T>;
  static constexpr int digits = 8 * sizeof(T) - (is_signed ? 1 : 0);
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr T max() {
    return static_cast<T>(~(is_signed ? uint64_t{1} << digits : uint64_t{0}));
  }
  static constexpr T lowest() {
    return is_signed ? static_cast<T>(-max() - 1) : T(0);
  }
  static constexpr T min() {
    return lowest();
  }
};
template <>
struct numeric_limits<float> {
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr float infinity() {
    return __builtin_bit_cast(float, 0x7f800000);
  }
  static constexpr float quiet_NaN() {
    return __builtin_bit_cast(float, 0x7fc00000);
  }
  static constexpr float max() {
    return 0x1.fffffep127f;
  }
  static constexpr float lowest() {
    return -max();
  }
  static constexpr float min() {
    return 0x1p-126f;
  }
  static constexpr float epsilon() {
    return 0x1p-23f;
  }
};
template <>
struct numeric_limits<double> {
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr double infinity() {
    return __builtin_bit_cast(double, 0x7ff0000000000000);
  }
  static constexpr double quiet_NaN() {
    return __builtin_bit_cast(double, 0x7ff8000000000000);
  }
  static constexpr double max() {
    return 0x1.fffffffffffffp1023;
  }
  static constexpr double lowest() {
    return -max();
  }
  static constexpr double min() {
    return 0x1p-1022;
  }
  static constexpr double epsilon() {
    return 0x1p-52;
  }
};

// ---- cmath ----

using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::hypot;
using ::ilogb;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::lgamma;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::rint;
using ::round;
using ::scalbn;
using ::signbit;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;

// ---- algorithm ----

template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}

// ---- string, string_view ----

class string_view {
 public:
  static constexpr size_t npos = -1;
  string_view(const char* text);
  size_t find(const char* text) const;
  string_view substr(size_t from, size_t count = npos) const;
  void remove_prefix(size_t count);
};

class string {
 public:
  string& append(string_view more);
  string& append(const string& more);
};
string to_string(int64_t value);

} // namespace std
