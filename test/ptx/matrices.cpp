// SPDX-License-Identifier: BSD-3-Clause
// mma.sync (PTX ISA 9.7.14.5): a warp multiplies matrices whose elements its lanes share out.
// Products are exact, and added in double precision, where PTX asks for single precision at least.
#include <array>
#include <bit>
#include <cstdint>

#include "floats.h"
#include "operations.h"

namespace puone::ptx {
namespace {

/// The upper 19 bits of a register.
struct Tf32 {
  uint32_t bits;
};
double widened(Tf32 value) {
  return std::bit_cast<float>(value.bits & ~0x1fffu);
}

/// Element i of a register.
template <class T>
double part(uint32_t word, uint32_t i) {
  if constexpr (sizeof(T) == 4)
    return widened(T{word});
  else
    return widened(T{static_cast<uint16_t>(word >> 16 * i)});
}

/// d = a b + c, of m16n8k16 for 16-bit elements and m16n8k8 for 32-bit ones. A register of a or b
/// has neighbours along k. Lane 4g + t has of a the rows g and g + 8, of b column g, both at k = t
/// of the registers, and four on; of c and d the rows g and g + 8 at columns 2t and 2t + 1.
template <class T>
void multiply(Warp& warp, const Instruction& in, uint32_t mask) {
  constexpr uint32_t kParts = 4 / sizeof(T), kDepth = 8 * kParts;
  for (uint32_t i = 0; i < 10; ++i) warp.demand(in.source(i), mask);
  const auto word = [&](uint32_t i, uint32_t lane) {
    return warp.lanes<uint32_t>(in.source(i)).get(lane);
  };
  std::array<std::array<double, kDepth>, 16> a;
  std::array<std::array<double, kDepth>, 8> b;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t group = lane / 4;
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint32_t i = 0; i < kParts; ++i) {
        const uint32_t k = (lane % 4 + 4 * half) * kParts + i;
        a[group][k] = part<T>(word(2 * half, lane), i);
        a[group + 8][k] = part<T>(word(2 * half + 1, lane), i);
        b[group][k] = part<T>(word(4 + half, lane), i);
      }
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    std::array<float, 4> sums;
    for (uint32_t i = 0; i < 4; ++i) {
      const auto& row = a[lane / 4 + 8 * (i / 2)];
      const auto& column = b[lane % 4 * 2 + i % 2];
      double sum = std::bit_cast<float>(word(6 + i, lane));
      for (uint32_t k = 0; k < kDepth; ++k) sum += row[k] * column[k];
      sums[i] = canonical(static_cast<float>(sum));
    }
    // Of this lane's words no other lane asks for c.
    for (uint32_t i = 0; i < 4; ++i) {
      warp.lanes<float>(in.operand[i]).set(lane, sums[i]);
      warp.define(in.operand[i], lane, true);
    }
  }
}

} // namespace

void addMatrices(Operations& table) {
  const auto add = [&](const std::string& shape, const std::string& type, Run run) {
    table["mma.sync.aligned." + shape + ".row.col.f32." + type + "." + type + ".f32"] = {
        run, Flow::kExchange, "wwww:wwwwwwwwww*", 0, Known::kItself};
  };
  add("m16n8k16", "f16", multiply<Half>);
  add("m16n8k16", "bf16", multiply<Bfloat>);
  add("m16n8k8", "tf32", multiply<Tf32>);
}

} // namespace puone::ptx
