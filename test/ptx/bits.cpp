// SPDX-License-Identifier: BSD-3-Clause
// Logic, shifts, bit fields and selections (PTX ISA 9.7.1, 9.7.7 and 9.7.8).
#include <algorithm>
#include <bit>

#include "operations.h"

namespace puone::ptx {
namespace {

template <class T>
T shiftedLeft(T a, uint32_t by) {
  return by >= 8 * sizeof(T) ? T(0) : static_cast<T>(a << by);
}
/// What is shifted in is the sign of a signed number.
template <class T>
T shiftedRight(T a, uint32_t by) {
  if (by >= 8 * sizeof(T)) return a < 0 ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> by);
}

template <class T>
T inserted(T from, T into, uint32_t position, uint32_t length) {
  position &= 0xff;
  length &= 0xff;
  T mask = 0;
  for (uint32_t i = 0; i < length && position + i < 8 * sizeof(T); ++i) {
    mask |= static_cast<T>(T(1) << (position + i));
  }
  return (into & ~mask) | (shiftedLeft(from, position) & mask);
}

template <class T>
T extracted(T from, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t kBits = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  const bool negative = std::is_signed_v<T> && length != 0 &&
                        (static_cast<U>(from) >> std::min(position + length - 1, kBits - 1) & 1);
  U result = negative ? static_cast<U>(-1) : U(0);
  for (uint32_t i = 0; i < length && i < kBits && position + i < kBits; ++i) {
    const U bit = static_cast<U>(from) >> (position + i) & 1;
    result = (result & ~(U(1) << i)) | bit << i;
  }
  return static_cast<T>(result);
}

template <class T>
T reversed(T a) {
  T result = 0;
  for (uint32_t i = 0; i < 8 * sizeof(T); ++i) {
    result = static_cast<T>(result << 1 | (a >> i & 1));
  }
  return result;
}

/// prmt in its default mode: a nibble chooses a byte of {b, a}, or its sign.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t choice = selector >> (4 * i) & 0xf;
    auto byte = static_cast<uint8_t>(bytes >> (8 * (choice & 7)));
    if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= uint32_t{byte} << (8 * i);
  }
  return result;
}

uint32_t looked(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
    result |= (table >> row & 1) << i;
  }
  return result;
}

uint32_t funnel(uint32_t low, uint32_t high, uint32_t by, bool left) {
  const uint64_t both = uint64_t{high} << 32 | low;
  return static_cast<uint32_t>(left ? both << by >> 32 : both >> by);
}

template <class T>
T selected(T a, T b, bool first) {
  return first ? a : b;
}

template <class T>
T copied(T a) {
  return a;
}

template <class T>
void addLogic(Operations& table, const std::string& type) {
  table["and." + type] = lanewise<[](T a, T b) -> T { return a & b; }>();
  table["or." + type] = lanewise<[](T a, T b) -> T { return a | b; }>();
  table["xor." + type] = lanewise<[](T a, T b) -> T { return a ^ b; }>();
  table["not." + type] = lanewise<[](T a) -> T {
    if constexpr (std::is_same_v<T, bool>) {
      return !a;
    } else {
      return static_cast<T>(~a);
    }
  }>();
}

template <class T>
void addOfWidth(Operations& table, const std::string& bits) {
  using Signed = std::make_signed_t<T>;
  addLogic<T>(table, "b" + bits);
  table["shl.b" + bits] = lanewise<shiftedLeft<T>>();
  table["shr.b" + bits] = table["shr.u" + bits] = lanewise<shiftedRight<T>>();
  table["shr.s" + bits] = lanewise<shiftedRight<Signed>>();
  for (const char* kind : {"b", "u", "s", "f"}) {
    Operation& select = table["selp." + (kind + bits)] = lanewise<selected<T>>();
    select.known = Known::kIfChosen;
    table["mov." + (kind + bits)] = lanewise<copied<T>>();
  }
}

template <class T>
void addFields(Operations& table, const std::string& bits) {
  using Signed = std::make_signed_t<T>;
  table["bfi.b" + bits] = lanewise<inserted<T>>();
  table["bfe.u" + bits] = lanewise<extracted<T>>();
  table["bfe.s" + bits] = lanewise<extracted<Signed>>();
  table["brev.b" + bits] = lanewise<reversed<T>>();
  table["clz.b" + bits] =
      lanewise<[](T a) -> uint32_t { return static_cast<uint32_t>(std::countl_zero(a)); }>();
  table["popc.b" + bits] =
      lanewise<[](T a) -> uint32_t { return static_cast<uint32_t>(std::popcount(a)); }>();
  // The position of the highest bit that is set; of a negative number, that is not.
  table["bfind.u" + bits] = lanewise<[](T a) -> uint32_t {
    return a == 0 ? ~0u : static_cast<uint32_t>(8 * sizeof(T) - 1 - std::countl_zero(a));
  }>();
  table["bfind.s" + bits] = lanewise<[](Signed a) -> uint32_t {
    const T b = static_cast<T>(a < 0 ? ~a : a);
    return b == 0 ? ~0u : static_cast<uint32_t>(8 * sizeof(T) - 1 - std::countl_zero(b));
  }>();
}

} // namespace

void addBits(Operations& table) {
  addLogic<bool>(table, "pred");
  table["and.pred"].known = Known::kAnd;
  table["or.pred"].known = Known::kOr;
  table["mov.pred"] = lanewise<copied<bool>>();
  addOfWidth<uint16_t>(table, "16");
  addOfWidth<uint32_t>(table, "32");
  addOfWidth<uint64_t>(table, "64");
  addFields<uint32_t>(table, "32");
  addFields<uint64_t>(table, "64");
  table["prmt.b32"] = lanewise<permuted>();
  table["lop3.b32"] = lanewise<looked>();
  table["shf.l.wrap.b32"] = lanewise<[](uint32_t low, uint32_t high, uint32_t by) {
    return funnel(low, high, by & 31, true);
  }>();
  table["shf.r.wrap.b32"] = lanewise<[](uint32_t low, uint32_t high, uint32_t by) {
    return funnel(low, high, by & 31, false);
  }>();
  table["shf.l.clamp.b32"] = lanewise<[](uint32_t low, uint32_t high, uint32_t by) {
    return funnel(low, high, std::min(by, 32u), true);
  }>();
  table["shf.r.clamp.b32"] = lanewise<[](uint32_t low, uint32_t high, uint32_t by) {
    return funnel(low, high, std::min(by, 32u), false);
  }>();
}

} // namespace puone::ptx
