// SPDX-License-Identifier: BSD-3-Clause
// Integer arithmetic (PTX ISA 9.7.1 and 9.7.2).
#include <algorithm>
#include <limits>

#include "operations.h"

namespace puone::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// The type of twice the width.
template <class T>
struct TwiceOf;
template <>
struct TwiceOf<int16_t> {
  using Type = int32_t;
};
template <>
struct TwiceOf<uint16_t> {
  using Type = uint32_t;
};
template <>
struct TwiceOf<int32_t> {
  using Type = int64_t;
};
template <>
struct TwiceOf<uint32_t> {
  using Type = uint64_t;
};
template <>
struct TwiceOf<int64_t> {
  using Type = __int128;
};
template <>
struct TwiceOf<uint64_t> {
  using Type = unsigned __int128;
};
template <class T>
using Twice = typename TwiceOf<T>::Type;

template <class T>
constexpr Twice<T> product(T a, T b) {
  return static_cast<Twice<T>>(static_cast<Twice<T>>(a) * static_cast<Twice<T>>(b));
}
template <class T>
constexpr T low(T a, T b) {
  return static_cast<T>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
}
template <class T>
constexpr T high(T a, T b) {
  return static_cast<T>(product(a, b) >> (8 * sizeof(T)));
}
template <class T>
constexpr T sum(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
constexpr T difference(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

/// By zero: unspecified; the devices give all ones.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return difference<T>(0, a);
  }
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

template <class T>
T saturated(__int128 value) {
  return static_cast<T>(
      std::clamp<__int128>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

template <class T>
void addArithmetic(Operations& table, const std::string& type) {
  table["add." + type] = lanewise<sum<T>>();
  table["sub." + type] = lanewise<difference<T>>();
  table["mul.lo." + type] = lanewise<low<T>>();
  table["mul.hi." + type] = lanewise<high<T>>();
  table["mad.lo." + type] = lanewise<[](T a, T b, T c) -> T { return sum(low(a, b), c); }>();
  table["mad.hi." + type] = lanewise<[](T a, T b, T c) -> T { return sum(high(a, b), c); }>();
  table["div." + type] = lanewise<quotient<T>>();
  table["rem." + type] = lanewise<remainder<T>>();
  table["min." + type] = lanewise<[](T a, T b) -> T { return std::min(a, b); }>();
  table["max." + type] = lanewise<[](T a, T b) -> T { return std::max(a, b); }>();
  if constexpr (sizeof(T) < 8) {
    using Wide = Twice<T>;
    table["mul.wide." + type] = lanewise<product<T>>();
    table["mad.wide." + type] =
        lanewise<[](T a, T b, Wide c) -> Wide { return sum(product(a, b), c); }>();
  }
  if constexpr (std::is_signed_v<T>) {
    table["neg." + type] = lanewise<[](T a) -> T { return difference<T>(0, a); }>();
    table["abs." + type] = lanewise<[](T a) -> T { return a < 0 ? difference<T>(0, a) : a; }>();
  }
  table["sad." + type] = lanewise<[](T a, T b, Unsigned<T> c) -> Unsigned<T> {
    return sum<Unsigned<T>>(
        c, static_cast<Unsigned<T>>(a < b ? difference(b, a) : difference(a, b)));
  }>();
}

// ---- with a carry ----

template <class T>
struct Carried {
  T value;
  bool carry;
};

/// As lanewise(), of a function that also takes the carry and gives one. `kTakes`: the instruction
/// reads it; `kGives`: it writes it.
template <auto kFunction, bool kTakes, bool kGives>
struct WithCarry;
template <class T, class... A, Carried<T> (*kFunction)(bool, A...), bool kTakes, bool kGives>
struct WithCarry<kFunction, kTakes, kGives> {
  template <size_t... I>
  static void each(
      Warp& warp, const Instruction& in, uint32_t mask, std::index_sequence<I...> /*sources*/) {
    const auto to = warp.lanes<T>(in.operand[0]);
    const Lanes<bool> carry{&warp.carry};
    forLanes(mask, [&](uint32_t lane) {
      const Carried<T> result =
          kFunction(kTakes && carry.get(lane), warp.lanes<A>(in.operand[1 + I]).get(lane)...);
      to.set(lane, result.value);
      if (kGives) carry.set(lane, result.carry);
    });
  }
  static void run(Warp& warp, const Instruction& in, uint32_t mask) {
    each(warp, in, mask, std::index_sequence_for<A...>{});
  }
  static Operation made() {
    return {run, Flow::kNext, {widthOf<T>(), ':', widthOf<A>()...}};
  }
};

template <class T>
Carried<T> carriedSum(bool carry, T a, T b) {
  const auto all = static_cast<unsigned __int128>(static_cast<Unsigned<T>>(a)) +
                   static_cast<Unsigned<T>>(b) + (carry ? 1 : 0);
  return {static_cast<T>(all), (all >> (8 * sizeof(T))) != 0};
}
/// The carry of a subtraction is a borrow.
template <class T>
Carried<T> carriedDifference(bool borrow, T a, T b) {
  const auto all = static_cast<unsigned __int128>(static_cast<Unsigned<T>>(a)) -
                   static_cast<Unsigned<T>>(b) - (borrow ? 1 : 0);
  return {static_cast<T>(all), (all >> 127) != 0};
}
template <class T>
Carried<T> carriedLow(bool carry, T a, T b, T c) {
  return carriedSum<T>(carry, low(a, b), c);
}
template <class T>
Carried<T> carriedHigh(bool carry, T a, T b, T c) {
  return carriedSum<T>(carry, high(a, b), c);
}

template <auto kFunction>
void addCarried(
    Operations& table, const std::string& name, const std::string& rest, const std::string& type) {
  table[name + rest + ".cc." + type] = WithCarry<kFunction, false, true>::made();
  table[name + "c" + rest + ".cc." + type] = WithCarry<kFunction, true, true>::made();
  table[name + "c" + rest + "." + type] = WithCarry<kFunction, true, false>::made();
}

template <class T>
void addWithCarry(Operations& table, const std::string& type) {
  addCarried<carriedSum<T>>(table, "add", "", type);
  addCarried<carriedDifference<T>>(table, "sub", "", type);
  addCarried<carriedLow<T>>(table, "mad", ".lo", type);
  addCarried<carriedHigh<T>>(table, "mad", ".hi", type);
}

} // namespace

void addIntegers(Operations& table) {
  addArithmetic<int16_t>(table, "s16");
  addArithmetic<uint16_t>(table, "u16");
  addArithmetic<int32_t>(table, "s32");
  addArithmetic<uint32_t>(table, "u32");
  addArithmetic<int64_t>(table, "s64");
  addArithmetic<uint64_t>(table, "u64");
  table["add.sat.s32"] = lanewise<[](int32_t a, int32_t b) {
    return saturated<int32_t>(static_cast<__int128>(a) + b);
  }>();
  table["sub.sat.s32"] = lanewise<[](int32_t a, int32_t b) {
    return saturated<int32_t>(static_cast<__int128>(a) - b);
  }>();
  addWithCarry<uint32_t>(table, "u32");
  addWithCarry<int32_t>(table, "s32");
  addWithCarry<uint64_t>(table, "u64");
  addWithCarry<int64_t>(table, "s64");
}

} // namespace puone::ptx
