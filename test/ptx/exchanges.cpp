// SPDX-License-Identifier: BSD-3-Clause
// What threads of a warp do together (PTX ISA 9.7.9.6 and 9.7.13), barriers, and conversions of
// addresses (9.7.9.20). The scheduler has brought the lanes together that take part; the last
// operand names them.
#include <algorithm>
#include <array>
#include <bit>

#include "operations.h"
#include "violation.h"

namespace puone::ptx {
namespace {

enum class Shuffle {
  kUp,
  kDown,
  kButterfly,
  kIndex
};

template <Shuffle kMode>
void shuffle(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto a = warp.lanes<uint32_t>(in.source(0));
  const auto b = warp.lanes<uint32_t>(in.source(1));
  const auto c = warp.lanes<uint32_t>(in.source(2));
  for (uint32_t i = 1; i < 4; ++i) warp.demand(in.source(i), mask);
  const uint32_t known = warp.defined[in.source(0).number];
  std::array<uint32_t, 32> before;
  forLanes(mask, [&](uint32_t lane) { before[lane] = a.get(lane); });
  forLanes(mask, [&](uint32_t lane) {
    const uint32_t by = b.get(lane) & 31;
    const uint32_t segment = c.get(lane) >> 8 & 31;
    const uint32_t last = (lane & segment) | (c.get(lane) & 31 & ~segment);
    int from = 0;
    bool inside = false;
    switch (kMode) {
      case Shuffle::kUp:
        from = static_cast<int>(lane) - static_cast<int>(by);
        inside = from >= static_cast<int>(last);
        break;
      case Shuffle::kDown:
        from = static_cast<int>(lane + by);
        inside = from <= static_cast<int>(last);
        break;
      case Shuffle::kButterfly:
        from = static_cast<int>(lane ^ by);
        inside = from <= static_cast<int>(last);
        break;
      case Shuffle::kIndex:
        from = static_cast<int>((lane & segment) | (by & ~segment));
        inside = from <= static_cast<int>(last);
        break;
    }
    if (!inside) from = static_cast<int>(lane);
    if ((mask >> from & 1) == 0) {
      throw Violation(
          Kind::kUninitialised,
          "lane " + std::to_string(from) + ", whose value is asked for, takes no part",
          static_cast<int32_t>(lane));
    }
    warp.lanes<uint32_t>(in.operand[0]).set(lane, before[static_cast<size_t>(from)]);
    warp.define(in.operand[0], lane, (known >> from & 1) != 0);
    if (in.dests < 2) return;
    warp.lanes<bool>(in.operand[1]).set(lane, inside);
    warp.define(in.operand[1], lane, true);
  });
}

enum class Vote {
  kAll,
  kAny,
  kUniform,
  kBallot
};

template <Vote kVote>
void vote(Warp& warp, const Instruction& in, uint32_t mask) {
  warp.demand(in.source(0), mask);
  const uint32_t yes = *warp.lanes<bool>(in.source(0)).values & mask;
  forLanes(mask, [&](uint32_t lane) {
    if constexpr (kVote == Vote::kBallot) {
      warp.lanes<uint32_t>(in.operand[0]).set(lane, yes);
    } else {
      const bool result = kVote == Vote::kAll   ? yes == mask
                          : kVote == Vote::kAny ? yes != 0
                                                : yes == 0 || yes == mask;
      warp.lanes<bool>(in.operand[0]).set(lane, result);
    }
  });
}

template <class T, auto kFunction>
void reduce(Warp& warp, const Instruction& in, uint32_t mask) {
  warp.demand(in.source(0), mask);
  const auto values = warp.lanes<T>(in.source(0));
  const auto first = static_cast<uint32_t>(std::countr_zero(mask));
  T all = values.get(first);
  forLanes(mask & (mask - 1), [&](uint32_t lane) { all = kFunction(all, values.get(lane)); });
  forLanes(mask, [&](uint32_t lane) { warp.lanes<T>(in.operand[0]).set(lane, all); });
}

void orderWarp(Warp& warp, const Instruction&, uint32_t mask) {
  if (mask == warp.present) ++warp.epoch;
}

void nothing(Warp&, const Instruction&, uint32_t) {}

void activeLanes(Warp& warp, const Instruction& in, uint32_t mask) {
  forLanes(mask, [&](uint32_t lane) { warp.lanes<uint32_t>(in.operand[0]).set(lane, mask); });
}

void sleep(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
  warp.block.grid.sleep(warp.lanes<uint32_t>(in.operand[0]).get(lane));
}

template <class T>
void addReductions(Operations& table, const std::string& type) {
  const auto add = [&](const std::string& name, Run run) {
    table["redux.sync." + name + "." + type] = {run, Flow::kExchange, "w:ww"};
  };
  add("add", reduce<T, [](T a, T b) { return static_cast<T>(uint32_t(a) + uint32_t(b)); }>);
  add("min", reduce<T, [](T a, T b) { return std::min(a, b); }>);
  add("max", reduce<T, [](T a, T b) { return std::max(a, b); }>);
}

void addAddresses(Operations& table, const std::string& space, uint64_t window) {
  // The window's bits are those of no address in it.
  const auto into = [](Warp& warp, const Instruction& in, uint32_t mask) {
    forLanes(mask, [&](uint32_t lane) {
      warp.set(in.operand[0], lane, warp.get(in.operand[1], lane) | in.option);
    });
  };
  const auto out = [](Warp& warp, const Instruction& in, uint32_t mask) {
    forLanes(mask, [&](uint32_t lane) {
      const uint64_t address = warp.get(in.operand[1], lane);
      if ((address & 0xff00'0000'0000'0000) != in.option) {
        throw Violation(Kind::kOutOfBounds, "an address of another space", int32_t(lane));
      }
      warp.set(in.operand[0], lane, address & ~in.option);
    });
  };
  table["cvta." + space + ".u64"] = {into, Flow::kNext, "d:d", window};
  table["cvta.to." + space + ".u64"] = {out, Flow::kNext, "d:d", window};
}

} // namespace

void addExchanges(Operations& table) {
  table["shfl.sync.up.b32"] = {
      shuffle<Shuffle::kUp>, Flow::kExchange, "wp:wwww", 0, Known::kItself};
  table["shfl.sync.down.b32"] = {
      shuffle<Shuffle::kDown>, Flow::kExchange, "wp:wwww", 0, Known::kItself};
  table["shfl.sync.bfly.b32"] = {
      shuffle<Shuffle::kButterfly>, Flow::kExchange, "wp:wwww", 0, Known::kItself};
  table["shfl.sync.idx.b32"] = {
      shuffle<Shuffle::kIndex>, Flow::kExchange, "wp:wwww", 0, Known::kItself};
  table["vote.sync.all.pred"] = {vote<Vote::kAll>, Flow::kExchange, "p:pw"};
  table["vote.sync.any.pred"] = {vote<Vote::kAny>, Flow::kExchange, "p:pw"};
  table["vote.sync.uni.pred"] = {vote<Vote::kUniform>, Flow::kExchange, "p:pw"};
  table["vote.sync.ballot.b32"] = {vote<Vote::kBallot>, Flow::kExchange, "w:pw"};
  addReductions<int32_t>(table, "s32");
  addReductions<uint32_t>(table, "u32");
  const auto add_logic = [&](const std::string& name, Run run) {
    table["redux.sync." + name + ".b32"] = {run, Flow::kExchange, "w:ww"};
  };
  using U = uint32_t;
  add_logic("and", reduce<U, [](U a, U b) { return a & b; }>);
  add_logic("or", reduce<U, [](U a, U b) { return a | b; }>);
  add_logic("xor", reduce<U, [](U a, U b) { return a ^ b; }>);
  table["bar.warp.sync"] = {orderWarp, Flow::kExchange, ":w"};
  table["bar.sync"] = table["barrier.sync"] =
      table["barrier.sync.aligned"] = {nothing, Flow::kBarrier, ":w"};
  table["activemask.b32"] = {activeLanes, Flow::kNext, "w:"};
  table["nanosleep.u32"] = {sleep, Flow::kNext, ":w"};
  // Blocks run one after another and warps in turns: what is written is seen at once. Only races
  // are judged, for which no fence is a barrier.
  for (const char* level : {"cta", "gl", "sys"}) {
    table[std::string("membar.") + level] = {nothing, Flow::kNext, ":"};
  }
  for (const char* scope : {"cta", "cluster", "gpu", "sys"}) {
    table[std::string("fence.acq_rel.") + scope] = {nothing, Flow::kNext, ":"};
    table[std::string("fence.sc.") + scope] = {nothing, Flow::kNext, ":"};
  }
  table["trap"] = {nothing, Flow::kTrap, ":"};
  addAddresses(table, "local", kLocalWindow);
  addAddresses(table, "shared", kSharedWindow);
  addAddresses(table, "param", kParameterWindow);
  table["cvta.global.u64"] = table["cvta.to.global.u64"] = table["cvta.const.u64"] =
      table["cvta.to.const.u64"] = lanewise<[](uint64_t a) { return a; }>();
}

const Operations& operations() {
  static const Operations all = [] {
    Operations table;
    addIntegers(table);
    addFloats(table);
    addBits(table);
    addComparisons(table);
    addConversions(table);
    addExchanges(table);
    addMatrices(table);
    addCopies(table);
    return table;
  }();
  return all;
}

} // namespace puone::ptx
