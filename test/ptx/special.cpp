// SPDX-License-Identifier: BSD-3-Clause
#include "special.h"

#include <chrono>
#include <unordered_map>

#include "warp.h"

namespace puone::ptx {
namespace {

/// Reads kValue(warp, lane) into the only operand.
template <auto kValue>
void readInto(Warp& warp, const Instruction& in, uint32_t mask) {
  forLanes(mask, [&](uint32_t lane) { warp.set(in.operand[0], lane, kValue(warp, lane)); });
}

uint64_t nowNs() {
  using std::chrono::nanoseconds;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<nanoseconds>(now).count());
}

using Where = const Warp&;

const std::unordered_map<std::string, Run>& all() {
  static const std::unordered_map<std::string, Run> table{
      {"%tid.x", readInto<[](Where w, uint32_t l) { return w.thread(l).x; }>},
      {"%tid.y", readInto<[](Where w, uint32_t l) { return w.thread(l).y; }>},
      {"%tid.z", readInto<[](Where w, uint32_t l) { return w.thread(l).z; }>},
      {"%ntid.x", readInto<[](Where w, uint32_t) { return w.block.grid.threads.x; }>},
      {"%ntid.y", readInto<[](Where w, uint32_t) { return w.block.grid.threads.y; }>},
      {"%ntid.z", readInto<[](Where w, uint32_t) { return w.block.grid.threads.z; }>},
      {"%ctaid.x", readInto<[](Where w, uint32_t) { return w.block.index.x; }>},
      {"%ctaid.y", readInto<[](Where w, uint32_t) { return w.block.index.y; }>},
      {"%ctaid.z", readInto<[](Where w, uint32_t) { return w.block.index.z; }>},
      {"%nctaid.x", readInto<[](Where w, uint32_t) { return w.block.grid.blocks.x; }>},
      {"%nctaid.y", readInto<[](Where w, uint32_t) { return w.block.grid.blocks.y; }>},
      {"%nctaid.z", readInto<[](Where w, uint32_t) { return w.block.grid.blocks.z; }>},
      {"%laneid", readInto<[](Where, uint32_t l) { return l; }>},
      {"%warpid", readInto<[](Where w, uint32_t) { return w.first_thread / 32; }>},
      {"%lanemask_eq", readInto<[](Where, uint32_t l) { return 1u << l; }>},
      {"%lanemask_lt", readInto<[](Where, uint32_t l) { return (1u << l) - 1; }>},
      {"%lanemask_le", readInto<[](Where, uint32_t l) { return (2u << l) - 1; }>},
      {"%lanemask_gt", readInto<[](Where, uint32_t l) { return ~((2u << l) - 1); }>},
      {"%lanemask_ge", readInto<[](Where, uint32_t l) { return ~((1u << l) - 1); }>},
      {"%clock", readInto<[](Where, uint32_t) { return nowNs(); }>},
      {"%clock64", readInto<[](Where, uint32_t) { return nowNs(); }>},
      {"%globaltimer", readInto<[](Where, uint32_t) { return nowNs(); }>},
  };
  return table;
}

} // namespace

Run specialRegister(const std::string& name) {
  const auto found = all().find(name);
  return found == all().end() ? nullptr : found->second;
}

void packPieces(Warp& warp, const Instruction& in, uint32_t mask) {
  forLanes(mask, [&](uint32_t lane) {
    uint64_t whole = 0;
    for (uint32_t i = 1; i < in.operands; ++i) {
      whole |= warp.get(in.operand[i], lane) << (8 * in.bytes * (i - 1));
    }
    warp.set(in.operand[0], lane, whole);
  });
}

void unpackPieces(Warp& warp, const Instruction& in, uint32_t mask) {
  forLanes(mask, [&](uint32_t lane) {
    const uint64_t whole = warp.get(in.source(0), lane);
    for (uint32_t i = 0; i < in.dests; ++i) {
      warp.set(in.operand[i], lane, whole >> (8 * in.bytes * i));
    }
  });
}

} // namespace puone::ptx
