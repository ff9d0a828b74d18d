// SPDX-License-Identifier: BSD-3-Clause
// cvt (PTX ISA 9.7.9.21). Registers may be wider than the types: what is read is the low part, and
// what is written is extended by the sign of its type.
#include <algorithm>
#include <cmath>
#include <limits>

#include "floats.h"
#include "operations.h"

namespace puone::ptx {
namespace {

template <class T>
constexpr bool isFloat = std::is_floating_point_v<T> || isSmall<T>;

/// Rounded as the mode says, once.
template <class T>
T narrowed(double value, int mode) {
  using F = Format<T>;
  constexpr int kBias = (1 << (F::kExponent - 1)) - 1;
  constexpr uint16_t kInfinity = ((1 << F::kExponent) - 1) << F::kMantissa;
  if (value != value) return {0x7fff};
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isinf(value)) return {static_cast<uint16_t>(sign | kInfinity)};
  if (value == 0) return {sign};
  const int exponent = std::max(std::ilogb(value), 1 - kBias);
  const Rounding rounding(mode);
  const double units = std::nearbyint(std::ldexp(value, F::kMantissa - exponent));
  // A mantissa that has become 2 carries into the exponent by itself.
  const auto bits = static_cast<int64_t>(std::fabs(units)) +
                    (static_cast<int64_t>(exponent + kBias - 1) << F::kMantissa);
  if (bits >= kInfinity) {
    const bool away = mode == FE_TONEAREST || (mode == FE_UPWARD && sign == 0) ||
                      (mode == FE_DOWNWARD && sign != 0);
    return {static_cast<uint16_t>(sign | (away ? kInfinity : kInfinity - 1))};
  }
  return {static_cast<uint16_t>(sign | bits)};
}

/// A double or an integer as a float of type T, rounded once.
template <class T, class S>
T toFloat(S value, int mode) {
  if constexpr (isSmall<T>) {
    return narrowed<T>(static_cast<double>(value), mode); // exact: S has 53 bits at most
  } else {
    const Rounding rounding(mode);
    volatile S from = value;
    volatile T result = static_cast<T>(from);
    return canonical(T(result));
  }
}

double wholeNumber(double value, int mode) {
  const Rounding rounding(mode);
  volatile double from = value;
  return std::nearbyint(from);
}

/// The integer nearest to a whole number, or what stands for no number.
template <class T, class S>
T toInteger(double whole) {
  using Limits = std::numeric_limits<T>;
  if (whole != whole) {
    constexpr bool kHighBit = std::is_same_v<S, double> || sizeof(T) == 8;
    return kHighBit ? static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1)) : T(0);
  }
  if (whole < static_cast<double>(Limits::min())) return Limits::min();
  if (whole >= std::ldexp(1.0, Limits::digits)) return Limits::max();
  return static_cast<T>(whole);
}

/// How a conversion is to be done; kept in Instruction::option.
struct Options {
  int mode = FE_TONEAREST;
  bool whole = false; // rni, rmi ...
  bool flush = false;
  bool saturate = false;

  uint64_t packed() const {
    return static_cast<uint64_t>(mode) << 8 | (whole ? 1 : 0) | (flush ? 2 : 0) |
           (saturate ? 4 : 0);
  }
  static Options of(uint64_t bits) {
    return {static_cast<int>(bits >> 8), (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
  }
};

template <class D, class S>
D convertedFloat(S value, const Options& how) {
  double wide = widened(value);
  if (how.flush && std::is_same_v<S, float>) wide = flushed(static_cast<float>(wide));
  if constexpr (isFloat<D>) {
    if (how.whole) wide = wholeNumber(wide, how.mode);
    if (how.saturate) wide = wide > 0 ? std::min(wide, 1.0) : 0.0; // of NaN: 0
    auto result = toFloat<D>(wide, how.whole ? FE_TONEAREST : how.mode);
    if constexpr (std::is_same_v<D, float>) {
      if (how.flush) result = flushed(result);
    }
    return result;
  } else {
    return toInteger<D, S>(wholeNumber(wide, how.mode));
  }
}

template <class D, class S>
D convertedInteger(S value, const Options& how) {
  if constexpr (isFloat<D>) {
    const auto result = toFloat<D>(value, how.mode);
    if constexpr (!isSmall<D>) {
      if (how.saturate) return std::clamp<D>(result, 0, 1);
    }
    return result;
  } else {
    if (!how.saturate) return static_cast<D>(value);
    return static_cast<D>(
        std::clamp<__int128>(value, std::numeric_limits<D>::min(), std::numeric_limits<D>::max()));
  }
}

template <class T>
T taken(uint64_t bits) {
  if constexpr (isSmall<T>) return T{static_cast<uint16_t>(bits)};
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else if constexpr (!isSmall<T>) {
    return static_cast<T>(bits);
  }
}

template <class T>
uint64_t given(T value) {
  if constexpr (isSmall<T>) {
    return value.bits;
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(value);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  } else {
    return value;
  }
}

template <class D, class S>
void convert(Warp& warp, const Instruction& in, uint32_t mask) {
  const Options how = Options::of(in.option);
  forLanes(mask, [&](uint32_t lane) {
    const S value = taken<S>(warp.get(in.operand[1], lane));
    D result;
    if constexpr (isFloat<S>) {
      result = convertedFloat<D>(value, how);
    } else {
      result = convertedInteger<D>(value, how);
    }
    warp.set(in.operand[0], lane, given(result));
  });
}

struct Mode {
  const char* name;
  int mode;
  bool whole;
};
constexpr Mode kDirections[] = {
    {"rn", FE_TONEAREST, false},
    {"rz", FE_TOWARDZERO, false},
    {"rm", FE_DOWNWARD, false},
    {"rp", FE_UPWARD, false}};
constexpr Mode kWhole[] = {
    {"rni", FE_TONEAREST, true},
    {"rzi", FE_TOWARDZERO, true},
    {"rmi", FE_DOWNWARD, true},
    {"rpi", FE_UPWARD, true}};

template <class T>
constexpr int digits() {
  if constexpr (isSmall<T>) {
    return Format<T>::kMantissa + 1;
  } else {
    return std::numeric_limits<T>::digits;
  }
}

template <class D, class S>
void addPair(Operations& table, const std::string& to, const std::string& from) {
  const auto add = [&](const std::string& mode, Options how) {
    for (const bool flush : {false, true}) {
      for (const bool saturate : {false, true}) {
        if (flush && !std::is_same_v<S, float> && !std::is_same_v<D, float>) continue;
        if (saturate && isSmall<D>) continue;
        how.flush = flush;
        how.saturate = saturate;
        Operation& made = table
            ["cvt" + mode + (flush ? ".ftz" : "") + (saturate ? ".sat" : "") + "." + to + "." +
             from];
        made = {convert<D, S>, Flow::kNext, "x:x", how.packed()};
      }
    }
  };
  constexpr bool kSameFormat = std::is_same_v<D, S>;
  if constexpr (isFloat<S> && (!isFloat<D> || kSameFormat)) {
    for (const Mode& mode : kWhole) add(std::string(".") + mode.name, {mode.mode, true});
  }
  // A direction where a result may be inexact, and none where it cannot.
  if constexpr (isFloat<D> && !kSameFormat && (!isFloat<S> || digits<D>() < digits<S>())) {
    for (const Mode& mode : kDirections) add(std::string(".") + mode.name, {mode.mode, false});
  } else if constexpr (!isFloat<S> || isFloat<D>) {
    add("", {});
  }
}

template <class D>
void addTo(Operations& table, const std::string& to) {
  addPair<D, int8_t>(table, to, "s8");
  addPair<D, uint8_t>(table, to, "u8");
  addPair<D, int16_t>(table, to, "s16");
  addPair<D, uint16_t>(table, to, "u16");
  addPair<D, int32_t>(table, to, "s32");
  addPair<D, uint32_t>(table, to, "u32");
  addPair<D, float>(table, to, "f32");
  if constexpr (!isSmall<D>) {
    addPair<D, int64_t>(table, to, "s64");
    addPair<D, uint64_t>(table, to, "u64");
    addPair<D, double>(table, to, "f64");
    addPair<D, Half>(table, to, "f16");
    addPair<D, Bfloat>(table, to, "bf16");
  }
}

/// Rounded to 10 bits behind the point, to nearest and away from zero between two.
uint32_t toTf32(float value) {
  if (value != value) return 0x7fffffff;
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::isinf(value) ? bits : (bits + 0x1000) & ~0x1fffu;
}

} // namespace

void addConversions(Operations& table) {
  addTo<int8_t>(table, "s8");
  addTo<uint8_t>(table, "u8");
  addTo<int16_t>(table, "s16");
  addTo<uint16_t>(table, "u16");
  addTo<int32_t>(table, "s32");
  addTo<uint32_t>(table, "u32");
  addTo<int64_t>(table, "s64");
  addTo<uint64_t>(table, "u64");
  addTo<float>(table, "f32");
  addTo<double>(table, "f64");
  addTo<Half>(table, "f16");
  addTo<Bfloat>(table, "bf16");
  table["cvt.rna.tf32.f32"] = lanewise<toTf32>();
}

} // namespace puone::ptx
